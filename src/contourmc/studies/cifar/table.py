"""The records of runs as one half of the paper's Table 2: in words and numbers, and as a picture."""

from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.studies.cifar.algorithms import ALGORITHMS, IMAGES
from contourmc.studies.cifar.grouping import groups_of, longest, mean_of, unusual
from contourmc.studies.cifar.records import Record, network_of
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
    groups = groups_of(records)
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
    for group in longest(records):
        rows = [record["results"] for record in group if record["results"]["average"] is not None]
        if rows:
            best = [max(_averages(record)) for record in group]
            table.add_row(
                ALGORITHMS[group[0]["settings"]["algorithm"]].title,
                _range([energy / 1000 for row in rows for energy in row["energies"]], 0),
                _range([multiplier for row in rows for multiplier in row["multipliers"]], 1),
                mean_of([100 * point for record in group for point in _points(record)], 1, error=False),
                mean_of([100 * accuracy for accuracy, _ in best], 2, error=False),
                _range([epoch for _, epoch in best], 0),
                mean_of([row["effective_models_by_weight"] for row in rows], 0, error=False),
                mean_of([row["effective_models_by_theta"] for row in rows], 0, error=False),
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
        ", ".join([title, *([network_of(group[0])] if several else []), *unusual(settings)]),
        str(done) if done == settings["epochs"] else f"{done} of {settings['epochs']}",
        str(len(rows)),
        mean_of([100 * row["best_point"]["accuracy"] for row in rows], 2),
        mean_of([100 * end["accuracy"] for end in ends], 2),
        mean_of([end["nll"] for end in ends], 3),
        mean_of([end["ece"] for end in ends], 3),
        f"{np.mean([row['seconds'] / row['epochs'] for row in rows]):.3f}",
    ]


def _networks(records: list[Record]) -> list[str]:
    """The networks of all runs, the largest first."""
    return list(dict.fromkeys(network_of(record) for record in sorted(records, key=_depth, reverse=True)))


def _depth(record: Record) -> int:
    return record["settings"]["depth"]


def draw(images: ImageSet, records: list[Record]) -> "Figure":
    """Accuracy along the longest runs of each algorithm, one for each seed, of single models and of the average so far;
    and how reliable the averages are.
    """
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
    right.plot([0, 1], [0, 1], color="k", lw=1, ls="--")
    groups = longest(records)
    for group in groups:
        _draw_runs(group, left, right)
    shown = [record for group in groups for record in group]
    ends = [100 * record["results"]["last_point"]["accuracy"] for record in shown]
    left.set(xlabel="epoch", ylabel="test accuracy, %", title="Single models (dots), and their average so far (lines)")
    left.set_ylim(min(ends) - 12, None)
    right.set(
        xlabel="confidence of the average", ylabel="accuracy", title="Reliability of the averages; dashed: calibrated"
    )
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(f"{' and '.join(_networks(shown))} on {images.title}", fontweight="bold")
    return figure


def _draw_runs(group: list[Record], left: "Axes", right: "Axes") -> None:
    """Runs that differ by their seeds alone, in one colour."""
    import matplotlib

    algorithm, count = group[0]["settings"]["algorithm"], len(group)
    index = list(ALGORITHMS).index(algorithm)
    color = matplotlib.colormaps["tab20"](2 * index % 20 + index // 10)  # ten strong colours, then ten pale ones
    title, epochs = ALGORITHMS[algorithm].title, group[0]["results"]["epochs"]
    seeds = f"{count} seeds" if count > 1 else "1 seed"
    errors = [record["results"]["average"]["ece"] for record in group if record["results"]["average"] is not None]
    label = f"{title}: {epochs} epochs, {seeds}" + (f", ECE {np.mean(errors):.3f}" if errors else "")
    for i, record in enumerate(group):
        history, first = record["history"], i == 0
        averages = [(epoch, 100 * accuracy) for accuracy, epoch in _averages(record)]
        points = [(entry["epoch"], 100 * entry["point"]["accuracy"]) for entry in history]
        left.plot(*np.transpose(points), ".", color=color, ms=3, alpha=0.5 / count)
        mark = "D" if len(averages) == 1 else None  # a line of one point cannot be seen
        left.plot(
            *np.reshape(averages, (-1, 2)).T, color=color, lw=1.6, marker=mark, ms=5, label=label if first else None
        )
        if averages:
            confidence, accuracy, share = (np.array(values) for values in record["results"]["reliability"].values())
            many = share * record["settings"]["test_images"] >= FEWEST
            right.plot(confidence[many], accuracy[many], "o-", color=color, ms=3, lw=1.2)
