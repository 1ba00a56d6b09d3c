"""The study: every cell of Table 1, compared with the paper's table; claims and figure."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc._core.console import make_console
from contourmc.engine.run import DivergenceError
from contourmc.studies.base import Claim, Options, Outcome, within
from contourmc.studies.kept_parts import KeptParts
from contourmc.studies.uci.cells import (
    BASELINES,
    FAMILIES,
    MODELS,
    PAPERS,
    Cell,
    Model,
    Split,
    chosen,
    load_splits,
    measure,
    scores,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Mean and standard deviation over ten runs.
PAPERS_TABLE: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "SGD": {"energy": (1.13, 0.07), "concrete": (4.60, 0.14), "yacht": (0.81, 0.08), "wine": (0.65, 0.01)},
    "SGLD": {"energy": (1.08, 0.07), "concrete": (4.12, 0.10), "yacht": (0.72, 0.07), "wine": (0.63, 0.01)},
    "CSGLD": {"energy": (1.02, 0.06), "concrete": (3.98, 0.11), "yacht": (0.69, 0.06), "wine": (0.62, 0.01)},
    "M-SGD": {"energy": (0.95, 0.07), "concrete": (4.32, 0.27), "yacht": (0.73, 0.08), "wine": (0.71, 0.02)},
    "SGHMC": {"energy": (0.77, 0.06), "concrete": (4.25, 0.19), "yacht": (0.66, 0.07), "wine": (0.67, 0.02)},
    "CSGHMC": {"energy": (0.76, 0.06), "concrete": (4.15, 0.20), "yacht": (0.72, 0.09), "wine": (0.65, 0.01)},
}
QUICK = ("yacht",)

# The cells by data set and method; None where a chain diverged.
Cells = Mapping[str, Mapping[str, Cell | None]]


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """All methods on all data sets; a quick run takes the smallest data set, two splits and fewer epochs."""
    epochs = options.size.length
    cells: dict[str, dict[str, Cell | None]] = {}
    for name in QUICK if options.quick else PAPERS:
        splits = load_splits(name, options.size.seeds, options.data)
        for method, cell in measure_all(name, splits, epochs, KeptParts(options.parts)):
            cells.setdefault(name, {})[method] = cell
            plain = None if cell is None else asdict(cell)
            results.setdefault("cells", {}).setdefault(name, {})[method] = plain
    results |= _details(cells)
    make_console().print(_table(cells))
    return Outcome(_claims(cells), results, {"table1": _figure(cells)}, _notes(cells, epochs))


def measure_all(name: str, splits: list[Split], epochs: int, kept: KeptParts) -> Iterator[tuple[str, Cell | None]]:
    """The cells of all methods on a data set, one by one; those that are kept are not made again."""
    console = make_console(stderr=True)
    data = zlib.crc32(b"".join(np.ascontiguousarray(array).tobytes() for one in splits for array in one.train))
    for family, methods in FAMILIES.items():
        model, flattening = chosen(name, family)
        for method in methods:
            settings = flattening if method in BASELINES else None

            def make(method: str = method, model: Model = model, settings: Any = settings) -> Any:
                try:
                    return asdict(measure(method, splits, model, settings, epochs, progress=None))
                except DivergenceError as error:
                    console.print(f"{name}, {method}: {error}")
                    return None

            made_with = [asdict(model), None if settings is None else asdict(settings), epochs, len(splits), data]
            plain = kept.get(f"{name}-{method}", made_with, make)
            cell = None if plain is None else Cell(**plain)
            console.print(f"{name}, {method}: RMSE {_tell(cell)}")
            yield method, cell


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean over splits and its standard error; NaN for one split."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


def paired(cells: Cells, name: str, method: str) -> Float[np.ndarray, " splits"] | None:
    """The RMSE of a contour method minus that of its baseline, on each split; None if one of them diverged."""
    contour, baseline = cells[name][method], cells[name][BASELINES[method]]
    return None if contour is None or baseline is None else np.subtract(contour.rmse, baseline.rmse)


def _tell(cell: Cell | None, quantity: str = "rmse", digits: int = 3) -> str:
    return "diverged" if cell is None else _number(getattr(cell, quantity), digits)


def _number(values: Sequence[float] | np.ndarray | None, digits: int = 3, sign: str = "") -> str:
    """The mean over splits ± its standard error."""
    if values is None:
        return "–"
    mean, error = mean_and_error(values)
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"


def _table(cells: Cells) -> Table:
    """Our numbers, with the paper's below each."""
    caption = (
        "ours: mean ± standard error over splits\n(the paper's: mean ± standard deviation over its ten runs)\n"
        "difference: the contour method minus the one above it, paired over splits"
    )
    table = Table(
        "", *(name.title() for name in cells), title="test RMSE", caption=caption, box=SIMPLE_HEAD, pad_edge=False
    )
    for family, methods in FAMILIES.items():
        for method in methods:
            ours = [_tell(cells[name][method]) for name in cells]
            papers = ["({:.2f} ± {:.2f})".format(*PAPERS_TABLE[method][name]) for name in cells]
            table.add_row(method, *map("{}\n{}".format, ours, papers))
        ours = [_number(paired(cells, name, family), sign="+") for name in cells]
        papers = [PAPERS_TABLE[family][name][0] - PAPERS_TABLE[BASELINES[family]][name][0] for name in cells]
        table.add_row("difference", *map("{}\n({:+.2f})".format, ours, papers), end_section=True)
    return table


def _claims(cells: Cells) -> list[Claim]:
    claims = []
    for family in BASELINES:
        for name in cells:
            mean, deviation = PAPERS_TABLE[family][name]
            cell = cells[name][family]
            rmse = np.inf if cell is None else mean_and_error(cell.rmse)[0]
            paper, ours = f"{name.title()}, {family}: RMSE {mean:.2f} ± {deviation:.2f}", f"RMSE {_tell(cell)}"
            claims.append(Claim(paper, f"{ours} (standard error)", within(rmse, high=mean)))
    for family, baseline in BASELINES.items():
        differences = {name: paired(cells, name, family) for name in cells}
        found = [mean_and_error(one) for one in differences.values() if one is not None]
        better, clearly = sum(mean <= 0 for mean, _ in found), sum(mean < -2 * error for mean, error in found)
        listed = "; ".join(f"{name.title()} {_number(one, sign='+')}" for name, one in differences.items())
        claims.append(
            Claim(
                f"{family} has a smaller RMSE than {baseline}",
                f"paired over splits, on {better} of {len(cells)} data sets, on {clearly} by more than two standard"
                f" errors: {listed}",
                within(better, low=-(-3 * len(cells) // 4), unit="data sets"),
            )
        )
    smaller = sum(_smaller(cells[name], "SGLD", "SGD") for name in cells)
    ours = f"on {smaller} of {len(cells)} data sets"
    most = within(smaller, low=len(cells) // 2 + 1, unit="data sets")
    claims.append(Claim("SGLD outperforms SGD for most data sets", ours, most))
    return claims


def _smaller(methods: Mapping[str, Cell | None], one: str, other: str) -> bool:
    first, second = methods[one], methods[other]
    return first is not None and (second is None or bool(np.mean(first.rmse) < np.mean(second.rmse)))


def _details(cells: Cells) -> dict[str, Any]:
    """What belongs to the cells: settings, differences, the paper's table, and the search for settings."""
    searched = scores()
    return {
        "models_averaged": MODELS,
        "settings": {
            name: {
                family: {part: searched[name][family][part] for part in ("model", "flattening")} for family in FAMILIES
            }
            for name in cells
        },
        "paired_differences": {
            name: {
                family: None if (found := paired(cells, name, family)) is None else found.tolist()
                for family in BASELINES
            }
            for name in cells
        },
        "paper": {method: {name: list(pair) for name, pair in row.items()} for method, row in PAPERS_TABLE.items()},
        "cross_validation": {name: {family: searched[name][family]["scores"] for family in FAMILIES} for name in cells},
    }


def _notes(cells: Cells, epochs: int) -> list[str]:
    quantities = {
        "Test RMSE": ("rmse", 3),
        "Test NLL": ("nll", 2),
        "Share of the test set inside the central 90% intervals": ("coverage", 2),
        f"How many equally weighted models the {MODELS} models are worth": ("effective_models", 0),
    }
    tables = [f"{title}:\n\n{_markdown(cells, quantity, digits)}" for title, (quantity, digits) in quantities.items()]
    return [
        f"One hidden layer of 50 units, batches of 50, {epochs:,} epochs, step size 5e-6, L2 1e-4, Δu = 100 and the"
        " paper's τ and ζ; features normalised by the training set; a tenth of the data as the test set, in splits by"
        f" the seeds 0, 1, …, which all methods share; an average of {MODELS} models, weighted for the contour"
        " methods. Our numbers are means ± standard errors over splits; the paper's ± is the standard deviation of"
        " its ten runs.",
        "What the paper leaves open was chosen by cross-validation on the training sets"
        " (`python -m contourmc.studies.uci.search`), for each data set and each family of three methods, one choice"
        " for all splits. The model was chosen by the score of the baseline, SGLD or SGHMC; the contour methods had"
        " twelve further settings to choose from. Settings and all scores are in results.json.",
        "The energy of a batch of 50 varies by hundreds or thousands from batch to batch, more than the energy of the"
        " chain itself (the energies of the models are in results.json). With Δu = 100, a unit of log θ between two"
        " bins changes the multiplier by ζτ/Δu: 0.01 for Energy, 0.025 for Yacht, 0.05 for Concrete and 0.5 for Wine."
        " A θ that is learnt slowly therefore flattens hardly anything. One that is learnt fast follows the noise of"
        " the batches, collapses onto the most common bin, and drives the chain around: the models differ more, but"
        " since its weights would let a few of them dominate the average, they count equally. Cross-validation chose"
        " between the two.",
        *tables,
    ]


def _markdown(cells: Cells, quantity: str, digits: int) -> str:
    lines = ["| | " + " | ".join(name.title() for name in cells) + " |", "|---" * (1 + len(cells)) + "|"]
    for methods in FAMILIES.values():
        for method in methods:
            row = " | ".join(_tell(cells[name][method], quantity, digits) for name in cells)
            lines.append(f"| {method} | {row} |")
    if quantity == "rmse":
        for family, baseline in BASELINES.items():
            row = " | ".join(_number(paired(cells, name, family), digits, "+") for name in cells)
            lines.append(f"| {family} − {baseline} | {row} |")
    return "\n".join(lines)


def _figure(cells: Cells) -> "Figure":
    """Above, our RMSE of every method and the paper's; below, the paired differences, with a dot for each split."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(cells), figsize=(2 + 3.6 * len(cells), 7.5), layout="constrained", squeeze=False, height_ratios=(2, 1)
    )
    for column, name in enumerate(cells):
        _draw_methods(axes[0, column], cells, name)
        _draw_differences(axes[1, column], cells, name)
    for row, labels in (
        (0, list(PAPERS_TABLE)),
        (1, [f"{contour} − {baseline}" for contour, baseline in BASELINES.items()]),
    ):
        axes[row, 0].set_yticks(range(len(labels)), labels, fontsize=13)
        for ax in axes[row, 1:]:
            ax.set_yticks(range(len(labels)), [""] * len(labels))
    labelled = axes[0, 0].get_legend_handles_labels()
    figure.legend(*labelled, loc="outside upper center", ncols=2 if len(cells) > 1 else 1, fontsize=13)
    return figure


def _draw_methods(ax: "Axes", cells: Cells, name: str) -> None:
    for place, (method, row) in enumerate(PAPERS_TABLE.items()):
        cell, (mean, deviation) = cells[name][method], row[name]
        first = place == 0
        if cell is not None:
            ours, error = mean_and_error(cell.rmse)
            color = "#0072B2" if method in BASELINES else "#7F7F7F"
            ax.plot(cell.rmse, np.full(len(cell.rmse), place - 0.12), ".", color=color, alpha=0.3)
            ax.errorbar(
                ours, place - 0.12, xerr=error, fmt="o", color=color, markersize=8, capsize=4,
                label="ours, mean ± standard error (small dots: splits)" if first else None,
            )  # fmt: skip
        ax.errorbar(
            mean, place + 0.2, xerr=deviation, fmt="D", color="#D55E00", markerfacecolor="white", markersize=7,
            capsize=4, label="the paper's, mean ± standard deviation" if first else None,
        )  # fmt: skip
    ax.axhline(2.5, color="#BBBBBB", linewidth=1)
    ax.set_title(name.title(), fontsize=16)
    ax.set_xlabel("test RMSE", fontsize=13)
    ax.invert_yaxis()


def _draw_differences(ax: "Axes", cells: Cells, name: str) -> None:
    for place, method in enumerate(BASELINES):
        found = paired(cells, name, method)
        if found is not None:
            mean, error = mean_and_error(found)
            ax.plot(found, np.full(len(found), place), ".", color="#0072B2", alpha=0.3)
            ax.errorbar(mean, place, xerr=error, fmt="o", color="#0072B2", markersize=8, capsize=4)
    ax.axvline(0, color="black", linewidth=1)
    ax.set_xlabel("paired difference of RMSE\n← contour better", fontsize=12)
    ax.set_ylim(1.5, -0.5)
    ax.locator_params(axis="x", nbins=4)
