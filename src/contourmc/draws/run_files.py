"""What the folder of a run holds for readers: its draws in a Zarr store, and everything else of `Samples` in a file.

The file is replaced as a whole at every checkpoint and says how many draws of the store belong to it, so that others
can read both while the run goes on.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contourmc._core.checks import require
from contourmc.draws import storage
from contourmc.draws.draw_store import digest_of, read_store
from contourmc.draws.weighted import WeightedDraws

SUMMARY = "samples.nc"
_COUNT, _STORE, _DIGEST = "draws on disk", "store", "digest of the draws"
_LISTED = ("draws", "target_states", "unconstrained")


def write_summary(samples: WeightedDraws, folder: Path, store: str, draws: int) -> None:
    """Everything but the draws, so many of which are in the store of this name; an empty one for a run without.

    samples: with the draws that are in the incomplete chunk of the store, or in memory if there is none.
    """
    columns = {name: getattr(samples, name) for name in ("energies", "log_weights", "multipliers", "virials")}
    none = {name: None if column is None else column[:, :0] for name, column in columns.items()}
    settings = samples.settings | {_COUNT: draws if store else 0, _STORE: store}
    if store:
        last = {"/": columns} | {name: getattr(samples, name) for name in _LISTED}
        settings[_DIGEST] = digest_of(folder / store, draws, last, samples.steps)
    none |= dict.fromkeys(_LISTED)
    bare = replace(samples, steps=samples.steps[:0], settings=settings, **none)
    storage.save(bare, folder / SUMMARY)


def read_run(folder: Path) -> dict[str, Any]:
    """The fields of `Samples`; positions are read when they are used."""
    require(folder.is_dir(), "folder", str(folder), "there is no such folder")
    remedy = "no run has written a checkpoint to it yet; give the folder that `checkpoint` named"
    require((folder / SUMMARY).exists(), "folder", str(folder), remedy)
    fields = storage.load(folder / SUMMARY)
    settings = fields["settings"]
    count, store, digest = settings.pop(_COUNT, 0), settings.pop(_STORE, ""), settings.pop(_DIGEST, "")
    if not store:
        return fields
    columns = read_store(folder / store, count, digest)
    some = {name: columns.get(name) for name in _LISTED}
    return fields | columns["/"] | some | {"steps": np.asarray(columns["draw"])}
