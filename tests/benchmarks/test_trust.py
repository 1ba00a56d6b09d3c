"""The page on trust holds every case, and its head says what its table says."""

import re
from pathlib import Path

from benchmarks.trust.case import Case, Outcome
from benchmarks.trust.cases import all_cases

PAGE = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")


def rows():
    lines = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| .* \| (right|wrong|unseen) \| ", line)]
    return [(line[0].removeprefix("| "), line[1], line[5].strip() == "yes", line[6] == "yes") for line in lines]


def test_every_case_is_on_the_page():
    cases = all_cases()
    assert len(cases) >= 40
    assert [(case.name, case.kind) for case in cases] == [row[:2] for row in rows()]


def test_nothing_wrong_is_called_good_and_right_runs_are_trusted():
    fooled = [name for name, kind, off, trusted in rows() if off and trusted and kind != "unseen"]
    assert not fooled
    trusted = [trusted for _, kind, _, trusted in rows() if kind == "right"]
    assert sum(trusted) >= 0.95 * len(trusted)


def test_an_answer_is_off_by_five_errors_or_a_twentieth_of_mass():
    def outcome(answer: float, error: float, mass: bool, refusal: str = "") -> Outcome:
        case = Case("", "right", lambda: None, "", lambda samples: (0.0, 0.0), 1.0, mass)  # type: ignore[arg-type]
        return Outcome(case, answer, error, refusal=refusal)

    assert outcome(1.6, 0.1, False).off
    assert not outcome(1.4, 0.1, False).off
    assert outcome(1.06, 0.1, True).off
    assert not outcome(1.04, 0.001, True).off
    assert not outcome(float("nan"), float("nan"), False, "refused").off
