"""Table 2 from the committed records: the paper's claims, both kinds of averages, and the picture of each data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from contourmc.studies.base import CONFIDENCE, Claim, Drawing, Measured, Outcome, judge
from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.grouping import groups_of
from contourmc.studies.cifar.records import Record, read_records
from contourmc.studies.cifar.sets import SETS, ImageSet
from contourmc.studies.cifar.table import draw

EPOCHS = 950  # of the runs that stand in Table 2
ALONE = 1e-6  # the share of all other models below which the heaviest one is the average
PAPERS = "m-sgd", "sghmc", "csghmc", "sam-sgd", "sasghmc", "sacsghmc"

Cells = Mapping[str, list[Record]]  # the runs of each algorithm, one for each seed


def conclude(results: Path) -> Outcome:
    """Claims, pictures and notes from the records of both data sets."""
    claims, figures, notes, everything = [], {}, [], []
    for images in SETS.values():
        records = read_records(results / images.name)
        cells = table_cells(records)
        claims += _claims(images, cells)
        everything.append(cells)
        notes.append(_table(images, cells))
        figures[images.name] = Drawing(
            lambda images=images, records=records: draw(images, records),
            f"{images.title}: single models (dots) and their average so far (lines) along the longest runs of every"
            " algorithm, the paper's and others, averages with equal weights; and how reliable the averages are.",
        )
    return Outcome(claims, figures, [_how(everything), *notes])


def table_cells(records: list[Record]) -> Cells:
    """The runs of full length with the paper's settings, by algorithm."""
    found = {}
    for name, groups in groups_of(records).items():
        full = [group for group in groups if group[0]["results"]["epochs"] == EPOCHS and _plain(group[0])]
        if name in PAPERS and full:
            found[name] = full[0]
    return found


def _plain(record: Record) -> bool:
    settings = record["settings"]
    return settings.get("chains", 1) == 1 and not settings.get("held_out") and settings.get("learning_rate") is None


def weighted_average(record: Record) -> dict[str, float] | None:
    """The figures of the average with weights θ^ζ(J); None if they are not known, or more than one model counts.

    At the paper's ζ of 10⁶ and more, log weights differ by thousands, so that the weighted average is the prediction of
    the heaviest model, whose figures the record has. For methods without weights it is the average itself.
    """
    results = record["results"]
    if np.isclose(results["effective_models_by_weight"], results["models"]):
        return results["average"]
    if "draws" not in results:  # of the earliest records
        return None
    log_weights = np.array(results["draws"]["log_weights"])
    others = np.exp(log_weights - log_weights.max()).sum() - 1
    if others > ALONE:
        return None
    step = results["draws"]["steps"][int(log_weights.argmax())]
    epoch = step // (record["settings"]["images"] // record["settings"]["batch_size"])
    return next(entry["point"] for entry in record["history"] if entry["epoch"] == epoch)


def figures_of(cells: Cells) -> dict[str, dict[str, list[float]]]:
    """BPE, BMA with equal weights and BMA with the paper's weights in %, and their NLL, by algorithm and seed."""
    found = {}
    for name, runs in cells.items():
        results = [run["results"] for run in runs]
        weighted = [weighted_average(run) for run in runs]
        found[name] = {
            "BPE": [100 * one["best_point"]["accuracy"] for one in results],
            "BMA": [100 * one["average"]["accuracy"] for one in results],
            "weighted BMA": [100 * one["accuracy"] for one in weighted if one],
            "NLL": [one["average"]["nll"] for one in results],
            "weighted NLL": [one["nll"] for one in weighted if one],
        }
    return found


class Pooled:
    """Means over few seeds, with an error from the scatter of the seeds within all cells of a table."""

    def __init__(self, cells: Mapping[str, list[float]]):
        self._cells = cells
        residuals = np.concatenate([np.subtract(one, np.mean(one)) for one in cells.values()])
        self._freedom = sum(len(one) - 1 for one in cells.values())
        self.deviation = float(np.sqrt(np.sum(residuals**2) / self._freedom))

    def difference(self, one: str, other: str) -> Measured:
        """The difference of the means of two cells."""
        first, second = self._cells[one], self._cells[other]
        error = self.deviation * float(np.sqrt(1 / len(first) + 1 / len(second)))
        return self._measured(float(np.mean(first) - np.mean(second)), error)

    def mean(self, name: str) -> Measured:
        return self._measured(float(np.mean(self._cells[name])), self.deviation / len(self._cells[name]) ** 0.5)

    def _measured(self, value: float, error: float) -> Measured:
        reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, self._freedom)) * error
        return Measured(value, error, value - reach, value + reach)


def _claims(images: ImageSet, cells: Cells) -> list[Claim]:
    found = figures_of(cells)
    bpe, bma = (Pooled({name: one[key] for name, one in found.items()}) for key in ("BPE", "BMA"))
    weighted = Pooled({name: one["weighted BMA"] for name, one in found.items()})
    short = images.name

    def told(pooled: Pooled, one: str, other: str) -> str:
        return (
            f"{images.title}: {ALGORITHMS[one].title} {pooled.mean(one).value:.2f}, {ALGORITHMS[other].title}"
            f" {pooled.mean(other).value:.2f}; difference {pooled.difference(one, other):+.2f} (seeds:"
            f" {len(cells[one])} and"
            f" {len(cells[other])})"
        )

    def paper(one: str, other: str, which: int) -> str:
        gain = images.paper[one][which].mean - images.paper[other][which].mean
        return f"by {gain:.2f} points"

    claims = [
        Claim(
            f"{short}-similar",
            "SGHMC performs quite similarly to M-SGD (BMA)",
            told(bma, "sghmc", "m-sgd"),
            judge(bma.difference("sghmc", "m-sgd"), above=-1.0, below=1.0, unit="points between the two"),
        )
    ]
    for one, other, word in (("csghmc", "sghmc", "fixed"), ("sacsghmc", "sasghmc", "annealed")):
        titles = f"{ALGORITHMS[one].title} improves on {ALGORITHMS[other].title}"
        claims += [
            Claim(
                f"{short}-{word}-weighted",
                f"{titles} in BMA, {paper(one, other, 1)}, with the weighted averaging estimator",
                told(weighted, one, other),
                judge(weighted.difference(one, other), above=0.0, unit="points"),
            ),
            Claim(
                f"{short}-{word}-equal",
                f"the same with equal weights, {paper(one, other, 1)} in the paper",
                told(bma, one, other),
                judge(bma.difference(one, other), above=0.0, unit="points"),
            ),
            Claim(
                f"{short}-{word}-point",
                f"{titles} in BPE, {paper(one, other, 0)}",
                told(bpe, one, other),
                judge(bpe.difference(one, other), above=0.0, unit="points"),
            ),
        ]
    return claims


def _table(images: ImageSet, cells: Cells) -> str:
    """The cells of a data set beside the paper's, with both kinds of averages."""
    lines = [
        f"**{images.title}**, accuracy in %, mean over seeds (± their standard deviation), the paper's figures in"
        " brackets:",
        "",
        "| | seeds | BPE (paper) | BMA, weights θ^ζ(J) (paper) | BMA, equal weights | NLL, weights θ^ζ(J) | NLL,"
        " equal |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in figures_of(cells).items():
        point, average = images.paper[name]
        lines.append(
            f"| {ALGORITHMS[name].title} | {len(cells[name])} | {_spread(one['BPE'])} ({point.mean:.2f})"
            f" | {_spread(one['weighted BMA'])} ({average.mean:.2f}) | {_spread(one['BMA'])}"
            f" | {_spread(one['weighted NLL'], 3)} | {_spread(one['NLL'], 3)} |"
        )
    return "\n".join(lines)


def _spread(values: list[Any], digits: int = 2) -> str:
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def _how(everything: list[Cells]) -> str:
    moved = max(
        abs(one["average"]["accuracy"] - record["results"]["average"]["accuracy"])
        for cells in everything
        for runs in cells.values()
        for record in runs
        for one in record["history"]
        if one["epoch"] == EPOCHS - 50
    )
    return (
        "ResNet-20 with batches of 1,000 on an H200, evaluated every ten epochs: the best point estimate (BPE, the"
        " best of"
        " all evaluations on the test set, as in the paper) and the Bayesian model average (BMA) over the last 60%"
        " of the"
        f" run. Runs have {EPOCHS} epochs in place of 1,000, the length of our first runs, which had to fit into the"
        f" time"
        " we had on a GPU; all seeds keep it, and the schedules of annealed runs are fitted to it. In the last 50"
        " epochs no"
        f" average moves by more than {100 * moved:.2f} points. The paper averages with the weights θ^ζ(J). At ζ ="
        f" 10⁶ and"
        " 3·10⁶ log weights differ by tens of thousands from model to model, so that one of the 57 models has all the"
        " weight: the weighted average is the prediction of one model, and only the equally weighted average is near"
        " the"
        " paper's figures. Errors come from the scatter of the seeds within all cells of a data set."
    )
