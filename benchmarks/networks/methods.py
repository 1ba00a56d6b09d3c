"""The table of methods: the settings that each may choose from, and how it spends its gradient evaluations.

All search through at most `SETTINGS` settings. A learning rate η on the mean loss of N observations is a step size
η/N; momentum is 0.9 throughout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import contourmc as cm

SETTINGS = 12
MODELS = 50  # that a chain averages
AVERAGED = 0.6  # the last part of a run at a constant step size
REFERENCE = "SGHMC"
AUTOMATIC = "contourmc automatic"

# By name: learning_rate, and what else the method has.
Setting = dict[str, float]


@dataclass(frozen=True)
class Energies:
    """Of the models of a run by SGHMC at some learning rate and temperature, on training data; by observation.

    low, high: the quantiles 0.1 and 0.9.
    """

    low: float
    high: float

    @property
    def deviation(self) -> float:
        """The standard deviation, if they are Gaussian; most of it is the noise of the batches."""
        return (self.high - self.low) / 2.563


@dataclass(frozen=True)
class Task:
    """observations: N.  evaluations: of gradients, that a method may spend.
    energies: those of SGHMC at the learning rate and temperature of the setting, for methods that need them.
    """

    observations: int
    evaluations: int
    energies: Energies | None = None


@dataclass(frozen=True)
class Plan:
    """kernel: None for a run that tunes itself by a learning rate.
    steps, burn_in, thin: of each chain.
    members: how many chains are averaged.
    effective: as of an average, for weighted models.
    learning_rate: for a run that tunes itself.
    """

    kernel: cm.Kernel | None
    steps: int
    burn_in: int
    thin: int
    members: int = 1
    effective: float | None = None
    learning_rate: float | None = None

    @property
    def evaluations(self) -> int:
        """Of gradients, in all."""
        return self.steps * self.members * (1 if self.kernel is None else self.kernel.evaluations)


@dataclass(frozen=True)
class Method:
    """settings: of (the data set's learning rates, the setting that SGHMC chose, if it is known).
    plan: of (setting, task).
    needs_reference: whether it needs what SGHMC chose, and the energies of its runs.
    """

    settings: Callable[[tuple[float, ...], Setting | None], list[Setting]]
    plan: Callable[[Setting, Task], Plan]
    needs_reference: bool = False


def momentum_sgd(setting: Setting, task: Task) -> Plan:
    """One model, at the end of a learning rate that falls along half a cosine."""
    return _annealed(setting, task, 1)


def deep_ensemble(setting: Setting, task: Task) -> Plan:
    """Several such models from own starts, which share the evaluations."""
    return _annealed(setting, task, int(setting["members"]))


def sghmc(setting: Setting, task: Task) -> Plan:
    """A constant step size; models of the last part of the run."""
    kernel = cm.sghmc(setting["learning_rate"] / task.observations, setting["temperature"])
    return _constant(kernel, task.evaluations)


def cyclical_sghmc(setting: Setting, task: Task) -> Plan:
    """A step size that falls to 0 in cycles, with a model at the end of each but the first."""
    period = task.evaluations // int(setting["cycles"])
    schedule = cm.CyclicCosine(setting["learning_rate"] / task.observations, period)
    return Plan(cm.sghmc(schedule, setting["temperature"]), period * int(setting["cycles"]), period, period)


def replica_exchange(setting: Setting, task: Task) -> Plan:
    """Two replicas by SGHMC, whose swaps allow for the noise of energies; each has half of the steps.

    The correction by the whole variance σ² forbids all swaps where σ is far above the temperature, as here: as is
    usual (Deng et al. 2020), it is divided by a factor.
    """
    assert task.energies is not None
    size, cold = setting["learning_rate"] / task.observations, setting["temperature"]
    variance = (task.observations * task.energies.deviation) ** 2 / setting["correction"]
    replicas = cm.sghmc(size, cold), cm.sghmc(size, HOTTER * cold)
    return _constant(cm.replica_exchange(*replicas, energy_variance=variance), task.evaluations // len(replicas))


def contour_sghmc(setting: Setting, task: Task) -> Plan:
    """SGHMC on a flattened landscape. The partition covers the energies of SGHMC's own models, and three times as much
    above them; its weights are tempered until half of the models count.

    gain: ζτ/Δu, by how much the multiplier of the gradient changes for a unit of log θ between two bins.
    """
    assert task.energies is not None
    low, spread = task.energies.low, task.energies.high - task.energies.low
    width = task.observations * 4 * spread / BINS
    temperature = setting["temperature"]
    kernel = cm.csghmc(
        setting["learning_rate"] / task.observations, cm.Partition(task.observations * low, width, BINS),
        temperature=temperature, zeta=setting["gain"] * width / temperature, rule="scalable",
    )  # fmt: skip
    return _constant(kernel, task.evaluations, effective=0.5)


def automatic(setting: Setting, task: Task) -> Plan:
    """All but the learning rate is left to `cm.sample`."""
    plan = _constant(None, task.evaluations)
    return Plan(None, plan.steps, plan.burn_in, plan.thin, learning_rate=setting["learning_rate"])


def _annealed(setting: Setting, task: Task, members: int) -> Plan:
    steps = task.evaluations // members
    schedule = cm.CyclicCosine(setting["learning_rate"] / task.observations, steps)
    return Plan(cm.momentum_sgd(schedule), steps, steps - 1, 1, members=members)


def _constant(kernel: cm.Kernel | None, steps: int, effective: float | None = None) -> Plan:
    averaged = int(AVERAGED * steps)
    return Plan(kernel, steps, steps - averaged, max(1, averaged // MODELS), effective=effective)


def _grid(**values: tuple[float, ...]) -> list[Setting]:
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


HOTTER, BINS = 10.0, 40
TEMPERATURES = (1.0, 0.1, 0.01)
MEMBERS = (3.0, 5.0, 10.0)
CYCLES = ((10.0, 1.0), (10.0, 0.01), (30.0, 0.01))  # with temperatures
CORRECTIONS = ((1.0, 1.0), (0.1, 100.0), (0.01, 10_000.0))  # temperatures with factors
GAINS = (0.1, 1.0, 10.0)

METHODS: dict[str, Method] = {
    "M-SGD": Method(lambda rates, _: _grid(learning_rate=_finer(rates)), momentum_sgd),
    "deep ensemble": Method(lambda rates, _: _grid(learning_rate=rates, members=MEMBERS), deep_ensemble),
    REFERENCE: Method(lambda rates, _: _grid(learning_rate=rates, temperature=TEMPERATURES), sghmc),
    "cyclical SGHMC": Method(
        lambda rates, _: [
            dict(learning_rate=rate, cycles=cycles, temperature=temperature)
            for rate, (cycles, temperature) in product(rates, CYCLES)
        ],
        cyclical_sghmc,
    ),
    "replica exchange": Method(
        lambda rates, _: [
            dict(learning_rate=rate, temperature=temperature, correction=correction)
            for rate, (temperature, correction) in product(rates, CORRECTIONS)
        ],
        replica_exchange,
        needs_reference=True,
    ),
    "CSGHMC": Method(
        lambda rates, chosen: _grid(learning_rate=rates, temperature=(_temperature(chosen),), gain=GAINS),
        contour_sghmc,
        needs_reference=True,
    ),
    AUTOMATIC: Method(lambda rates, _: _grid(learning_rate=rates), automatic),
}


def _finer(rates: tuple[float, ...]) -> tuple[float, ...]:
    """With one more between each two, and four below the last: a single model may do best if it stops early."""
    between = tuple(factor * rate for rate in rates for factor in (1.0, 0.55))
    return between + tuple(factor * rates[-1] for factor in (0.3, 0.15, 0.08, 0.04))


def _temperature(chosen: Setting | None) -> float:
    return TEMPERATURES[0] if chosen is None else chosen["temperature"]
