"""The study: Table 1 by two recipes; what the paper claims, how it was measured, and the picture."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contourmc._core.console import make_console
from contourmc.engine.run import DivergenceError
from contourmc.studies.base import (
    Claim,
    Drawing,
    Measured,
    Options,
    Outcome,
    Record,
    Verdict,
    exact,
    judge,
    over_seeds,
    with_error,
)
from contourmc.studies.kept_parts import KeptParts
from contourmc.studies.uci import cells
from contourmc.studies.uci.cells import (
    BASELINES,
    COOLING,
    FAMILIES,
    METHODS,
    MODELS,
    WIDTH,
    Cell,
    Cells,
    Flattening,
    Model,
    load_splits,
)
from contourmc.studies.uci.recipes import BEST, PAPER, PAPERS, PAPERS_TABLE, RECIPES, TITLES, Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPERS_RUNS = 10
BLUE, GREY, ORANGE = "#0072B2", "#7F7F7F", "#D55E00"
LEAST = 0.01  # of the RMSE, which the axis of differences shows at least
OURS, THEIRS = "ours: mean ± standard error, and a dot for each split", "the paper's: mean ± standard deviation"
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


# --- Claims -------------------------------------------------------------------------------------------


def claims_of(paper: Cells, best: Cells) -> list[Claim]:
    """All claims, from the cells of both recipes."""
    return [
        *(contour_claim(paper, name, family) for family in FAMILIES for name in paper),
        *(order_claim(paper, name, "SGLD", "SGD", "An advantage of sampling for most data sets") for name in paper),
        *(order_claim(paper, name, "CSGHMC", "CSGLD", "Some improvements by the momentum") for name in paper),
        *(rmse_claim(paper, name, method) for method in METHODS for name in paper),
        *(best_claim(best, name, family) for family in FAMILIES for name in best),
    ]


def paired(methods: Mapping[str, Cell | None], one: str, other: str) -> Measured:
    """RMSE of one method minus RMSE of another, paired over splits; ±∞ if only one of them diverged."""
    first, second = methods[one], methods[other]
    if first is not None and second is not None:
        return over_seeds(np.subtract(first.rmse, second.rmse))
    return over_seeds([np.nan]) if first is second else exact(np.inf if first is None else -np.inf)


def best_baseline(methods: Mapping[str, Cell | None], family: str) -> str:
    """The baseline of a family with the smallest mean RMSE."""

    def error(method: str) -> float:
        cell = methods[method]
        return np.inf if cell is None else float(np.mean(cell.rmse))

    return min(FAMILIES[family][:2], key=error)


def contour_claim(paper: Cells, name: str, family: str) -> Claim:
    """Whether a contour method is better than both baselines of its family, or worse where the paper has it so."""
    column = {method: PAPERS_TABLE[method][name] for method in FAMILIES[family]}
    theirs = min(FAMILIES[family][:2], key=lambda method: column[method][0])
    ours = best_baseline(paper[name], family)
    says = "CSGLD consistently outperforms all the baselines"
    if family != "CSGLD":
        says = f"{family} is {_better(column[family], column[theirs])} than {theirs}"
    return _direction(
        f"{_short(name)}-{family.lower()}",
        f"{says}. {TITLES[name]}: {_of(column[family])}, {theirs} {_of(column[theirs])}",
        column[family][0] - column[theirs][0],
        paired(paper[name], family, ours),
        f"RMSE of {family} minus {ours}, the better baseline",
    )


def order_claim(paper: Cells, name: str, one: str, other: str, says: str) -> Claim:
    """Whether the order of two methods is the same as in the paper's table."""
    first, second = PAPERS_TABLE[one][name], PAPERS_TABLE[other][name]
    return _direction(
        f"{_short(name)}-{one}-{other}".lower(),
        f"{says if first[0] < second[0] else 'Table 1'}: {one} is {_better(first, second)} than {other}."
        f" {TITLES[name]}: {_of(first)}, {other} {_of(second)}",
        first[0] - second[0],
        paired(paper[name], one, other),
        f"RMSE of {one} minus {other}",
    )


def rmse_claim(paper: Cells, name: str, method: str) -> Claim:
    """Whether a mean RMSE is within the paper's standard deviation of the paper's."""
    (mean, deviation), cell = PAPERS_TABLE[method][name], paper[name][method]
    key, says = f"{_short(name)}-{method.lower()}-rmse", f"{TITLES[name]}, {method}: RMSE {_of((mean, deviation))}"
    if cell is None:
        return Claim(key, says, "diverged", Verdict("differs", f"within {deviation:g} of the paper"))
    own = over_seeds(cell.rmse)
    apart = with_error(own.value - mean, float(np.hypot(own.error, deviation / PAPERS_RUNS**0.5)))
    outcome = judge(apart, above=-deviation, below=deviation).outcome if np.isfinite(apart.error) else "undecided"
    ours = f"{own:.3f} ({own.value / mean - 1:+.0%}); difference {apart:+.3f}"
    return Claim(key, says, ours, Verdict(outcome, f"within {deviation:g} of the paper"))


def best_claim(best: Cells, name: str, family: str) -> Claim:
    """Whether a contour method is better than its baselines by our best recipe."""
    ours = best_baseline(best[name], family)
    return _direction(
        f"best-{_short(name, heating=True)}-{family.lower()}",
        f"(not in the paper) Our best recipe, {TITLES[name]}: {family} outperforms the baselines",
        None,
        paired(best[name], family, ours),
        f"RMSE of {family} minus {ours}, the better baseline",
    )


def _direction(key: str, says: str, papers: float | None, ours: Measured, quantity: str) -> Claim:
    """A claim that a difference has the sign that it has in the paper; None: that it is negative."""
    verdict = judge(ours, below=0) if papers is None or papers < 0 else judge(ours, above=0)
    theirs = "" if papers is None else f" (the paper: {papers:+.2f})"
    return Claim(key, says, f"{quantity}: {ours:+.3f}{theirs}", verdict)


def _short(name: str, heating: bool = False) -> str:
    """The name in keys of claims: the paper's column, or which target of Energy it is."""
    return "heating" if heating and name == "energy" else "energy" if name == COOLING else name


def _better(one: tuple[float, float], other: tuple[float, float]) -> str:
    return "better" if one[0] < other[0] else "worse"


def _of(pair: tuple[float, float]) -> str:
    return "{:.2f} ± {:.2f}".format(*pair)


# --- How it was measured ------------------------------------------------------------------------------


_CAPTION = (
    "Top: test RMSE, mean ± standard error over splits, with a dot for each split, and the paper's mean ± standard"
    " deviation. Bottom: the paired difference to the sampler without flattening."
)
_CAPTIONS = {
    PAPER.key: "Step 3 of Algorithm 1 with scheme `left`, step weights θ^ζ(J), m = 1000, and the paper's τ and ζ.",
    BEST.key: "Rule `scalable` and settings by cross-validation. Energy is the heating load, so the paper's column"
    " Energy is left out.",
}


def caption(key: str, record: Record) -> str:
    """What the figure of a recipe shows."""
    size = f"{record['epochs']:,} epochs, {record['splits']} splits."
    return f"{RECIPES[key].title}. {_CAPTION} {_CAPTIONS[key]} {size}"


def notes_of(record: Record, paper: Cells, best: Cells) -> list[str]:
    """Paragraphs of Markdown."""
    return [
        f"**Both recipes.** One hidden layer of 50 units, batches of 50, {record['epochs']:,} epochs, step size 5e-6,"
        " L2 1e-4, Δu = 100, momentum 0.9, and the paper's τ and ζ. Features are normalised by the training set. A"
        f" tenth of the data is the test set, in {record['splits']} splits that all methods share. Predictions are"
        f" averages of {record['models']} models. Our numbers are means ± standard errors over splits.{_spread(paper)}",
        "**The paper's algorithm.** Algorithm 1 with its step 3, scheme `left`, θ learnt from the first step with ω_k"
        " = 10/(k^0.75 + 1000), and models weighted by θ^ζ(J) for the contour methods, equally for the others. The"
        " paper does not state ω_k, u₁ and m for these data. ω_k is its choice for CIFAR. The first bin ends at u₁ ="
        " Δu, since the energy is 0 or more. m = 1000 is the most that the paper suggests. With m = 200, its choice"
        " for CIFAR-10, models of Concrete are in the last, unbounded bin, and the contour methods are worse"
        " (`results/uci/readings.json`).",
        "**What else the paper leaves open** follows a public program that the paper's first author wrote for an"
        " earlier paper, with the same layer, batch size, L2 penalty and momentum"
        " (github.com/WayneDW/Bayesian-Sparse-Deep-Learning, uci_run.py). It has ReLU, targets in their own units, the"
        " energy (N/n)·Σ(y − f)², PyTorch's initial weights, and the cooling load as the target of Energy. Models are"
        " taken from 60% of the run on, as in the same author's program for SG-MCMC. We checked this reading by the"
        " RMSE of the four baselines in the paper's table (`python -m contourmc.studies.uci.readings`). Normalised"
        " targets or a mean of squares are far from the table, and tanh is farther than ReLU. Half of the sum and"
        " models from the start are as close. Contour methods took no part in the choice.",
        _baselines(paper),
        _flattening(record, paper),
        "**Our best recipe** learns θ after burn-in by the rule w = θ(J). Activation, units, noise, burn-in, bins, ω_k"
        " and weights are chosen by cross-validation on the training sets (`python -m contourmc.studies.uci.search`),"
        " the first four by the score of SGLD or SGHMC. SGD and M-SGD share the model of their family, which does not"
        " suit them everywhere: the small noise that is best for SGLD at τ = 5 makes SGD overfit Wine. Energy is the"
        " heating load, so the paper's numbers do not apply to it.",
        *_tables(PAPER, paper),
        *_tables(BEST, best),
    ]


def _baselines(paper: Cells) -> str:
    """How far the baselines are from the paper's."""
    ratios = {
        f"{TITLES[name]}, {method}": float(np.mean(cell.rmse)) / PAPERS_TABLE[method][name][0]
        for name, methods in paper.items()
        for method, cell in methods.items()
        if cell is not None and method not in BASELINES
    }
    if not ratios:
        return "**The baselines** diverged."
    typical = float(np.exp(np.mean(np.abs(np.log(list(ratios.values()))))))
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return (
        f"**The baselines** differ from the paper's by {typical - 1:.0%} on average, from {ratios[low] - 1:+.0%}"
        f" ({low}) to {ratios[high] - 1:+.0%} ({high}). The paper's Energy seems to be the cooling load. The usual"
        " benchmark file has the heating load, on which the same methods have a third to a half of the error"
        " (`results/uci/readings.json`)."
    )


def _spread(paper: Cells) -> str:
    """How our standard deviation over splits compares with the paper's ±."""
    logs = [
        np.log(np.std(cell.rmse, ddof=1) / PAPERS_TABLE[method][name][1])
        for name, methods in paper.items()
        for method, cell in methods.items()
        if cell is not None and len(cell.rmse) > 1
    ]
    if not logs:
        return ""
    return (
        " The paper calls its ± the standard deviation of ten runs. Our standard deviation over splits is"
        f" {np.exp(np.mean(logs)):.1f} times larger on average, so the paper's runs may share one split, or its ± may"
        " be a standard error."
    )


def _flattening(record: Record, paper: Cells) -> str:
    """How much θ, the multipliers and the weights differ from a chain without flattening."""
    rows = []
    for name, methods in paper.items():
        temperature, zeta = PAPERS[name]
        for family in FAMILIES:
            cell = methods[family]
            if cell is not None:
                _, low, _, high, _ = cell.energies
                rows.append(
                    f"| {TITLES[name]} | {family} | {zeta:g} | {zeta * temperature / WIDTH:g} | {low:,.0f} to"
                    f" {high:,.0f} | {cell.theta[1]:,.1f} | {cell.multipliers[0]:.3f} to {cell.multipliers[1]:.3f} |"
                    f" {np.mean(cell.effective_models):.1f} |"
                )
    columns = ("", "", "ζ", "ζτ/Δu", "energies, 10% to 90%", "largest m·θ(i)", "multipliers", "effective models")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *rows]
    return (
        "**How much Algorithm 1 flattens.** The multiplier is 1 + (ζτ/Δu)·Δlog θ. Step 3 changes θ by ω·θ^ζ(J), and θ"
        " starts at 1/m. At ζ = 10 and ζ = 2.5 this is too little to move θ in the whole run, so the chain is an"
        " unflattened one with equal weights. It differs from its baseline by rounding errors, which grow to the"
        " difference between two independent chains in some runs. At ζ = 1 θ is learnt, but the multiplier stays near"
        " 1 and bins are visited as without flattening. Step 3 then lets the bin that is visited most take all of θ."
        " Which bin a model is in depends largely on its batch of 50. The weights θ^ζ(J) discard a part of the"
        f" {record['models']} models:\n\n" + "\n".join(lines)
    )


def _tables(recipe: Recipe, found: Cells) -> list[str]:
    """RMSE with the paper's mean in brackets, and what else a cell has."""
    quantities = {
        "test RMSE (in brackets the paper's)": ("rmse", 3),
        "test NLL": ("nll", 2),
        "share of the test set in the central 90% intervals": ("coverage", 2),
        f"effective models of {MODELS}": ("effective_models", 1),
    }
    return [
        f"**{recipe.title}**, {title}:\n\n{table(found, quantity, digits)}"
        for title, (quantity, digits) in quantities.items()
    ]


def table(found: Cells, quantity: str = "rmse", digits: int = 3) -> str:
    """A quantity of every cell as a table in Markdown; for the RMSE with paired differences, and the paper's."""
    lines = ["| | " + " | ".join(TITLES[name] for name in found) + " |", "|---" * (1 + len(found)) + "|"]
    for family, methods in FAMILIES.items():
        for method in methods:
            row = []
            for name in found:
                cell, theirs = found[name][method], PAPERS_TABLE[method].get(name)
                ours = formatted(None if cell is None else getattr(cell, quantity), digits)
                row.append(ours + (f" ({theirs[0]:.2f})" if quantity == "rmse" and theirs else ""))
            lines.append(f"| {method} | {' | '.join(row)} |")
        if quantity == "rmse":
            pairs = (f"{paired(found[name], family, BASELINES[family]):+.{digits}f}" for name in found)
            lines.append(f"| {family} − {BASELINES[family]} | {' | '.join(pairs)} |")
    return "\n".join(lines)


def formatted(values: Sequence[float] | None, digits: int = 3) -> str:
    """The mean over splits ± its standard error."""
    return "diverged" if values is None else f"{over_seeds(values):.{digits}f}"


# --- The picture --------------------------------------------------------------------------------------


def draw(cells: Mapping[str, Mapping[str, Cell | None]]) -> "Figure":
    """Above, the RMSE of every method; below, the contour methods minus their samplers without flattening."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(cells), figsize=(2.4 + 3.4 * len(cells), 7.5), layout="constrained", squeeze=False, height_ratios=(2, 1)
    )
    for column, (name, methods) in enumerate(cells.items()):
        _draw_methods(axes[0, column], methods, name)
        _draw_differences(axes[1, column], methods)
    pairs = [f"{contour} − {baseline}" for contour, baseline in BASELINES.items()]
    for row, labels in enumerate((list(METHODS), pairs)):
        axes[row, 0].set_yticks(range(len(labels)), labels, fontsize=13)
        for ax in axes[row, 1:]:
            ax.set_yticks(range(len(labels)), [""] * len(labels))
    marks = axes[0, 0].plot([], [], "o", color=GREY, markersize=8)
    marks += axes[0, 0].plot([], [], "D", color=ORANGE, markerfacecolor="white", markersize=7)
    figure.legend(marks, (OURS, THEIRS), loc="outside upper center", ncols=2 if len(cells) > 1 else 1, fontsize=13)
    return figure


def _draw_methods(ax: "Axes", methods: Mapping[str, Cell | None], name: str) -> None:
    for place, method in enumerate(METHODS):
        cell, theirs = methods[method], PAPERS_TABLE[method].get(name)
        if cell is not None:
            _draw_splits(ax, cell.rmse, place - 0.12, BLUE if method in BASELINES else GREY)
        if theirs is not None:
            ax.errorbar(
                theirs[0], place + 0.2, xerr=theirs[1], fmt="D", color=ORANGE, markerfacecolor="white", markersize=7,
                capsize=4,
            )  # fmt: skip
    ax.axhline(2.5, color="#BBBBBB", linewidth=1)
    ax.set_title(TITLES[name], fontsize=15)
    ax.set_xlabel("test RMSE", fontsize=13)
    ax.tick_params(axis="x", labelsize=11)
    ax.set_ylim(5.6, -0.6)


def _draw_differences(ax: "Axes", methods: Mapping[str, Cell | None]) -> None:
    for place, (contour, baseline) in enumerate(BASELINES.items()):
        first, second = methods[contour], methods[baseline]
        if first is not None and second is not None:
            _draw_splits(ax, np.subtract(first.rmse, second.rmse), place, BLUE)
            least = LEAST * float(np.mean(second.rmse))  # differences by rounding errors stay at 0
            ax.plot([-least, least], [place, place], alpha=0.0)
    ax.axvline(0, color="black", linewidth=1)
    ax.set_xlabel("paired difference of RMSE\n← contour better", fontsize=12)
    ax.tick_params(axis="x", labelsize=11)
    ax.set_ylim(1.5, -0.5)
    ax.locator_params(axis="x", nbins=4)


def _draw_splits(ax: "Axes", values: list[float] | np.ndarray, place: float, color: str) -> None:
    mean = over_seeds(values)
    ax.plot(values, np.full(len(values), place), ".", color=color, alpha=0.35)
    ax.errorbar(mean.value, place, xerr=mean.error, fmt="o", color=color, markersize=8, capsize=4)
