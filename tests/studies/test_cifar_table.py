"""The table and the picture of records of CIFAR, made up and those in results/."""

import io
import shutil
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from contourmc.cli.main import app
from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.records import read_records, set_of
from contourmc.studies.cifar.sets import CIFAR10, CIFAR100, SETS
from contourmc.studies.cifar.shift_table import make_shift_table
from contourmc.studies.cifar.table import draw, make_draws_table, make_table

RESULTS = Path(__file__).parents[2] / "results"


def call(*words: str, columns: int = 140):
    return CliRunner().invoke(app, ["reproduce", "cifar", *words], env={"COLUMNS": str(columns)})


def made_up(accuracy, algorithm="sghmc", epochs=10, done=10, seed=0, depth=3, **switches):
    """A record as the first ones were, without the name of the data set."""
    augmentation = {"kind": "Augmentation", "crop": True, "flip": True, "erase": True} | switches
    settings = dict(algorithm=algorithm, epochs=epochs, seed=seed, images=50_000, batch_size=1000, depth=depth)
    point = {"accuracy": accuracy, "nll": accuracy / 2, "ece": accuracy / 10}
    results = dict(epochs=done, best_point=point, average=point, models=3, seconds=2.0 * done)
    return {"settings": settings | {"augmentation": augmentation}, "results": results}


def flattened(record, **rule):
    """With the part of the kernel's description that says how θ was learnt."""
    return record | {"settings": record["settings"] | {"kernel": {"kind": "Contour", "zeta": 1e6} | rule}}


def shown(images, records, width=80):
    """The table as text, and its rows with a space between two cells."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(make_table(images, records))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    return text, [" ".join(line.split()) for line in text.splitlines()]


def test_the_table_keeps_different_settings_apart():
    """Seeds of one setting share a row; a run that was interrupted, or made otherwise, has its own."""
    records = [made_up(0.8), made_up(0.9, seed=1), made_up(0.7, erase=False), made_up(0.6, epochs=20)]
    text, rows = shown(CIFAR10, records, width=100)
    assert "SGHMC 10 2 85.00±5.00 85.00±5.00 0.425±0.025 0.085±0.005 2.000" in rows
    assert "SGHMC, no erase 10 1 70.00 70.00 0.350 0.070 2.000" in rows
    assert "SGHMC 10 of 20 1 60.00 60.00 0.300 0.060 2.000" in rows
    assert "paper 1000 10 90.01±0.07 91.98±0.05" in rows  # once, below them
    assert text.count("90.01") == 1
    assert "CSGHMC not run" in rows
    assert rows[0] == "ResNet-20 on CIFAR-10"


def test_another_temperature_is_another_row():
    record = made_up(0.7)
    record["settings"]["temperature"] = 3e-4
    _, rows = shown(CIFAR10, [made_up(0.8), record], width=100)
    assert "SGHMC 10 1 80.00 80.00 0.400 0.080 2.000" in rows
    assert "SGHMC, temperature 0.0003 10 1 70.00 70.00 0.350 0.070 2.000" in rows


def test_seeds_share_a_row_however_old_their_records_are():
    """The first ones have the name of the rule and its ρ apart; another ρ is another setting."""
    old = flattened(made_up(0.8, "csghmc"), rule="biased", rho=1.0)
    new = flattened(made_up(0.9, "csghmc", seed=1), rule={"kind": "Biased", "rho": 1.0})
    other = flattened(made_up(0.5, "csghmc", seed=1), rule={"kind": "Biased", "rho": 2.0})
    _, rows = shown(CIFAR10, [old, new, other], width=100)
    assert "CSGHMC 10 2 85.00±5.00 85.00±5.00 0.425±0.025 0.085±0.005 2.000" in rows
    assert "CSGHMC 10 1 50.00 50.00 0.250 0.050 2.000" in rows


def test_the_table_names_several_networks():
    text, rows = shown(CIFAR100, [made_up(0.5), made_up(0.4, depth=1)], width=100)
    assert "ResNet-20 and ResNet-8 on CIFAR-100" in text
    assert "SGHMC, ResNet-8 10 1 40.00 40.00 0.200 0.040 2.000" in rows


def test_six_algorithms_with_seeds_fit_80_columns():
    records = [made_up(0.9 + i / 1000, algorithm=name, epochs=950, done=950) for name in ALGORITHMS for i in range(3)]
    _, rows = shown(CIFAR10, records)
    assert len([row for row in rows if row.startswith("paper 1000")]) == 6
    assert "saCSGHMC 950 3 90.10±0.06 90.10±0.06 0.451±0.000 0.090±0.000 2.000" in rows


@pytest.mark.parametrize("images", SETS.values(), ids=SETS)
def test_our_records_are_read(images):
    """Those in results/, old and new: each in its folder, and the table's picture of them can be drawn."""
    records = read_records(RESULTS / images.name)
    assert {record["settings"]["algorithm"] for record in records} >= set(images.paper)
    assert all(set_of(record) is images for record in records)
    assert all(file.stat().st_size < 150_000 for file in (RESULTS / images.name).glob("*.json"))
    _, rows = shown(images, records)
    titles = [ALGORITHMS[name].title for name in images.paper]
    for title in titles:  # every cell of the paper's table, with all seeds in one row
        assert len([row for row in rows if row.startswith(f"{title} 950 ")]) == 1
    (legend,) = draw(images, records).legends
    run = {record["settings"]["algorithm"] for record in records}
    assert len(legend.get_texts()) == len(run)
    console = Console(width=80, file=io.StringIO())
    console.print(make_draws_table(records))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    rows = [line.split() for line in lines if len(line.split()) > 6 and line.split()[0] in titles]
    assert [row[0] for row in rows] == titles
    seeds = [record["results"] for record in records if record["settings"]["algorithm"] == "csghmc"]
    worth = np.mean([one["effective_models_by_theta"] for one in seeds if one["epochs"] == 950])
    assert rows[2][-2:] == ["1", f"{worth:.0f}"]


def test_the_table_shows_both_halves(monkeypatch, tmp_path):
    for name in SETS:
        shutil.copytree(RESULTS / name, tmp_path / "results" / name)
    monkeypatch.chdir(tmp_path)
    result = call("--table", columns=80)
    assert result.exit_code == 0, result.output
    assert "ResNet-20 on CIFAR-10 " in result.output
    assert "ResNet-20 on CIFAR-100 " in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    one = call("--table", "--dataset", "cifar100").output
    assert "CIFAR-10 " not in one
    assert "70.18±0.15" in one


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "sghmc-10-epochs-seed-0.json").write_text("{")
    result = call("--table", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "sghmc-10-epochs-seed-0.json" in result.output.replace("\n", "")


def test_the_table_under_shift_shows_the_records():
    """The means over strengths of one of our records; the best NLL is on top."""
    records = read_records(Path(__file__).parents[2] / "results" / "cifar10")
    table = make_shift_table(records)
    assert table is not None
    columns = [list(column.cells) for column in table.columns]
    assert columns[0][0] == "M-SGD, cosine"
    assert columns[1][columns[0].index("reSGHMC, rate 0.1")] == "2 × 100"
    record = next(record for record in records if record["settings"]["algorithm"] == "automatic")
    blur = record["results"]["corrupted"]["blur"]
    wanted = f"{20 * sum(each['accuracy'] for each in blur):.1f}, {sum(each['nll'] for each in blur) / 5:.2f}"
    assert columns[6][columns[0].index("automatic CSGHMC")] == wanted
    twice = deepcopy(record)  # a second seed that is wrong by 2% more often
    twice["results"]["average"]["accuracy"] -= 0.02
    row = make_shift_table([record, twice])
    assert row is not None
    expected = 100 * record["results"]["average"]["accuracy"] - 1
    assert [next(iter(row.columns[i].cells)).split(",")[0] for i in (2, 4)] == ["2", f"{expected:.2f}"]
    assert make_shift_table([record for record in records if "corrupted" not in record["results"]]) is None
