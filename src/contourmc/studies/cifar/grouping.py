"""Runs that differ by their seeds alone, and means over them, as the tables show them."""

import json
from typing import Any

import numpy as np

from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, IMAGES
from contourmc.studies.cifar.records import Record, kernel_of


def groups_of(records: list[Record]) -> dict[str, list[list[Record]]]:
    """By algorithm, in the paper's order, the runs that differ by their seeds alone."""
    groups: dict[str, dict[str, list[Record]]] = {name: {} for name in ALGORITHMS}
    for record in records:
        groups[record["settings"]["algorithm"]].setdefault(_setting(record), []).append(record)
    return {name: list(by_setting.values()) for name, by_setting in groups.items() if by_setting}


def longest(records: list[Record]) -> list[list[Record]]:
    """The runs with the most epochs of each algorithm."""
    return [max(groups, key=lambda group: group[0]["results"]["epochs"]) for groups in groups_of(records).values()]


def _setting(record: Record) -> str:
    """What two runs that differ by their seed alone have in common."""
    settings = record["settings"]
    names = (
        "algorithm", "epochs", "images", "batch_size", "depth", "precision", "chains", "held_out", "learning_rate",
        "temperature",
    )  # fmt: skip
    earlier = {"chains": 1, "held_out": 0}  # what the first records do not say
    common = {name: settings.get(name, earlier.get(name)) for name in names}
    return json.dumps([common, kernel_of(record), unusual(settings), record["results"]["epochs"]], sort_keys=True)


def unusual(settings: dict[str, Any]) -> list[str]:
    """What the paper did otherwise, in words; but for the network."""
    words = [] if settings["images"] == IMAGES else [f"{settings['images']:,} images"]
    words += [] if settings["batch_size"] == BATCH_SIZE else [f"batch {settings['batch_size']}"]
    words += [] if settings.get("chains", 1) == 1 else [f"{settings['chains']} chains"]
    words += [] if not settings.get("held_out") else [f"tested on {settings['held_out']:,} held out"]
    words += [] if settings.get("learning_rate") is None else [f"learning rate {settings['learning_rate']:g}"]
    words += [] if settings.get("temperature") is None else [f"temperature {settings['temperature']:g}"]
    return words + [f"no {name}" for name, switch in settings["augmentation"].items() if switch is False]


def mean_of(values: list[float], digits: int, *, error: bool = True) -> str:
    """The mean, with its standard error where there are several seeds."""
    if not values:
        return "–"
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean}±{np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}" if error and len(values) > 1 else mean
