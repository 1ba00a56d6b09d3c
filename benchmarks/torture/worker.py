"""One process that makes a run of a kind: `python -m benchmarks.torture.worker KIND FOLDER SHARE BROKEN`.

Prints `begun` when the run is about to start, `saving` for every checkpoint, and at the end the digest of the result.

FOLDER: `-` for no checkpoints.
SHARE: of the steps that a run of this kind usually makes.
BROKEN: `-`, or the name of a mistake that the checkpoints are to have.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.torture import kinds
from benchmarks.torture.digest import digest
from contourmc.checkpoints import keeper
from contourmc.checkpoints.keeper import Checkpoint
from contourmc.checkpoints.states import States


def forget_average(checkpoint: Checkpoint) -> Checkpoint:
    """The sums of the average are zero in it."""
    state = checkpoint.run.state
    groups = [group._replace(average=jax.tree.map(np.zeros_like, group.average)) for group in state.groups]
    return checkpoint._replace(run=checkpoint.run._replace(state=state._replace(groups=tuple(groups))))


MISTAKES: dict[str, Callable[[Checkpoint], Checkpoint]] = {"-": lambda whole: whole, "average": forget_average}


def main() -> None:
    kind, folder, share, broken = sys.argv[1:]
    kinds.SHARE, keeper.MOST_TIME = float(share), float("inf")  # whatever checkpoints cost
    save = States.save

    def tell(self: States, tree: Any, structures: Sequence[Any], afterwards: Callable[[], None]) -> None:
        print("saving", flush=True)
        save(self, MISTAKES[broken](tree), structures, afterwards)

    States.save = tell
    print("begun", flush=True)
    print(digest(kinds.KINDS[kind](None if folder == "-" else Path(folder))), flush=True)


if __name__ == "__main__":
    main()
