"""The study: Table 1 by two recipes."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from contourmc._core.console import make_console
from contourmc.engine.run import DivergenceError
from contourmc.studies.base import Drawing, Options, Outcome, Record
from contourmc.studies.kept_parts import KeptParts
from contourmc.studies.uci import cells
from contourmc.studies.uci.cells import BASELINES, FAMILIES, MODELS, Cell, Cells, Flattening, Model, load_splits
from contourmc.studies.uci.claims import claims_of
from contourmc.studies.uci.notes import caption, notes_of, formatted
from contourmc.studies.uci.picture import draw
from contourmc.studies.uci.recipes import BEST, PAPER, RECIPES, Recipe

DIGITS = 6  # significant ones in the record


def measure(options: Options, record: Record) -> None:
    """All methods on all data sets by both recipes; a quick run has the smallest data set alone."""
    epochs, parts = options.size.length, KeptParts(options.parts)
    record |= {"epochs": epochs, "splits": options.size.seeds, "models": MODELS, "settings": {}, "cells": {}}
    for recipe in RECIPES.values():
        for name in recipe.quick if options.quick else recipe.data_sets:
            record["settings"].setdefault(recipe.key, {})[name] = recipe.described(name)
            splits = load_splits(name, options.size.seeds, options.data)
            found = record["cells"].setdefault(recipe.key, {}).setdefault(name, {})
            for method, cell in _measure_all(recipe, name, splits, epochs, parts):
                found[method] = cell


def _measure_all(
    recipe: Recipe, name: str, splits: list[cells.Split], epochs: int, parts: KeptParts
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The cells of all methods on a data set as plain data, one by one; finished parts are not made again."""
    data = zlib.crc32(b"".join(np.ascontiguousarray(array).tobytes() for one in splits for array in one.train))
    for family, methods in FAMILIES.items():
        settings = recipe.described(name)[family]
        model, flattening = recipe.settings(name, family)
        for method in methods:
            label, own = f"{recipe.key}-{name}-{method}", flattening if method in BASELINES else None
            made_with = [settings["model"], own and settings["flattening"], epochs, len(splits), data]
            found = parts.get(label, made_with, partial(_attempt, label, method, splits, model, own, epochs))
            rmse = None if found is None else found["rmse"]
            make_console(stderr=True).print(f"{recipe.key}, {name}, {method}: RMSE {formatted(rmse)}")
            yield method, found


def _attempt(
    label: str, method: str, splits: list[cells.Split], model: Model, flattening: Flattening | None, epochs: int
) -> dict[str, Any] | None:
    """A cell as plain data; None if a chain diverged."""
    try:
        return _plain(cells.measure(method, splits, model, flattening, epochs, progress=None))
    except DivergenceError as error:
        make_console(stderr=True).print(f"{label}: {error}")
        return None


def _plain(cell: Cell) -> dict[str, Any]:
    def rounded(value: Any) -> Any:
        return [rounded(one) for one in value] if isinstance(value, list) else float(f"{value:.{DIGITS}g}")

    return {name: rounded(value) for name, value in asdict(cell).items()}


def conclude(record: Record) -> Outcome:
    """Claims, figures and notes of a complete record."""
    found: dict[str, Cells] = {
        key: {
            name: {method: None if one is None else Cell(**one) for method, one in methods.items()}
            for name, methods in data_sets.items()
        }
        for key, data_sets in record["cells"].items()
    }
    paper, best = found[PAPER.key], found[BEST.key]
    figures = {f"table1-{key}": Drawing(partial(draw, own), caption(key, record)) for key, own in found.items()}
    return Outcome(claims_of(paper, best), figures, notes_of(record, paper, best))


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean over splits and its standard error; NaN for one split. The benchmarks of networks use it, too."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
