"""The page of a run: what it holds, in which order, for all readers, in one small file."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.draws.report.parsed import parse

from contourmc._core.versions import versions
from contourmc.draws.report.escaping import script_hash

LARGEST = 1_000_000  # bytes
SECTIONS = ["estimates", "modes", "marginals", "pairs", "energies", "temperatures", "automatic", "settings", "again"]


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    file = run.report(tmp_path_factory.mktemp("report") / "report.html", title="Two wells")
    assert file.stat().st_size < LARGEST
    return parse(file.read_text(encoding="utf-8"))


def cells(page, table):
    """The rows of a table, in full: what its CSV file holds."""
    found = page.one("table", data_name=table).one("tbody").all("tr")
    return [[cell.attributes["data-value"] for cell in row.children] for row in found]


def test_the_verdict_comes_first_and_the_sections_follow_in_order(page, run):
    diagnosis, main = run.diagnose(), page.one("main")
    assert [part.attributes["id"] for part in main.all("section")] == ["verdict", *SECTIONS]
    assert [link.attributes["href"] for link in page.one("nav").all("a")] == [f"#{key}" for key in SECTIONS]
    verdict = main.one(id="verdict")
    assert diagnosis.ok
    assert verdict.attributes["class"] == "verdict good"
    assert diagnosis.verdict in verdict.text
    assert diagnosis.summary in verdict.text
    assert diagnosis.caution in verdict.text
    assert page.one("h1").text == page.one("title").text == "Two wells"


def test_estimates_are_those_of_the_summary_in_full(page, run):
    found = cells(page, "estimates")
    expected = [
        (name, row.mean, row.error, row.deviation, *row.quantiles, row.ess, row.rhat)
        for name, row in run.summary().rows.items()
    ]
    assert [row[0] for row in found] == ["a[0]", "a[1]", "b"]
    np.testing.assert_allclose([[*map(float, row[1:])] for row in found], [row[1:] for row in expected])


def test_modes_have_mass_error_energy_and_place(page, run):
    for row, mode in zip(cells(page, "modes"), run.modes(), strict=True):
        assert [*map(float, row[1:4])] == pytest.approx([mode.mass, mode.error, mode.energy])
        (first, second), b = mode.minimum["a"], mode.minimum["b"]
        assert row[4] == f"a[0] = {first:.6g}, a[1] = {second:.6g}, b = {b:.6g}"


def test_the_evidence_is_that_of_the_run(page, run):
    (row,) = cells(page, "evidence")
    assert [*map(float, row)] == pytest.approx([*run.log_evidence()])


def test_settings_versions_and_what_was_chosen(page, run):
    assert ["seed", "3"] in cells(page, "settings")
    assert ["kernel.partition.bins", str(run.partition.bins)] in cells(page, "settings")
    assert cells(page, "versions") == [[*entry] for entry in versions().items()]
    chosen = page.one("section", id="automatic").text
    assert f"pilot of {run.settings['automatic']['pilot_steps']:,} steps" in chosen
    assert f"Jumps between {len(run.modes())} basins" in chosen


def test_every_chart_says_in_words_what_it_shows(page):
    """In a caption, and for screen readers; with numbers in it."""
    figures = page.all("figure")
    titles = [figure.one("h3").text for figure in figures]
    assert titles == [
        "Marginal of a[0]", "Marginal of a[1]", "Marginal of b",
        "a[0] and a[1]", "a[0] and b", "a[1] and b",
        "Energy along the chains", "Energies visited", "θ, probability of the bin", "Visits", "Gradient multiplier",
        "Normaliser", "Mean energy", "Heat capacity", "Entropy",
    ]  # fmt: skip
    for figure in figures:
        chart = figure.one(role="img")
        assert chart.attributes["aria-label"] == figure.one("figcaption").text
        assert re.search(r"\d", chart.attributes["aria-label"])


def test_charts_have_data_that_agree_with_the_run(page, run):
    charts = json.loads(page.one("script", id="charts").text)
    assert [chart.attributes["data-chart"] for chart in page.all(role="img")] == [*map(str, range(len(charts)))]
    x, end, y = (np.array(charts[0]["layers"][0]["columns"][name]) for name in ("x", "x2", "y"))
    assert np.sum(y * (end - x)) == pytest.approx(1, abs=0.01)
    assert np.sum(y * (end - x) * (x + end) / 2) == pytest.approx(run.mean()["a"][0], abs=0.05)
    visits = next(chart["layers"][0] for chart in charts if chart["layers"][0]["titles"].get("y") == "share of steps")
    assert sum(visits["columns"]["y"]) == pytest.approx(1, abs=1e-3)


def test_every_chart_is_drawn_without_a_script(page):
    for chart in page.all(role="img"):
        marks = chart.one("svg", **{"class": "marks"})
        assert any(len(mark.attributes.get("d", "")) > 10 for mark in marks.all("path")) or marks.all("circle")


def test_it_is_one_file_that_loads_nothing_and_runs_its_own_script_only(page):
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    scripts = [script for script in page.all("script") if script.attributes.get("type") != "application/json"]
    assert len(scripts) == 1
    assert f"default-src 'none'; script-src {script_hash(scripts[0].text)};" in policy
    for element in page.all():
        assert "src" not in element.attributes
        assert element.attributes.get("href", "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") for name in element.attributes)


def test_anchors_and_labels_lead_somewhere(page):
    named = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(named) == len(set(named))
    for element in page.all():
        assert element.attributes.get("aria-labelledby", named[0]) in named
        if element.attributes.get("href", "").startswith("#"):
            assert element.attributes["href"][1:] in named


def test_tables_have_heads_for_rows_and_columns(page):
    for table in page.all("table"):
        assert table.one("caption").text
        assert {head.attributes["scope"] for head in table.one("thead").all("th")} == {"col"}
        for row in table.one("tbody").all("tr"):
            assert [cell.attributes.get("scope") for cell in row.children][:2] == ["row", None]
            assert len(row.children) == len(table.one("thead").all("th"))


def test_a_page_replaces_an_older_one_and_makes_its_folder(run, tmp_path):
    file = tmp_path / "new" / "report.html"
    run.report(file)
    first = file.read_text(encoding="utf-8")
    assert run.report(str(file)) == file
    assert file.read_text(encoding="utf-8") == first
    assert [one.name for one in file.parent.iterdir()] == ["report.html"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells what a process uses")
def test_a_page_needs_no_more_memory_than_there_is(run, tmp_path):
    """Under `ulimit -v`, as on many clusters; a library that reserves memory in advance would end the process."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**31, before[1]))
    try:
        file = run.report(tmp_path / "report.html")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "</html>" in file.read_text(encoding="utf-8")
