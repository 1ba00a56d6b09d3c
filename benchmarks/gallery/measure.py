"""Running every method on a problem: the search for its settings, the seeds, and what is recorded."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.gallery import langevin
from benchmarks.gallery.contour_peer import csgld, csgld_settings
from benchmarks.gallery.langevin import resgld, resgld_settings, sgld, sgld_settings
from benchmarks.gallery.nuts import nuts
from benchmarks.gallery.outcome import Budget, Outcome, Tuning, from_samples, mass_error
from benchmarks.gallery.tempered import tempered_smc
from contourmc.problems import Problem

AUTOMATIC = "contourmc"
SEARCH_SEED = 1_000_000  # not one of those that are measured


@dataclass(frozen=True)
class Peer:
    """run: of (problem, setting, tuning, budget, seed).
    settings: those to choose from; None for a peer that tunes itself, and needs nothing of ours.
    share: a trial of the search has the budget over this.
    """

    run: Callable[..., Outcome]
    settings: Callable[[Tuning], list[Any]] | None = None
    share: int = 10


PEERS = {
    "SGLD": Peer(sgld, sgld_settings),
    "reSGLD": Peer(resgld, resgld_settings),
    "BlackJAX csgld": Peer(csgld, csgld_settings, share=1),  # late in a run it turns to NaN: a short one would not tell
    "NUTS": Peer(nuts),
    "tempered SMC": Peer(tempered_smc),
}
METHODS = (AUTOMATIC, *PEERS)


@dataclass(frozen=True)
class Measurement:
    """error: total variation of the pooled mode masses; None for a run that diverged.
    message: why it diverged; empty for one that did not.
    evaluations, seconds, compile_seconds: as in `Outcome`; None for one that diverged.
    setting: what the method ran with, in words.
    trusted: whether contourmc's own diagnosis found nothing wrong; None for the others, which have none.
    """

    problem: str
    method: str
    seed: int
    error: float | None = None
    message: str = ""
    evaluations: float | None = None
    seconds: float | None = None
    compile_seconds: float | None = None
    setting: str = ""
    trusted: bool | None = None

    @property
    def diverged(self) -> bool:
        return self.error is None

    def plain(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def measure(problem: Problem, methods: tuple[str, ...], budget: Budget, seeds: int) -> Iterator[Measurement]:
    """Every method with every seed; contourmc goes first, even if it is not asked for, where peers need its tuning."""
    peers = {name: PEERS[name] for name in methods if name != AUTOMATIC}
    tunings: dict[int, Tuning] = {}
    if AUTOMATIC in methods or any(peer.settings for peer in peers.values()):
        for seed in range(seeds):
            found, tuning = _automatic(problem, budget, seed)
            if tuning is not None:
                tunings[seed] = tuning
            if AUTOMATIC in methods:
                yield found
    for method in peers:
        yield from _measure_peer(problem, method, budget, seeds, tunings)


def _measure_peer(
    problem: Problem, method: str, budget: Budget, seeds: int, tunings: dict[int, Tuning]
) -> Iterator[Measurement]:
    peer, setting, first = PEERS[method], "tunes itself", next(iter(tunings.values()), None)
    if peer.settings is not None and first is not None:
        setting = search(problem, peer, first, budget)
    for seed in range(seeds):
        tuning = tunings.get(seed, first)  # another seed's where contourmc failed on this one
        if peer.settings is not None and tuning is None:
            yield Measurement(problem.name, method, seed, message="contourmc gave no step size and partition")
            continue
        yield record(problem, method, seed, lambda t=tuning, s=seed: peer.run(problem, setting, t, budget, s), setting)


def _automatic(problem: Problem, budget: Budget, seed: int) -> tuple[Measurement, Tuning | None]:
    tunings: list[Tuning] = []

    def run() -> Outcome:
        samples = langevin.automatic(problem, budget.evaluations, budget.chains, seed)
        tunings.append(langevin.tuning_of(samples))
        return from_samples(samples, samples.settings["steps"])

    found = record(problem, AUTOMATIC, seed, run)
    return (replace(found, setting=str(tunings[0])), tunings[0]) if tunings else (found, None)


def search(problem: Problem, peer: Peer, tuning: Tuning, budget: Budget) -> Any:
    """The setting with the smallest error in a short run: the first of equals, and the last if all diverge.

    It is told the truth, and its evaluations are not counted: both are to the peer's advantage.
    """
    assert peer.settings is not None
    short = Budget(max(100, budget.evaluations // peer.share), budget.chains)
    settings = peer.settings(tuning)
    trials = [
        record(problem, "search", SEARCH_SEED, lambda s=s: peer.run(problem, s, tuning, short, SEARCH_SEED))
        for s in settings
    ]
    errors = [math.inf if trial.error is None else trial.error for trial in trials]
    return settings[errors.index(min(errors))] if min(errors) < math.inf else settings[-1]


def record(problem: Problem, method: str, seed: int, run: Callable[[], Outcome], setting: Any = "") -> Measurement:
    """The measurement of one run; whatever goes wrong in it becomes a divergence with a message."""
    setting = str(setting)
    try:
        outcome = run()
        error = mass_error(problem, outcome.positions, outcome.log_weights, outcome.comparable_weights)
    except Exception as failure:
        message = f"{type(failure).__name__}: {failure}"
        return Measurement(problem.name, method, seed, message=message, setting=setting)
    return Measurement(
        problem.name, method, seed, error, "", outcome.evaluations, outcome.seconds, outcome.compile_seconds, setting,
        outcome.trusted,
    )  # fmt: skip
