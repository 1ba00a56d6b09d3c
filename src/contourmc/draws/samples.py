"""The result of a run: weighted draws with their diagnosis, files, and conversions for other libraries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contourmc._core.checks import require
from contourmc._core.pytrees import named_leaves
from contourmc.draws import storage, temperatures
from contourmc.draws.arviz import to_arviz
from contourmc.draws.density_of_states import DensityOfStates, density_of_states
from contourmc.draws.diagnostics import diagnose
from contourmc.draws.evidence import LogEvidence, log_evidence
from contourmc.draws.findings import Diagnosis
from contourmc.draws.modes import Mode, find_modes
from contourmc.draws.report.page import write_page
from contourmc.draws.run_files import read_run
from contourmc.draws.summary import Summary, summarise
from contourmc.draws.thermodynamics import LogNormaliser, Thermodynamics, log_normaliser, thermodynamics
from contourmc.draws.weighted import WeightedDraws, apply
from contourmc.targets.base import Target
from contourmc.targets.energies import Energy
from contourmc.targets.view import Labels


@dataclass(frozen=True)
class Samples(WeightedDraws):
    """The result of a run: its weighted draws, and what is estimated from them.

    >>> run
    Samples(4 chains × 14000 draws, Contour)
    >>> mean, error = run.expectation(lambda x: x < 0, error=True)  # the left well is deeper
    >>> print(mean > 0.5, run.quantile([0.05, 0.95]).shape, run.resample(100).shape, run.weights.shape)
    True (2,) (100,) (4, 14000)
    """

    def diagnose(self) -> Diagnosis:
        """What a careful person checks before trusting the run, in words.

        >>> run.diagnose().ok
        True
        """
        return diagnose(self)

    def summary(self) -> Summary:
        """Mean, error, deviation, quantiles, effective size and R̂ of every coordinate; prints as a table.

        >>> run.summary().rows["x"].ess > 200
        True
        """
        return summarise(self)

    def modes(self) -> list[Mode]:
        """The modes of the draws, each with its mass and the error of it, its minimum and the energy there.

        A sample of the draws goes downhill to find them, when they are first asked for; all draws count for the masses.
        Raises for kernels that do not flatten. Where the energy cannot be evaluated again, as for one outside of JAX,
        the modes are the minima that the pilot found. See docs/tuning.md.

        >>> [round(float(mode.minimum)) for mode in run.modes()]
        [-1, 1]
        """
        return find_modes(self)

    def at_temperature(self, temperature: float) -> "Samples":
        """The same draws, weighted for e^{−U/T} instead of e^{−U/τ}, for all estimates; these come from kept draws.

        For exact energies and a kernel that flattens. Raises for temperatures whose energies were not visited. U is
        the energy that was sampled: of a transformed target, with the Jacobian.

        >>> print(run.at_temperature(2.0).variance() > run.variance())
        True
        """
        return temperatures.at_temperature(self, temperature)

    def temperature_range(self) -> tuple[float, float]:
        """The lowest and the highest temperature whose energies the run has visited.

        >>> low, high = run.temperature_range()
        >>> low < 1 < high
        True
        """
        return temperatures.temperature_range(self)

    def log_normaliser(self, temperature: float) -> LogNormaliser:
        """log Z(T) − log Z(τ), where Z(T) = ∫e^{−U/T}dx; with its standard error.

        >>> value, error, effective = run.log_normaliser(2.0)
        >>> value > 5 * error
        True
        """
        return log_normaliser(self, temperature)

    def thermodynamics(self, temperatures: Sequence[float] | np.ndarray | None = None) -> Thermodynamics:
        """log Z, mean energy, heat capacity and entropy of some temperatures, with errors; prints as a table.

        Without temperatures, of 40 in the range that was visited.

        >>> table = run.thermodynamics([1.0, 2.0])
        >>> print(table.energy.value.round())
        [0. 1.]
        """
        return thermodynamics(self, temperatures)

    def density_of_states(self) -> DensityOfStates:
        """How much space there is at each energy, as a logarithm, by the bins of the partition; with errors.

        >>> states = run.density_of_states()
        >>> states.log_density.shape == states.energies.shape
        True
        """
        return density_of_states(self)

    def log_evidence(
        self, *, energy: Target | Energy | None = None, reference: Any = None, seed: int = 0
    ) -> LogEvidence:
        """log ∫e^{−U/τ}dx, the evidence of a posterior, by bridge sampling; with its standard error.

        energy: what was sampled, for a run that came from a file and does not know it; as `transformed` if it was.
        reference: a normalised distribution that resembles the posterior, with `sample(key, sample_shape)` and
            `log_prob(position)` as in NumPyro, of positions as they were sampled; by default mixtures of Gaussians are
            fitted to the draws.
        seed: of the draws of the reference.

        For exact energies and a kernel that flattens. Warns if the reference and the draws hardly overlap. For another
        temperature: `run.at_temperature(2.0).log_evidence()`.

        >>> print(f"{run.log_evidence().value:.1f}")
        -0.3
        """
        return log_evidence(self, energy, reference, seed)

    def __getitem__(self, name: str) -> np.ndarray:
        """The draws of one array of the position by its name, with leading axes (chain, draw): `run["mu"]`."""
        named = named_leaves(self.positions)
        require(name in named, "name", name, f"the position has {', '.join(named)}")
        return np.asarray(named[name])

    def map(self, function: Callable[[Any], Any]) -> "Samples":
        """The same draws, as a function of a position: with the same weights, for all estimates.

        >>> run.map(lambda x: {"square": x**2}).summary().rows.keys()
        dict_keys(['square'])
        """
        return replace(
            self, draws=apply(function, self.positions), trajectory=self.trajectory.without_moments(), basins=None,
            target=None, unconstrained=None, labels=Labels(), view=None,
        )  # fmt: skip

    def to_arviz(self, draws: int | None = None, seed: int = 0, *, log_likelihood: bool = True) -> Any:
        """The draws for ArviZ, resampled to equal weights, with `draws` for each chain (by default as many as kept).

        Of a model that the run still knows, from `from_numpyro` or `from_pymc`, it also has the observed data and,
        unless `log_likelihood` is False, the log likelihood of every observation at every draw.

        Draws of all chains are resampled together, so that means agree with `mean()`, and dealt in the order of chains
        and steps. If chains count equally, each keeps its place. If weights are comparable between chains, one of large
        weight takes the places of several: ArviZ's R̂ then compares such stretches of chains.

        >>> dict(run.to_arviz().posterior.sizes)
        {'chain': 4, 'draw': 14000}
        """
        return to_arviz(self, draws, seed, log_likelihood)

    def to_xarray(self) -> Any:
        """Everything as one xarray.DataTree: energies and weights, with settings as attributes, and groups below.

        These are `draws`, `unconstrained`, `target_states`, `trajectory`, `basins` and `average`, as far as there are
        any; an array of the position is a variable such as `layer.bias`, or `x` for a bare array.

        >>> list(run.to_xarray().children)
        ['draws', 'trajectory', 'basins']
        """
        return storage.to_xarray(self)

    def save(self, file: str | Path) -> Path:
        """Write `to_xarray()` to a netCDF file that xarray and other tools read; returns its path.

        The new file replaces one of the same name when it is complete, and not if writing fails.

        >>> print(run.save("run.nc"))
        run.nc
        """
        return storage.save(self, Path(file))

    def report(self, file: str | Path, title: str = "") -> Path:
        """Write all of it on one page, an HTML file that opens offline and loads nothing; returns its path.

        The verdict comes first, then estimates, modes, charts, temperatures and evidence where the run has them,
        predictions, and how the run was made. Large runs show their leading coordinates and some of their draws. See
        docs/report.md.

        >>> print(run.report("report.html", title="Two wells"))
        report.html
        """
        return write_page(self, Path(file), title)

    @classmethod
    def load(cls, file: str | Path) -> "Samples":
        """Read a file written by `save`: the same draws, in a pytree of the same structure.

        Raises a ValueError if the file is damaged, incomplete, or was changed by another program.

        Named tuples, and dataclasses that are pytrees, come back as such if their modules have been imported; else, as
        other classes do, as a dictionary by field name, with a warning. Model averages are in the file if they are
        predictions of this library, or `Stored`.

        >>> again = cm.Samples.load(run.save("run.nc"))
        >>> print(again.mean() == run.mean())
        True
        """
        return cls(**storage.load(Path(file)))

    @classmethod
    def open(cls, folder: str | Path) -> "Samples":
        """The draws of a run with a checkpoint, from its folder, also while another process runs it.

        They are as of the last checkpoint. Positions stay on disk until they are used.

        >>> cm.sample(energy, init=1.0, steps=2_000, checkpoint="folder")
        Samples(4 chains × 1400 draws, Contour)
        >>> cm.Samples.open("folder")
        Samples(4 chains × 1400 draws, Contour)
        """
        return cls(**read_run(Path(folder)))

    def __repr__(self) -> str:
        kind = self.settings.get("kernel", {}).get("kind", "?")
        state = ", interrupted" if self.interrupted else ""
        return f"Samples({self.chains} chains × {self.energies.shape[1]} draws, {kind}{state})"
