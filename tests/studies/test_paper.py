"""The page "The paper, result by result" says what the committed records hold, and nothing else."""

import json
import re
from pathlib import Path

import pytest

from contourmc.studies import paper
from contourmc.studies.base import Claim, Outcome, exact, judge
from contourmc.studies.catalogue import SIMULATIONS, UCI
from contourmc.studies.cifar.agreement import table_cells, weighted_average
from contourmc.studies.cifar.records import read_records

ROOT = Path(__file__).parents[2]
RECORDS, PAGE = ROOT / "results", ROOT / "docs" / "paper.md"


@pytest.fixture(scope="module")
def results():
    return paper.results(RECORDS)


def test_the_page_is_what_the_records_say(results):
    """Word for word; `contourmc reproduce page` writes it again."""
    assert PAGE.read_text(encoding="utf-8") == paper.page_text(results, Path("../results/paper"))


def test_every_record_is_that_of_the_study_as_it_is(results):
    """Of its full size."""
    for study in (*SIMULATIONS, UCI):
        about = json.loads((RECORDS / paper.RECORDS[study.name]).read_text(encoding="utf-8"))["about"]
        assert about["study"] == study.name
        assert about["length"] >= study.full.length
        assert about["seeds"] >= study.full.seeds
        assert not about["interrupted"]
        assert not about["quick"]
    assert len(results) == len(SIMULATIONS) + 2


def test_every_figure_of_the_page_is_there(results):
    shown = re.findall(r"\]\(\.\./results/paper/(\S+)\.png\)", PAGE.read_text(encoding="utf-8"))
    assert shown == [name for result in results for name in result.outcome.figures]
    for name in shown:
        assert (RECORDS / "paper" / f"{name}.png").stat().st_size > 10_000


def test_every_claim_has_its_own_key_and_every_reason_a_claim_that_differs(results):
    keys = [f"{result.name}/{claim.key}" for result in results for claim in result.outcome.claims]
    assert len(set(keys)) == len(keys)
    differs = {
        f"{result.name}/{claim.key}"
        for result in results
        for claim in result.outcome.claims
        if claim.verdict is not None and claim.verdict.outcome == "differs"
    }
    assert differs == set(paper.REASONS)


def test_a_claim_that_differs_without_a_reason_is_an_error():
    claim = Claim("unheard-of", "it is 1", "it is 2", judge(exact(2.0), below=1.0))
    result = paper.Result("study", "Study", "nothing", Outcome([claim]))
    with pytest.raises(ValueError, match="study/unheard-of differs"):
        paper.page_text([result], Path("figures"))


def test_tests_and_commands_that_the_page_names_exist():
    text = PAGE.read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    named = set(re.findall(r"`(?:tests/\S*/)?(test_\w+\.py)`", text))
    assert named
    assert named <= files
    studies = {study.name for study in SIMULATIONS} | {UCI.name, "cifar", "page", "all"}
    assert set(re.findall(r"contourmc reproduce ([a-z][a-z0-9-]*)", text)) <= studies


def test_the_method_page_has_the_same_figures():
    """Every number with an error in its table of differences stands on the page of the paper, too."""
    method = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    section = method[method.index("## Where the library differs") : method.index("## Where the partition begins")]
    figures = re.findall(r"[−-]?\d+\.\d+ ± \d+\.\d+|\d+,\d{3}", section)
    assert len(figures) == 5
    text = PAGE.read_text(encoding="utf-8")
    assert [figure for figure in figures if figure.replace("−", "-") not in text] == []


def test_the_weighted_average_is_that_of_the_heaviest_model():
    """Of the runs of CSGHMC on CIFAR-100, whose records hold every weight; for SGHMC it is the average."""
    cells = table_cells(read_records(RECORDS / "cifar100"))
    for record in cells["csghmc"]:
        draws = record["results"]["draws"]
        heaviest = max(range(len(draws["steps"])), key=lambda i: draws["log_weights"][i])
        (entry,) = (one for one in record["history"] if one["epoch"] * 50 == draws["steps"][heaviest])
        assert weighted_average(record) == entry["point"]
    assert weighted_average(cells["sghmc"][0]) == cells["sghmc"][0]["results"]["average"]
    mixed = json.loads(json.dumps(cells["csghmc"][0]))
    mixed["results"]["draws"]["log_weights"] = [0.1 * i for i in range(len(mixed["results"]["draws"]["steps"]))]
    assert weighted_average(mixed) is None
