"""When a claim of the paper is judged, and by what tolerance."""

from types import SimpleNamespace

import numpy as np
import pytest

from contourmc.studies import multimodal
from contourmc.studies.base import Claim, Size, Study, Verdict, within
from contourmc.studies.catalogue import UCI
from contourmc.studies.gaussian_mixture import claims
from contourmc.studies.report import row
from contourmc.studies.uci.cells import EPOCHS

STUDY = Study("name", "summary", "title", "module", full=Size(1000, 10), quick=Size(100, 2))


@pytest.mark.parametrize(
    ("value", "low", "high", "agrees", "words"),
    [
        (1.0, 2.5, 3.5, False, "2.5 to 3.5 modes"),
        (3.0, 2.5, 3.5, True, "2.5 to 3.5 modes"),
        (4.0, None, 3.5, False, "at most 3.5 modes"),
        (4.0, 3.5, None, True, "at least 3.5 modes"),
    ],
)
def test_a_tolerance_is_stated_in_the_words_that_are_shown(value, low, high, agrees, words):
    assert within(value, low, high, "modes") == Verdict(agrees, words)


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
    claim = Claim("the paper", "ours", within(2.1, 1.0, 1.5, "times"))
    assert row(claim, options) == ("the paper", "ours", "1 to 1.5 times", verdict)


def test_a_claim_may_be_left_open():
    assert row(Claim("the paper", "ours", None), STUDY.options())[2:] == ("–", "–")
    assert row(Claim("the paper", "ours", Verdict(None, "more")), STUDY.options())[-1] == "too noisy to tell"


def test_the_papers_number_of_epochs_is_that_of_the_study():
    assert UCI.full.length == EPOCHS


@pytest.mark.usefixtures("untyped")
def test_one_mode_is_not_three():
    def measured(modes, distance):
        numbers = dict(modes_found=modes, total_variation=distance, standard_error=0.01, seeds_with_all_nine=0)
        return SimpleNamespace(numbers=numbers)

    def judge(modes):
        papers = {name: measured(modes, 0.5) for name in ("SGLD", "cycSGLD", "reSGLD", "CSGLD")}
        return multimodal._claims(papers, {"CSGLD": measured(9, 0.1), "reSGLD": measured(9, 0.1)}, 20)[0].verdict

    assert judge(1.0) == Verdict(False, "2.5 to 3.5 modes")
    assert judge(3.1) == Verdict(True, "2.5 to 3.5 modes")


@pytest.mark.usefixtures("untyped")
def test_twice_the_error_is_not_slightly_slower(monkeypatch):
    numbers = {"mean": 1.0, "se": 0.1}
    names = "sgld", "ksgld", "csgld", "csgld_step"
    found = {name: {"final_abs_error": numbers, "final_bias": numbers, "runs_within_0.2": 3} for name in names}
    methods = dict.fromkeys(found, SimpleNamespace(errors=np.zeros((10, 1))))

    def judge(early):
        monkeypatch.setattr(claims, "slowdown", lambda *_: (early, 1.0))
        return claims.error_claims(methods, found)[2].verdict

    assert judge(2.1) == Verdict(False, "1 to 1.5 times KSGLD's error")
    assert judge(1.2).agrees
