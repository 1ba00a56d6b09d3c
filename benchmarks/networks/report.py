"""The measurements as tables: on the screen, and as Markdown for the documentation."""

from rich.table import Table

from benchmarks.networks.data import DATA_SETS
from benchmarks.networks.methods import REFERENCE
from benchmarks.networks.summary import Summary, in_order
from contourmc.studies.uci.table import mean_and_error

# By data set and method.
Summaries = dict[str, dict[str, Summary]]

# Heading: (score, factor, digits)
CLASSIFICATION = {
    "accuracy %": ("accuracy", 100.0, 2),
    "NLL": ("nll", 1.0, 4),
    "ECE": ("ece", 1.0, 4),
    "Brier": ("brier", 1.0, 4),
    "corrupted: accuracy %": ("corrupted accuracy", 100.0, 2),
    "corrupted: NLL": ("corrupted nll", 1.0, 3),
}
REGRESSION = {"RMSE": ("rmse", 1.0, 3), "NLL": ("nll", 1.0, 4), "coverage %": ("coverage", 100.0, 1)}
COSTS = {"models": ("effective_models", 1.0, 1), "seconds": ("seconds", 1.0, 2)}
NOTE = (
    "Means ± standard errors over {seeds} seeds, {epochs} epochs. Difference: NLL minus that of {reference} at its"
    " best, paired over seeds. Models: how many equally weighted ones an average is worth. Seconds: of one run, compilation"
    " apart, with all seeds side by side where data are small."
)


def screen(name: str, summaries: dict[str, Summary]) -> Table:
    """The methods on one data set."""
    table = Table(title=name, title_justify="left")
    head, *rows = _rows(name, summaries)
    for index, heading in enumerate(head):
        table.add_column(heading, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    return table


def tables(found: Summaries, epochs: dict[str, int]) -> str:
    """Everything that the documentation shows."""
    lines: list[str] = []
    for name, summaries in found.items():
        seeds = max(one.seeds for one in summaries.values())
        note = NOTE.format(seeds=seeds, epochs=f"{epochs[name]:,}", reference=REFERENCE)
        head, *rows = _rows(name, summaries)
        lines += [f"### {name}", "", note, "", _line(head), "|---|" + "--:|" * (len(head) - 1), *map(_line, rows), ""]
        lines += ["| | setting chosen | gradients | multipliers | diverged |", "|---|---|--:|---|--:|"]
        for method in in_order(summaries):
            one = summaries[method]
            reach = "" if one.multipliers is None else "{:.2f} … {:.2f}".format(*one.multipliers)
            spent = one.of("evaluations")
            gradients = "–" if spent is None else f"{spent[0]:,.0f}"
            lines.append(_line([method, one.setting, gradients, reach, f"{one.diverged} of {one.seeds}"]))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _rows(name: str, summaries: dict[str, Summary]) -> list[list[str]]:
    """The heading, and a row for each method; scores that nobody has are left out."""
    scores = (REGRESSION if DATA_SETS[name].classes is None else CLASSIFICATION) | COSTS
    shown = {
        heading: score for heading, score in scores.items() if any(score[0] in one.values for one in summaries.values())
    }
    rows = [["", *shown, "difference"]]
    for method in in_order(summaries):
        one = summaries[method]
        cells = [_cell(one.of(name), factor, digits) for name, factor, digits in shown.values()]
        difference = "" if method == REFERENCE or not one.difference else _pair(mean_and_error(one.difference), 4, "+")
        rows.append([method, *cells, difference])
    return rows


def _cell(pair: tuple[float, float] | None, factor: float, digits: int) -> str:
    return "–" if pair is None else _pair((factor * pair[0], factor * pair[1]), digits)


def _pair(pair: tuple[float, float], digits: int, sign: str = "") -> str:
    return f"{pair[0]:{sign}.{digits}f} ± {pair[1]:.{digits}f}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
