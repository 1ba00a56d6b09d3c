"""The methods, what they are run on, and what is measured."""

from typing import Any, NamedTuple

import numpy as np

from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csgld, ksgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.start import start
from contourmc.studies.base import Size
from contourmc.targets.energies import NoisyEnergy

PROBLEM = GaussianMixture()
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01)
OURS = Partition(low=1.5, width=1.0, bins=50)  # the lowest energy is 1.43
PAPERS = Partition(low=2.0, width=1.0, bins=50)
ZETAS = (0.5, 0.75, 1.0)
SCHEMES: tuple[tuple[Scheme, Partition], ...] = (("left", PAPERS), ("centred", OURS), ("right", OURS))


class Method(NamedTuple):
    """The result of a method, from all its runs.

    steps: the marks.  errors: running mean − truth, (runs, marks).
    theta: at the end.  visits: to each bin in the second half of the run.
    """

    steps: np.ndarray
    errors: np.ndarray
    theta: np.ndarray
    visits: np.ndarray

    @property
    def curve(self) -> np.ndarray:
        """The mean absolute error at every mark."""
        return np.maximum(np.abs(self.errors).mean(axis=0), 1e-9)  # 0 at the start; the axes are logarithmic


def kernels(quick: bool) -> dict[str, Kernel]:
    """The methods compared; a quick run does without `ksgld_step`.

    At ζ = 0 CSGLD makes the same steps as SGLD, and counts the visits to each bin.
    """
    ours: dict[str, Any] = dict(step_size=0.1, partition=OURS, scheme="right")
    papers: dict[str, Any] = dict(step_size=0.1, partition=PAPERS, scheme="left", weights="step", zeta=0.75)
    compared: dict[str, Kernel] = {
        "sgld": csgld(**ours, zeta=0.0),
        "ksgld": ksgld(**ours, zeta=0.75, theta=PROBLEM.theta(OURS).tolist()),
        "csgld": csgld(**ours, zeta=0.75),
        "csgld_flat": csgld(**ours, zeta=1.0),
        "ksgld_step": ksgld(**papers, theta=PROBLEM.theta(PAPERS).tolist()),
        "csgld_step": csgld(**papers),
    }
    if quick:
        del compared["ksgld_step"]
    return compared


def measure(kernel: Kernel, size: Size, seed: int) -> Method:
    """Run a method. The first hundredth of its steps has marks of its own, closer together than the others."""
    steps, runs = size.length, size.seeds
    early = steps // 100
    every = 1024 * -(-early // 25_600)
    marks, means = [], []
    with start(TARGET, init=0.0, steps=steps, chains=runs, seed=seed, kernel=kernel, burn_in=0, thin=steps) as run:
        for mark in (*range(every, early, every), early):
            run.advance(mark - run.step)
            marks.append(mark)
            means.append(running_mean(run.samples().trajectory)[:, -1:])
        run.advance()
        trajectory, theta = run.samples().trajectory, run.samples().theta
    later = trajectory.steps > early
    errors = np.hstack([*means, running_mean(trajectory)[:, later]]) - PROBLEM.mean
    visits = np.asarray(trajectory.visits)
    half = visits.shape[1] // 2
    first_half = visits[:, half - 1] if half else 0  # a very short run has a single mark
    return Method(np.append(marks, trajectory.steps[later]), errors, np.asarray(theta), visits[:, -1] - first_half)


def running_mean(trajectory: Trajectory) -> np.ndarray:
    """The weighted mean of all steps up to each mark, (chains, marks)."""
    weights = np.exp(trajectory.log_weights - trajectory.log_weights.max(axis=1, keepdims=True))
    return np.cumsum(weights * trajectory.means, axis=1) / np.cumsum(weights, axis=1)


def barriers(partition: Partition, zeta: float, scheme: Scheme) -> list[float]:
    """The barriers from −6 to 4 and from 4 to −6, in the trial energy of the true θ.

    A barrier is the greatest climb on the way, from any point to a later one. Where the trial energy is lowest
    at the mode and highest at the saddle, it is the difference between the two.
    """
    from contourmc.plots import flattened_energy

    x, energy, _ = PROBLEM.grid(38_001)
    between = (x >= -6) & (x <= 4)
    trial = flattened_energy(energy[between], PROBLEM.theta(partition), partition, zeta, scheme)
    return [float(np.max(way - np.minimum.accumulate(way))) for way in (trial, trial[::-1])]


def flatness(visits: np.ndarray) -> float:
    """The smallest count of visits divided by the largest, from bin 1 to the bin of the saddle (U = 13.4).

    Bin 0 does not count: from the lowest energy to u₁ it is only 0.07 wide, the others are 1.
    """
    x, energy, _ = PROBLEM.grid()
    saddle = energy[(x > -6) & (x < 4)].max()
    counts = visits.sum(axis=0)[1 : int(OURS.index(saddle)) + 1]
    return float(counts.min() / max(counts.max(), 1))


def average(by_run: np.ndarray) -> dict[str, float]:
    """The mean over runs and its standard error (0 for a single run)."""
    runs = len(by_run)
    return {"mean": float(by_run.mean()), "se": float(by_run.std(ddof=min(1, runs - 1)) / runs**0.5)}


def summarise(name: str, method: Method) -> dict[str, Any]:
    """Every number of a method, as plain data."""
    truth = PROBLEM.theta(PAPERS if name.endswith("step") else OURS)
    return {
        "final_abs_error": average(np.abs(method.errors[:, -1])),
        "final_bias": average(method.errors[:, -1]),
        "runs_within_0.2": int(np.sum(np.abs(method.errors[:, -1]) < 0.2)),
        "theta_tv": average(np.abs(method.theta - truth).sum(axis=1) / 2),
        "theta": method.theta.mean(axis=0).tolist(),
        "theta_truth": truth.tolist(),
        "visit_shares": (method.visits.sum(axis=0) / method.visits.sum()).tolist(),
        "flatness": flatness(method.visits),
        "steps": method.steps.tolist(),
        "mean_abs_error": method.curve.tolist(),
    }


def slowdown(slow: Method, fast: Method) -> tuple[float, float]:
    """The ratio of the error of one method to that of another, in the first hundredth of the steps and after it."""
    ratio = np.log(slow.curve / fast.curve)
    early = slow.steps <= slow.steps[-1] // 100
    return float(np.exp(ratio[early].mean())), float(np.exp(ratio[~early].mean()))
