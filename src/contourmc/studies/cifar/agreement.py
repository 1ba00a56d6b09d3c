"""Table 2 from the committed records: the paper's claims, both kinds of averages, and the picture of each data set."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from contourmc.studies.base import CONFIDENCE, Claim, Drawing, Measured, Outcome, difference, judge, over_seeds
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
    own = [settings.get(name) for name in ("learning_rate", "temperature")]
    return settings.get("chains", 1) == 1 and not settings.get("held_out") and own == [None, None]


def weighted_average(record: Record) -> dict[str, float] | None:
    """The figures of the average with weights θ^ζ(J); None if they are not known, or more than one model counts.

    At the paper's ζ of 10⁶ and more, log weights differ by hundreds of thousands: the weighted average is the
    prediction of the heaviest model, whose figures the record has. Without weights it is the average itself.
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
    short = images.name
    bpe, bma = (Pooled({name: one[key] for name, one in found.items()}) for key in ("BPE", "BMA"))

    def told(key: str, one: str, other: str, gap: Measured) -> str:
        means = [f"{ALGORITHMS[name].title} {np.mean(found[name][key]):.2f}" for name in (one, other)]
        shown = f"{gap:+.2f}" if np.isfinite(gap.error) else f"{gap.value:+.2f}"
        seeds = " and ".join(str(len(found[name][key])) for name in (one, other))
        return f"{images.title}: {', '.join(means)}; difference {shown} (seeds: {seeds})"

    def paper(one: str, other: str, which: int) -> str:
        gain = images.paper[one][which].mean - images.paper[other][which].mean
        return f"by {gain:.2f} points"

    similar = bma.difference("sghmc", "m-sgd")
    claims = [
        Claim(
            f"{short}-similar",
            "SGHMC performs quite similarly to M-SGD (BMA)",
            told("BMA", "sghmc", "m-sgd", similar),
            judge(similar, above=-1.0, below=1.0, unit="points between the two"),
        )
    ]
    for one, other, word in (("csghmc", "sghmc", "fixed"), ("sacsghmc", "sasghmc", "annealed")):
        titles = f"{ALGORITHMS[one].title} improves on {ALGORITHMS[other].title}"
        # The weighted average is a single model, which scatters more than an average: each pair has its own error.
        weighted = difference(*(over_seeds(found[name]["weighted BMA"]) for name in (one, other)))
        for key, quantity, says, gap in (
            (
                "weighted",
                "weighted BMA",
                f"{titles} in BMA, {paper(one, other, 1)}, with the paper's weights",
                weighted,
            ),
            (
                "equal",
                "BMA",
                f"{titles} in BMA, {paper(one, other, 1)}, with equal weights",
                bma.difference(one, other),
            ),
            ("point", "BPE", f"{titles} in BPE, {paper(one, other, 0)}", bpe.difference(one, other)),
        ):
            verdict = judge(gap, above=0.0, unit="points")
            claims.append(Claim(f"{short}-{word}-{key}", says, told(quantity, one, other, gap), verdict))
    gains = {name: bma.mean(name).value - bpe.mean(name).value for name in found}
    least = min(gains, key=lambda name: gains[name])
    claims.append(
        Claim(
            f"{short}-average",
            "BMA consistently outperforms BPE",
            f"{images.title}, equal weights: by {gains[least]:.2f} points ({ALGORITHMS[least].title}) or more",
            judge(_gain(found[least]), above=0.0, unit="points, for the least gain"),
        )
    )
    for name in found:
        for key, pooled, which in (("bpe", bpe, 0), ("bma", bma, 1)):
            theirs, own = images.paper[name][which], pooled.mean(name)
            apart = replace(own, value=own.value - theirs.mean, low=own.low - theirs.mean, high=own.high - theirs.mean)
            claims.append(
                Claim(
                    f"{short}-{name}-{key}",
                    f"{images.title}, {ALGORITHMS[name].title}: {key.upper()} {theirs.mean:.2f} ±"
                    f" {theirs.deviation:.2f}",
                    f"{own:.2f}{' with equal weights' if which else ''}; difference {apart.value:+.2f}",
                    judge(apart, above=-1.0, below=1.0, unit="point from the paper"),
                )
            )
    return claims


def _gain(one: dict[str, list[float]]) -> Measured:
    """BMA less BPE, paired by seeds."""
    return over_seeds(np.subtract(one["BMA"], one["BPE"]))


def _table(images: ImageSet, cells: Cells) -> str:
    """The cells of a data set and the paper's, with both kinds of averages."""
    lines = [
        f"**{images.title}**, accuracy in %, mean over seeds (± their standard deviation), the paper's figures in"
        " brackets:",
        "",
        "| | seeds | BPE (paper) | BMA, weights θ^ζ(J) (paper) | BMA, equal weights | NLL, weights θ^ζ(J) | NLL, equal"
        " |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in figures_of(cells).items():
        point, average = images.paper[name]
        lines.append(
            f"| {ALGORITHMS[name].title} | {len(cells[name])} | {_spread(one['BPE'])} ({point.mean:.2f}) |"
            f" {_spread(one['weighted BMA'])} ({average.mean:.2f}) | {_spread(one['BMA'])} |"
            f" {_spread(one['weighted NLL'], 3)} | {_spread(one['NLL'], 3)} |"
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
        " best of all evaluations on the test set, as in the paper) and the Bayesian model average (BMA) over the last"
        f" 60% of the run. Runs have {EPOCHS} epochs in place of 1,000, the length of our first runs, which had to fit"
        " into the time we had on a GPU; all seeds keep it, and the schedules of annealed runs are fitted to it. In"
        f" the last 50 epochs no average moves by more than {100 * moved:.2f} points. The paper averages with the"
        " weights θ^ζ(J). At ζ = 10⁶ and 3·10⁶ log weights differ by hundreds of thousands from model to model, so"
        " that one of the 57 models has all the weight: the weighted average is the prediction of one model, and only"
        " the equally weighted average is near the paper's figures. Errors of BPE and of equally weighted BMA come"
        " from the scatter of the seeds within all cells of a data set. The paper's text speaks of gains of 3.5 points"
        " in BPE and 2 in BMA on CIFAR-100, its table of 2.51 and 2.51; the claims are by the table."
    )
