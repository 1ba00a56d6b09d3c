"""The paper's claims about Table 1, and the same questions for our best recipe."""

from collections.abc import Mapping

import numpy as np

from contourmc.studies.base import Claim, Measured, Verdict, exact, judge, over_seeds, with_error
from contourmc.studies.uci.cells import COOLING, FAMILIES, METHODS, Cell, Cells
from contourmc.studies.uci.recipes import PAPERS_TABLE, TITLES

PAPERS_RUNS = 10


def claims_of(paper: Cells, best: Cells) -> list[Claim]:
    """All claims, from the cells of both recipes."""
    return [
        *(contour_claim(paper, name, family) for family in FAMILIES for name in paper),
        *(order_claim(paper, name, "SGLD", "SGD", "An advantage of sampling for most data sets") for name in paper),
        *(order_claim(paper, name, "CSGHMC", "CSGLD", "Some improvements by the momentum") for name in paper),
        *(rmse_claim(paper, name, method) for method in METHODS for name in paper),
        *(best_claim(best, name, family) for family in FAMILIES for name in best),
    ]


def difference(methods: Mapping[str, Cell | None], one: str, other: str) -> Measured:
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
        difference(paper[name], family, ours),
        f"RMSE of {family} minus {ours}, the better baseline",
    )


def order_claim(paper: Cells, name: str, one: str, other: str, says: str) -> Claim:
    """Whether the order of two methods is the same as in the paper's table."""
    first, second = PAPERS_TABLE[one][name], PAPERS_TABLE[other][name]
    return _direction(
        f"{_short(name)}-{one}-{other}".lower(),
        f"{says}: {one} is {_better(first, second)} than {other}. {TITLES[name]}: {_of(first)}, {other} {_of(second)}",
        first[0] - second[0],
        difference(paper[name], one, other),
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
        difference(best[name], family, ours),
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
