"""When a claim of the paper agrees, differs or is undecided."""

import numpy as np
import pytest

from contourmc.studies import gaussian_mixture, multimodal
from contourmc.studies.base import Claim, Measured, Size, Study, exact, judge, over_seeds, share, with_error
from contourmc.studies.catalogue import UCI
from contourmc.studies.report import row
from contourmc.studies.uci.cells import EPOCHS

STUDY = Study("name", "summary", "title", "module", full=Size(1000, 10), quick=Size(100, 2))


@pytest.mark.parametrize(
    ("low", "high", "limits", "outcome"),
    [
        (2.0, 3.0, dict(above=1.0), "agrees"),
        (2.0, 3.0, dict(above=2.5), "undecided"),
        (2.0, 3.0, dict(above=3.5), "differs"),
        (2.0, 3.0, dict(below=3.5), "agrees"),
        (2.0, 3.0, dict(below=1.0), "differs"),
        (2.0, 3.0, dict(above=1.0, below=4.0), "agrees"),
        (2.0, 3.0, dict(above=1.0, below=2.5), "undecided"),
        (2.0, 3.0, dict(above=4.0, below=5.0), "differs"),
        (2.0, 2.0, dict(above=2.0), "undecided"),  # a tie
        (-np.inf, np.inf, dict(above=0.0), "undecided"),
    ],
)
def test_an_interval_is_on_the_claimed_side_or_beyond_or_neither(low, high, limits, outcome):
    assert judge(Measured(2.5, 0.1, low, high), **limits).outcome == outcome


def test_the_rule_is_stated_in_words():
    assert judge(exact(1.0), above=0.0, below=2.5, unit="modes").rule == "above 0 and below 2.5 modes"


def test_intervals_hold_the_truth_as_often_as_they_say():
    """95% of 2,000 intervals, of four Gaussian seeds and of ten runs with a chance of 0.3; ± 5 standard deviations.

    The interval of Clopper and Pearson holds the truth more often.
    """
    random = np.random.default_rng(0)
    means = [over_seeds(one) for one in random.normal(3.0, 2.0, (2_000, 4))]
    held = np.mean([one.low < 3.0 < one.high for one in means])
    assert abs(held - 0.95) < 5 * (0.05 * 0.95 / 2_000) ** 0.5
    shares = [share(count, 10) for count in random.binomial(10, 0.3, 2_000).tolist()]
    assert np.mean([one.low < 0.3 < one.high for one in shares]) > 0.93


def test_a_single_seed_decides_nothing():
    assert judge(over_seeds([5.0]), above=0.0).outcome == "undecided"
    assert judge(over_seeds([np.nan, 1.0]), above=0.0).outcome == "undecided"


def test_numbers_are_shown_with_their_errors():
    assert f"{over_seeds([1.0, 3.0]):+.2f}" == "+2.00 ± 1.00"
    assert f"{exact(2.0):.1f}" == "2.0"


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        (STUDY.options(), "differs"),
        (STUDY.options(length=2000, seeds=20), "differs"),
        (STUDY.options(quick=True), "too short to judge"),
        (STUDY.options(length=2000, seeds=20, quick=True), "too short to judge"),  # it compares less
        (STUDY.options(length=999), "too short to judge"),
        (STUDY.options(seeds=9), "too short to judge"),
    ],
)
def test_only_a_study_of_full_size_is_judged(options, verdict):
    claim = Claim("key", "the paper", "ours", judge(exact(2.1), above=1.0, below=1.5, unit="times"))
    shown = row(claim, conclusive=options.conclusive)
    assert shown == ("the paper", "ours", "above 1 and below 1.5 times", verdict)


def test_a_claim_may_be_left_open():
    assert row(Claim("key", "the paper", "ours", None), conclusive=True)[2:] == ("–", "–")


def test_the_papers_number_of_epochs_is_that_of_the_study():
    assert UCI.full.length == EPOCHS


# --- What claims would say of other numbers ----------------------------------------------------------


def nine_modes(modes, distance):
    return {"modes_found": modes, "total_variation": distance, "corners": distance}


def test_one_mode_is_not_three_and_a_tie_is_undecided():
    seeds = np.arange(10)
    far, near = (base + 0.001 * seeds for base in (0.5, 0.03))

    def judged(modes):
        papers = dict.fromkeys(("cycSGLD", "cycSGLD\nstages", "reSGLD", "CSGLD"), nine_modes([9] * 10, far))
        best = {name: nine_modes([9] * 10, near) for name in ("CSGLD", "reSGLD")}
        record = {"papers_settings": papers | {"SGLD": nine_modes(modes, far)}, "best_settings": best, "seeds": 10}
        return {claim.key: claim.verdict.outcome for claim in multimodal._claims(record)}

    assert judged([1] * 10)["sgld"] == "differs"
    assert judged([3] * 9 + [2])["sgld"] == "agrees"
    found = judged([3] * 10)
    assert found["best"] == found["csgld"] == "undecided"
    assert found["all-nine"] == "agrees"


def test_twice_the_error_is_not_slightly_slower():
    """KSGLD with errors around 1; CSGLD with errors around 2.1, and around 1.2."""
    random = np.random.default_rng(0)
    steps = [*range(10, 101, 10), *range(200, 10_001, 200)]

    def method(level):
        return {"steps": steps, "log_error": (np.log(level) + 0.05 * random.normal(size=(10, len(steps)))).tolist()}

    for level, outcome in ((2.1, "differs"), (1.2, "agrees"), (0.8, "differs")):
        early, _ = gaussian_mixture._slowdown(method(level), method(1.0))
        assert judge(early, above=0.0, below=float(np.log(1.5))).outcome == outcome
        assert early.value == pytest.approx(np.log(level), abs=0.05)


def test_a_growth_has_the_error_of_both_ends():
    from contourmc.studies.theory import _growth

    growth = _growth(with_error(-0.5, 0.03), with_error(0.7, 0.04))
    assert (growth.value, growth.error) == (pytest.approx(0.2), pytest.approx(0.05))
