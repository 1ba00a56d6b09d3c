"""The measurements as tables: on the screen, and as Markdown for the documentation."""

from collections.abc import Callable, Iterable

from rich.table import Table

from benchmarks.gallery.outcome import Budget
from benchmarks.gallery.peers import AUTOMATIC, PEERS
from benchmarks.gallery.summary import GOOD, Summaries, Summary, methods_of

Value = Callable[[Summary], float | None]
BY_BUDGET = (
    "Error of the mode masses: total variation to the truth, mean over seeds; runs that diverged in brackets, left out "
    "of the mean. Bold: the smallest of the row.",
    "Error of log Z: |log Ẑ − log Z|, mean over seeds. Bold: the smallest of the row.",
)


def screen(summaries: Summaries) -> Table:
    """Problems × methods."""
    table = Table(title="Total variation of mode masses (diverged)", title_justify="left")
    table.add_column("problem")
    methods = methods_of(summaries)
    for method in methods:
        table.add_column(method, justify="right")
    for problem, row in summaries.items():
        table.add_row(problem, *(_coloured(row.get(method)) for method in methods))
    return table


def tables(found: dict[Budget, Summaries]) -> str:
    """Everything that the documentation shows, the largest budget first; methods are compared where there are peers."""
    budgets = sorted((budget for budget in found if found[budget]), key=lambda budget: -budget.steps)
    compared = [budget for budget in budgets if len(methods_of(found[budget])) > 1] or budgets
    lines = [f"All methods, mean over seeds. {_who_is_closest(found[compared[0]])}", ""] if compared else []
    for budget in compared:
        lines += _by_budget(budget, found[budget])
    if compared:
        lines += _costs(compared[0], found[compared[0]])
        lines += _ours({budget: found[budget] for budget in budgets})
    return "\n".join(lines).rstrip() + "\n"


def _by_budget(budget: Budget, summaries: Summaries) -> list[str]:
    size = f"{budget.chains} chains × {budget.steps:,} steps, {budget.evaluations:,} evaluations"
    return [
        f"## {size}", "", BY_BUDGET[0], "",
        *_matrix(summaries, lambda cell: cell.error, ".3f", with_diverged=True), "",
        BY_BUDGET[1], "",
        *_matrix(summaries, lambda cell: cell.evidence_error, ".3f"), "",
    ]  # fmt: skip


def _costs(budget: Budget, summaries: Summaries) -> list[str]:
    return [
        "## What it costs", "",
        f"Evaluations of the density in thousands, where a gradient counts as one more, of {budget.evaluations:,}:", "",
        *_matrix(summaries, lambda cell: (cell.evaluations or 0) / 1000, ",.0f", best=False), "",
        "Seconds of a run, compilation apart:", "",
        *_matrix(summaries, lambda cell: cell.seconds, ".1f", best=False), "",
        "Seconds of compilation:", "",
        *_matrix(summaries, lambda cell: cell.compile_seconds, ".1f", best=False), "",
    ]  # fmt: skip


def _ours(found: dict[Budget, Summaries]) -> list[str]:
    lines = [
        "## contourmc in full", "",
        "Mean and worst over seeds. Covered: runs whose log Ẑ is within two of its own standard errors of the truth.",
        "Trusted: runs whose `diagnose()` finds nothing wrong. Diverged: runs with a number that is not finite, or an",
        "error.", "",
        "| problem | steps | error | worst | log Z | worst | covered | trusted | diverged | seconds | compilation |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    problems = {problem: None for summaries in found.values() for problem in summaries}
    for problem in problems:
        for budget, summaries in found.items():
            cell = summaries.get(problem, {}).get(AUTOMATIC)
            if cell is not None:
                lines.append(_row(problem, f"{budget.steps:,}", *_full(cell)))
    return [*lines, "", f"Bold: no run diverged, and none is off by more than {GOOD}.", ""]


def _full(cell: Summary) -> Iterable[str]:
    error = _number(cell.error, ".3f")
    return (
        f"**{error}**" if cell.good else error, _number(cell.worst, ".3f"),
        _number(cell.evidence_error, ".3f"), _number(cell.evidence_worst, ".3f"),
        f"{cell.covered} of {cell.claimed}" if cell.claimed else "",
        "" if cell.trusted is None else f"{cell.trusted} of {cell.runs}", f"{cell.diverged} of {cell.runs}",
        _number(cell.seconds, ".1f"), _number(cell.compile_seconds, ".1f"),
    )  # fmt: skip


def _matrix(
    summaries: Summaries, value: Value, form: str, *, with_diverged: bool = False, best: bool = True
) -> list[str]:
    """Problems × methods, for Markdown; methods that have nothing to show are left out."""
    found = {method: [row[method] for row in summaries.values() if method in row] for method in methods_of(summaries)}
    methods = [
        method
        for method, cells in found.items()
        if any(value(cell) is not None or (with_diverged and cell.diverged) for cell in cells)
    ]
    lines = [_row("", *methods), "|---|" + "--:|" * len(methods)]
    for problem, row in summaries.items():
        values = {method: value(row[method]) for method in methods if method in row}
        smallest = min((number for number in values.values() if number is not None), default=None)
        cells = []
        for method in methods:
            text = _number(values.get(method), form) if method in values else ""
            if best and smallest is not None and values.get(method) == smallest:
                text = f"**{text}**"
            diverged = row[method].diverged if with_diverged and method in row else 0
            cells.append(f"{text} ({diverged})" if diverged else text)
        lines.append(_row(problem, *cells))
    return lines


def _who_is_closest(summaries: Summaries) -> str:
    """On how many problems contourmc is at least as close to the truth as the best nested sampler, and where not."""
    sentences = []
    for what, value in (("mode masses", lambda cell: cell.error), ("log Z", lambda cell: cell.evidence_error)):
        behind, compared = _behind_nested(summaries, value)
        if compared:
            where = f" (not on {', '.join(behind)})" if behind else ""
            sentences.append(f"{what}: {len(compared) - len(behind)} of {len(compared)}{where}")
    if not sentences:
        return ""
    return f"Problems where contourmc is at least as close as the best nested sampler, by {'; by '.join(sentences)}."


def _behind_nested(summaries: Summaries, value: Value) -> tuple[list[str], list[str]]:
    behind, compared = [], []
    for problem, row in summaries.items():
        nested = [value(cell) for method, cell in row.items() if method in PEERS and PEERS[method].nested]
        rivals = [number for number in nested if number is not None]
        own = value(row[AUTOMATIC]) if AUTOMATIC in row else None
        if rivals and own is not None:
            compared.append(problem)
            if own > min(rivals):
                behind.append(problem)
    return behind, compared


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _coloured(cell: Summary | None) -> str:
    if cell is None:
        return ""
    text = _number(cell.error, ".3f") + (f" ({cell.diverged})" if cell.diverged else "")
    return f"[green]{text}[/]" if cell.good else text


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
