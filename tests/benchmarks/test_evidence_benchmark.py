"""The page on temperatures keeps what it says, and a row of its table is made of the figures of all seeds."""

from pathlib import Path

from benchmarks.evidence import EVIDENCE, Figure, row

from contourmc.problems import gallery

PAGE = (Path(__file__).parents[2] / "docs" / "temperatures.md").read_text(encoding="utf-8")


def rows(quantity: str) -> list[list[str]]:
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in PAGE.splitlines()]
    return [line for line in lines if len(line) > 3 and line[2].startswith(quantity)]


def test_the_evidence_of_every_problem_is_within_its_limits():
    """0.05 up to ten dimensions and 0.2 up to a hundred; two standard errors cover at least 8 of 10 seeds."""
    found = rows(EVIDENCE)
    assert [line[0] for line in found] == [*gallery()]
    for _, dimension, _, given, _, worst, _, inside, *_ in found:
        assert given == "10 of 10"
        assert float(worst) < (0.05 if int(dimension) <= 10 else 0.2)
        assert int(inside) >= 8


def test_normalisers_are_within_three_errors():
    """All but a few in a hundred, as chance has it."""
    found = [line for line in rows("log Z(") if line[4]]
    given, inside = (sum(int(line[i].split()[0]) for line in found) for i in (3, 8))
    assert given > 150
    assert inside >= 0.97 * given


def test_a_row_counts_what_was_given():
    problem = gallery()["mixture-10d"]
    figures = [Figure("q", error, 0.1, 1.0) for error in (0.1, -0.25, float("nan"))]
    assert row(problem, "q", figures) == "| mixture-10d | 10 | q | 2 of 3 | 0.1750 | 0.2500 | 0.1000 | 1 | 2 | 1.0 |"
    assert row(problem, "q", figures[2:]) == "| mixture-10d | 10 | q | 0 of 1 | | | | | | 1.0 |"
