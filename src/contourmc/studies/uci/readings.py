"""What the paper leaves open in Table 1: which reading explains its baselines, and how much the number of bins matters.

    python -m contourmc.studies.uci.readings [--out results/uci/readings.json]

The first part runs the four methods without flattening by the recipe of the paper, with one setting changed at a time,
and compares their RMSE with the paper's table. Contour methods take no part in this comparison. Targets in their own
units and a sum of squares over the data explain the table. Whether the sum is halved, and when models are taken,
changes little. The second part runs the contour methods with other numbers of bins than the recipe has. Test sets are
used in both parts, so the result describes the paper. It does not choose a setting by our own test error.

A run resumes from the file that it writes, takes about forty minutes on two cores, and prints all tables.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contourmc._core.console import make_console
from contourmc._core.whole_file import write_whole
from contourmc.engine.run import DivergenceError
from contourmc.studies.uci.cells import (
    BASELINES,
    EPOCHS,
    FAMILIES,
    Flattening,
    Model,
    Split,
    load_splits,
    measure,
)
from contourmc.studies.uci.recipes import PAPER, PAPERS_TABLE, TITLES, papers_settings

METHODS = tuple(method for methods in FAMILIES.values() for method in methods if method not in BASELINES)
DATA_SETS = ("energy", *PAPER.data_sets)
BINS = (20, 200)
ONE_SPLIT = "one split"

# From the model of the recipe and the size of the training set to the model of a reading.
READINGS: Mapping[str, Callable[[Model, int], Model]] = {
    "recipe": lambda model, size: model,
    "half of the squares": lambda model, size: replace(model, noise=1.0),
    "mean of the squares": lambda model, size: replace(model, noise=(size / 2) ** 0.5),
    "normalised targets": lambda model, size: replace(model, normalised=True),
    "tanh": lambda model, size: replace(model, activation="tanh"),
    "models from the start": lambda model, size: replace(model, burn_in=0.0),
    ONE_SPLIT: lambda model, size: model,
}

Plain = dict[str, Any]


def run(record: Plain, splits: Mapping[str, list[Split]], epochs: int) -> Iterator[None]:
    """Measure what the record does not have, cell by cell."""
    for reading, change in READINGS.items():
        for name in splits if reading != "mean of the squares" else PAPER.data_sets:
            repeated = [splits[name][0]] * len(splits[name])
            used = repeated if reading == ONE_SPLIT else splits[name]
            model = change(papers_settings(name)[0], len(used[0].train[1]))
            for method in METHODS:
                yield from _add(record, ("baselines", reading, name, method), used, model, None, epochs)
    for bins in BINS:
        for name in PAPER.data_sets:
            model, flattening = papers_settings(name)
            for method in BASELINES:
                place = ("bins", str(bins), name, method)
                yield from _add(record, place, splits[name], model, replace(flattening, bins=bins), epochs)


def _add(
    record: Plain,
    place: tuple[str, ...],
    splits: Sequence[Split],
    model: Model,
    flattening: Flattening | None,
    epochs: int,
) -> Iterator[None]:
    *path, method = place
    for key in path:
        record = record.setdefault(key, {})
    if method in record:
        return
    try:
        cell = measure(method, splits, model, flattening, epochs, progress=False)
    except DivergenceError:
        record[method] = None
    else:
        record[method] = {"rmse": [round(one, 5) for one in cell.rmse]}
        if flattening is not None:
            record[method]["effective_models"] = [round(one, 2) for one in cell.effective_models]
    make_console(stderr=True).print(f"{', '.join(place)}: RMSE {_formatted(record[method])}", soft_wrap=True)
    yield


def distance(methods: Mapping[str, Mapping[str, Any]]) -> float:
    """The root mean square of log(our RMSE / the paper's RMSE) over the baselines of a reading."""
    logs = []
    for name in PAPER.data_sets:
        for method in METHODS:
            cell = methods[name][method]
            logs.append(math.inf if cell is None else math.log(np.mean(cell["rmse"]) / PAPERS_TABLE[method][name][0]))
    return float(np.sqrt(np.mean(np.square(logs))))


def table(record: Plain) -> str:
    """Both parts as tables in Markdown: mean ± standard deviation over splits, or over ten seeds for `one split`."""
    lines = ["| reading | | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]
    for name in PAPER.data_sets:
        theirs = ("{:.2f} ± {:.2f}".format(*PAPERS_TABLE[method][name]) for method in METHODS)
        lines.append(f"| the paper | {TITLES[name]} | {' | '.join(theirs)} |")
    for reading, names in record["baselines"].items():
        for name, methods in names.items():
            ours = " | ".join(_formatted(methods[method]) for method in METHODS)
            lines.append(f"| {reading} | {TITLES[name]} | {ours} |")
    lines += ["", "| reading | distance from the paper |", "|---|---|"]
    lines += [f"| {reading} | {distance(names):.0%} |" for reading, names in record["baselines"].items()]
    lines += ["", "| m | | | RMSE | effective models |", "|---|---|---|---|---|"]
    for bins, names in record["bins"].items():
        for name, methods in names.items():
            for method, cell in methods.items():
                models = "–" if cell is None else f"{np.mean(cell['effective_models']):.0f}"
                lines.append(f"| {bins} | {TITLES[name]} | {method} | {_formatted(cell)} | {models} |")
    return "\n".join(lines)


def _formatted(cell: Mapping[str, Any] | None) -> str:
    return "diverged" if cell is None else f"{np.mean(cell['rmse']):.3f} ± {np.std(cell['rmse'], ddof=1):.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the file does not have yet, and print both tables."""
    parser = argparse.ArgumentParser(description="Compare readings of what the paper leaves open in Table 1.")
    default = Path("results/uci/readings.json")
    parser.add_argument("--out", type=Path, default=default, help=f"the file to write and to go on from ({default})")
    parser.add_argument("--data", type=Path, help="a folder that holds the data; by default they are downloaded")
    given = parser.parse_args(arguments)
    record: Plain = {"epochs": EPOCHS, "splits": 10}
    if given.out.exists():
        record = json.loads(given.out.read_text(encoding="utf-8"))
    splits = {name: load_splits(name, record["splits"], given.data) for name in DATA_SETS}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for _ in run(record, splits, record["epochs"]):
        lines = json.dumps(record).replace('}, "', '},\n"')  # one for each cell
        write_whole(given.out, lines + "\n")
    make_console().print(table(record), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
