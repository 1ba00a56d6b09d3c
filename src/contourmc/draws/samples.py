"""The result of a run: weighted draws with their diagnosis, files, and conversions for other libraries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contourmc.draws import storage
from contourmc.draws.arviz import to_arviz
from contourmc.draws.diagnostics import Diagnosis, diagnose
from contourmc.draws.weighted import WeightedDraws


@dataclass(frozen=True)
class Samples(WeightedDraws):
    """The result of a run: its weighted draws, and what is estimated from them (see `WeightedDraws`)."""

    def diagnose(self) -> Diagnosis:
        """What a careful person checks before trusting the run, in words."""
        return diagnose(self)

    def to_arviz(self, draws: int | None = None, seed: int = 0) -> Any:
        """The draws for ArviZ, resampled within each chain to equal weights (by default as many as kept)."""
        return to_arviz(self, draws, seed)

    def to_xarray(self) -> Any:
        """Everything as one xarray.Dataset: draws, energies, weights, trajectory and settings."""
        return storage.to_xarray(self)

    def save(self, file: str | Path) -> Path:
        """Write everything to a netCDF file that xarray and other tools read; returns its path."""
        return storage.save(self, Path(file))

    @classmethod
    def load(cls, file: str | Path) -> "Samples":
        """Read a file written by `save`."""
        return cls(**storage.load(Path(file)))

    def __repr__(self) -> str:
        kind = self.settings.get("kernel", {}).get("kind", "?")
        state = ", interrupted" if self.interrupted else ""
        return f"Samples({self.chains} chains × {self.energies.shape[1]} draws, {kind}{state})"
