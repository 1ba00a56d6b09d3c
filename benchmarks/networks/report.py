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
NOTE = (
    "{epochs} epochs; means ± standard errors over {seeds} seeds. Difference: NLL minus that of {reference} at its\n"
    "best, paired over seeds."
)
NOTE_ON_SETTINGS = (
    "Gradients: evaluated in a run. Models: how many equally weighted ones the average is worth. Multipliers: the\n"
    "least and the largest of the gradient. Seconds: of a run, compilation apart; seeds on small data run side by side."
)


def screen(name: str, summaries: dict[str, Summary]) -> list[Table]:
    """The methods on one data set, and their settings."""
    return [_screen(name, _scores(name, summaries)), _screen("", _settings(summaries))]


def tables(found: Summaries, epochs: dict[str, int]) -> str:
    """Everything that the documentation shows."""
    lines: list[str] = []
    for name, summaries in found.items():
        seeds = max(one.seeds for one in summaries.values())
        note = NOTE.format(seeds=seeds, epochs=f"{epochs[name]:,}", reference=REFERENCE)
        lines += [f"### {name}", "", note, "", *_markdown(_scores(name, summaries)), ""]
        lines += [NOTE_ON_SETTINGS, "", *_markdown(_settings(summaries)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _scores(name: str, summaries: dict[str, Summary]) -> list[list[str]]:
    """A heading, and a row for each method; scores that nobody has are left out."""
    scores = REGRESSION if DATA_SETS[name].classes is None else CLASSIFICATION
    shown = {
        heading: score for heading, score in scores.items() if any(score[0] in one.values for one in summaries.values())
    }
    rows = [["", *shown, "difference"]]
    for method in in_order(summaries):
        one = summaries[method]
        cells = [_pair(one.of(score), digits, factor) for score, factor, digits in shown.values()]
        baseline = method == REFERENCE or not one.difference
        rows.append([method, *cells, "" if baseline else _pair(mean_and_error(one.difference), 4, sign="+")])
    return rows


def _settings(summaries: dict[str, Summary]) -> list[list[str]]:
    rows = [["", "setting chosen", "gradients", "models", "multipliers", "seconds", "diverged"]]
    for method in in_order(summaries):
        one = summaries[method]
        reach = "" if one.multipliers is None else "{:.2f} … {:.2f}".format(*one.multipliers)
        gradients, models = _mean(one.of("evaluations"), 0), _mean(one.of("effective_models"), 1)
        seconds, diverged = _mean(one.of("seconds"), 2), f"{one.diverged} of {one.seeds}"
        rows.append([method, one.setting, gradients, models, reach, seconds, diverged])
    return rows


def _screen(title: str, rows: list[list[str]]) -> Table:
    table = Table(title=title or None, title_justify="left")
    for index, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if index else "left")
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _markdown(rows: list[list[str]]) -> list[str]:
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return [head, "|---|" + "--:|" * (len(rows[0]) - 1), *others]


def _mean(pair: tuple[float, float] | None, digits: int) -> str:
    return "–" if pair is None else f"{pair[0]:,.{digits}f}"


def _pair(pair: tuple[float, float] | None, digits: int, factor: float = 1.0, sign: str = "") -> str:
    return "–" if pair is None else f"{factor * pair[0]:{sign}.{digits}f} ± {factor * pair[1]:.{digits}f}"
