"""One process that makes a run of a kind: `python -m benchmarks.torture.worker KIND FOLDER`.

Prints `begun` when the run is about to start, and the digest of its result at the end. FOLDER: `-` for no checkpoints.
"""

import sys
from pathlib import Path

from benchmarks.torture.digest import digest
from benchmarks.torture.kinds import KINDS
from contourmc.checkpoints import keeper


def main() -> None:
    kind, folder = sys.argv[1:]
    keeper.MOST_TIME = 0.3  # of the run, for checkpoints: many more than usual
    print("begun", flush=True)
    print(digest(KINDS[kind](None if folder == "-" else Path(folder))), flush=True)


if __name__ == "__main__":
    main()
