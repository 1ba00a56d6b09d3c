"""The records of runs as one half of the paper's Table 2: in words and numbers, and as a picture."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, IMAGES
from contourmc.studies.cifar.records import Record, kernel_of, network_of
from contourmc.studies.cifar.sets import ImageSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMNS = ("algorithm", "epochs", "seeds", "BPE", "BMA", "NLL", "ECE", "s/epoch")
FEWEST = 20  # test images in a bin of confidence that the picture shows
DRAWS_NOTE = (
    "Energies and multipliers: of all kept draws. Models: the mean accuracy of single ones in %. Best BMA: the best"
    " average so far, after which epoch. Worth: of how many equally weighted models, by the weights θ^ζ, and by θ."
)
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
    groups = _groups(records)
    for name, algorithm in ALGORITHMS.items():
        for group in groups.get(name, ()):
            table.add_row(*_row(algorithm.title, group, several=len(networks) > 1))
        if beside and name in images.paper and (name in groups or len(records) > 1):
            if name not in groups:
                table.add_row(algorithm.title, "not run")
            point, average = (f"{figure.mean:.2f}±{figure.deviation:.2f}" for figure in images.paper[name])
            table.add_row(" paper", "1000", "10", point, average, style="dim")
    return table


def make_draws_table(records: list[Record]) -> Table:
    """What the models that are averaged were like, in the longest runs of each algorithm, over all seeds."""
    table = Table(
        "algorithm", title="The models that are averaged", title_justify="left", box=SIMPLE_HEAD, padding=0,
        show_edge=False, caption=DRAWS_NOTE, caption_justify="left",
    )  # fmt: skip
    for name in ("energies/1000", "multipliers", "models", "best BMA", "epoch", "worth by θ^ζ", "by θ"):
        table.add_column(name, justify="right")
    for group in _longest(records):
        rows = [record["results"] for record in group if record["results"]["average"] is not None]
        if rows:
            best = [max(_averages(record)) for record in group]
            table.add_row(
                ALGORITHMS[group[0]["settings"]["algorithm"]].title,
                _range([energy / 1000 for row in rows for energy in row["energies"]], 0),
                _range([multiplier for row in rows for multiplier in row["multipliers"]], 1),
                _mean([100 * point for record in group for point in _points(record)], 1, error=False),
                _mean([100 * accuracy for accuracy, _ in best], 2, error=False),
                _range([epoch for _, epoch in best], 0),
                _mean([row["effective_models_by_weight"] for row in rows], 0, error=False),
                _mean([row["effective_models_by_theta"] for row in rows], 0, error=False),
            )
    return table


def _points(record: Record) -> list[float]:
    """The accuracy of every single model after burn-in."""
    burn_in = record["settings"]["burn_in_epochs"]
    return [entry["point"]["accuracy"] for entry in record["history"] if entry["epoch"] > burn_in]


def _averages(record: Record) -> list[tuple[float, int]]:
    """The accuracy of the average so far, and after which epoch."""
    return [(entry["average"]["accuracy"], entry["epoch"]) for entry in record["history"] if entry["average"]]


def _range(values: list[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} … {high}"


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


def _groups(records: list[Record]) -> dict[str, list[list[Record]]]:
    """By algorithm, in the paper's order, the runs that differ by their seeds alone."""
    groups: dict[str, dict[str, list[Record]]] = {name: {} for name in ALGORITHMS}
    for record in records:
        groups[record["settings"]["algorithm"]].setdefault(_setting(record), []).append(record)
    return {name: list(by_setting.values()) for name, by_setting in groups.items() if by_setting}


def _longest(records: list[Record]) -> list[list[Record]]:
    """The runs with the most epochs of each algorithm."""
    return [max(groups, key=lambda group: group[0]["results"]["epochs"]) for groups in _groups(records).values()]


def _setting(record: Record) -> str:
    """What two runs that differ by their seed alone have in common."""
    settings = record["settings"]
    names = ("algorithm", "epochs", "images", "batch_size", "depth", "precision", "chains", "held_out", "learning_rate")
    common = {name: settings.get(name) for name in names}
    return json.dumps([common, kernel_of(record), _unusual(settings), record["results"]["epochs"]], sort_keys=True)


def _unusual(settings: dict[str, Any]) -> list[str]:
    """What the paper did otherwise, in words; but for the network."""
    words = [] if settings["images"] == IMAGES else [f"{settings['images']:,} images"]
    words += [] if settings["batch_size"] == BATCH_SIZE else [f"batch {settings['batch_size']}"]
    words += [] if settings.get("chains", 1) == 1 else [f"{settings['chains']} chains"]
    words += [] if not settings.get("held_out") else [f"tested on {settings['held_out']:,} held out"]
    words += [] if settings.get("learning_rate") is None else [f"learning rate {settings['learning_rate']:g}"]
    return words + [f"no {name}" for name, switch in settings["augmentation"].items() if switch is False]


def _mean(values: list[float], digits: int, *, error: bool = True) -> str:
    """The mean, with its standard error where there are several seeds."""
    if not values:
        return "–"
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean}±{np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}" if error and len(values) > 1 else mean


def draw(images: ImageSet, records: list[Record]) -> "Figure":
    """Accuracy along the longest runs of each algorithm, one for each seed, of single models and of the average so far;
    and how reliable the averages are.
    """
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    right.plot([0, 1], [0, 1], color="k", lw=1, ls="--", label="calibrated")
    longest = _longest(records)
    for group in longest:
        _draw_runs(group, left, right)
    shown = [record for group in longest for record in group]
    ends = [100 * record["results"]["last_point"]["accuracy"] for record in shown]
    left.set(xlabel="epoch", ylabel="test accuracy, %", title="Single models (dots), and their average so far (lines)")
    left.set_ylim(min(ends) - 12, None)
    right.set(xlabel="confidence of the average", ylabel="accuracy", title="Reliability of the model averages")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    left.legend(loc="lower center", ncols=2, framealpha=0.9, edgecolor="none", fontsize=8)
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(f"{' and '.join(_networks(shown))} on {images.title}", fontweight="bold")
    return figure


def _draw_runs(group: list[Record], left: "Axes", right: "Axes") -> None:
    """Runs that differ by their seeds alone, in one colour."""
    algorithm, count = group[0]["settings"]["algorithm"], len(group)
    color = f"C{list(ALGORITHMS).index(algorithm)}"
    title, epochs = ALGORITHMS[algorithm].title, group[0]["results"]["epochs"]
    seeds = f"{count} seeds" if count > 1 else "1 seed"
    errors = [record["results"]["average"]["ece"] for record in group if record["results"]["average"] is not None]
    for i, record in enumerate(group):
        history, first = record["history"], i == 0
        averages = [(epoch, 100 * accuracy) for accuracy, epoch in _averages(record)]
        points = [(entry["epoch"], 100 * entry["point"]["accuracy"]) for entry in history]
        left.plot(*np.transpose(points), ".", color=color, ms=3, alpha=0.5 / count)
        left.plot(
            *np.reshape(averages, (-1, 2)).T, color=color, lw=1.6, label=f"{title}, {epochs} epochs" if first else None
        )
        if averages:
            confidence, accuracy, share = (np.array(values) for values in record["results"]["reliability"].values())
            many = share * record["settings"]["test_images"] >= FEWEST
            label = f"{title}, {seeds}, ECE {np.mean(errors):.3f}" if first else None
            right.plot(confidence[many], accuracy[many], "o-", color=color, ms=3, lw=1.2, label=label)
