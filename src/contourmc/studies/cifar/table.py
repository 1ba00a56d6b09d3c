"""The records of runs as one half of the paper's Table 2: in words and numbers, and as a picture."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, IMAGES
from contourmc.studies.cifar.records import Record, network_of
from contourmc.studies.cifar.sets import ImageSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMNS = ("algorithm", "epochs", "seeds", "BPE", "BMA", "NLL", "ECE", "s/epoch")
FEWEST = 20  # test images in a bin of confidence that the picture shows
NOTE, OF_THE_PAPER = "BPE and BMA in %; ± is the standard error over seeds", ", in the paper the standard deviation"


def make_table(images: ImageSet, records: list[Record]) -> Table:
    """A row for each setting, means over seeds; below them the paper's, if a run is of the paper's size.

    Algorithms that were not run have the paper's row alone, unless there is one record, just made.
    """
    networks = _networks(records)
    beside = any(record["settings"]["images"] == IMAGES and record["settings"]["depth"] == 3 for record in records)
    table = Table(
        title=f"{' and '.join(networks)} on {images.title}", title_justify="left", box=SIMPLE_HEAD,
        caption=f"{NOTE}{OF_THE_PAPER if beside else ''}.", caption_justify="left",
        padding=0, show_edge=False,
    )  # fmt: skip
    for name in COLUMNS:
        first = name == "algorithm"
        table.add_column(name, justify="left" if first else "right", no_wrap=not first, min_width=9 if first else None)
    for name, algorithm in ALGORITHMS.items():
        groups: dict[str, list[Record]] = {}
        for record in records:
            if record["settings"]["algorithm"] == name:
                groups.setdefault(_setting(record), []).append(record)
        for group in groups.values():
            table.add_row(*_row(algorithm.title, group, several=len(networks) > 1))
        if beside and (groups or len(records) > 1):
            if not groups:
                table.add_row(algorithm.title, "not run")
            point, average = (f"{figure.mean:.2f}±{figure.deviation:.2f}" for figure in images.paper[name])
            table.add_row(" paper", "1000", "10", point, average, style="dim")
    return table


def _row(title: str, group: list[Record], several: bool) -> list[str]:
    """The cells of runs that differ by their seeds; `several`: name the network."""
    settings, rows = group[0]["settings"], [record["results"] for record in group]
    done, ends = rows[0]["epochs"], [row["average"] for row in rows if row["average"] is not None]
    return [
        ", ".join([title, *([network_of(group[0])] if several else []), *_unusual(settings)]),
        str(done) if done == settings["epochs"] else f"{done} of {settings['epochs']}",
        str(len(rows)),
        _mean([100 * row["best_point"]["accuracy"] for row in rows], 2),
        _mean([100 * end["accuracy"] for end in ends], 2),
        _mean([end["nll"] for end in ends], 3),
        _mean([end["ece"] for end in ends], 3),
        f"{np.mean([row['seconds'] / row['epochs'] for row in rows]):.3f}",
    ]


def _networks(records: list[Record]) -> list[str]:
    """The networks of all runs, the largest first."""
    return list(dict.fromkeys(network_of(record) for record in sorted(records, key=_depth, reverse=True)))


def _depth(record: Record) -> int:
    return record["settings"]["depth"]


def _setting(record: Record) -> str:
    """What two runs that differ by their seed alone have in common."""
    settings = record["settings"]
    names = ("algorithm", "epochs", "images", "batch_size", "depth", "precision", "kernel")
    common = {name: settings.get(name) for name in names}
    return json.dumps([common, _unusual(settings), record["results"]["epochs"]], sort_keys=True)


def _unusual(settings: dict[str, Any]) -> list[str]:
    """What the paper did otherwise, in words; but for the network."""
    words = [] if settings["images"] == IMAGES else [f"{settings['images']:,} images"]
    words += [] if settings["batch_size"] == BATCH_SIZE else [f"batch {settings['batch_size']}"]
    return words + [f"no {name}" for name, switch in settings["augmentation"].items() if switch is False]


def _mean(values: list[float], digits: int) -> str:
    """The mean, with its standard error where there are several seeds."""
    if not values:
        return "–"
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return f"{np.mean(values):.{digits}f}" + ("" if error is None else f"±{error:.{digits}f}")


def draw(images: ImageSet, records: list[Record]) -> "Figure":
    """Accuracy along the longest run of each algorithm, of single models and of the average so far; and how reliable
    the averages are.
    """
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    right.plot([0, 1], [0, 1], color="k", lw=1, ls="--", label="calibrated")
    longest = _longest(records)
    for record in longest:
        _draw_run(record, left, right)
    ends = [100 * record["results"]["last_point"]["accuracy"] for record in longest]
    left.set(xlabel="epoch", ylabel="test accuracy, %", title="Single models (dots), and their average so far (lines)")
    left.set_ylim(min(ends) - 8, None)
    right.set(xlabel="confidence of the average", ylabel="accuracy", title="Reliability of the model averages")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8)
    figure.suptitle(f"{' and '.join(_networks(longest))} on {images.title}", fontweight="bold")
    return figure


def _longest(records: list[Record]) -> list[Record]:
    """Of each algorithm the run with the most epochs; of several, the first."""
    chosen: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: -record["results"]["epochs"]):
        chosen.setdefault(record["settings"]["algorithm"], record)
    return [chosen[name] for name in ALGORITHMS if name in chosen]


def _draw_run(record: Record, left: "Axes", right: "Axes") -> None:
    history, results, algorithm = record["history"], record["results"], record["settings"]["algorithm"]
    color = f"C{list(ALGORITHMS).index(algorithm)}"
    name = f"{ALGORITHMS[algorithm].title}, {results['epochs']} epochs"
    epochs = np.array([entry["epoch"] for entry in history])
    points = np.array([100 * entry["point"]["accuracy"] for entry in history])
    averaged = np.array([entry["average"] is not None for entry in history])
    average = np.array([100 * entry["average"]["accuracy"] for entry in history if entry["average"] is not None])
    left.plot(epochs, points, ".", color=color, ms=3, alpha=0.5)
    left.plot(epochs[averaged], average, color=color, lw=2.2, label=name)
    if averaged.any():
        confidence, accuracy, share = (np.array(values) for values in results["reliability"].values())
        many = share * record["settings"]["test_images"] >= FEWEST
        label = f"{name}, ECE {results['average']['ece']:.3f}"
        right.plot(confidence[many], accuracy[many], "o-", color=color, ms=3, lw=1.2, label=label)
