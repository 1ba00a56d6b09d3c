"""One process that makes runs, by itself on several devices or as one of several processes.

    python -m benchmarks.scaling.worker FILE.json

The file names the runs, as `[kind, steps]`, and the layout. Prints `begun` before each run, and at the end of each a
line of JSON: its seconds, a digest of everything that it computed, its energies, θ, and the NLL of its average.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text())
    if task["devices"] > 1:
        flag = f"--xla_force_host_platform_device_count={task['devices']}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"

    import contourmc as cm

    if task["processes"] > 1:
        cm.distributed(f"127.0.0.1:{task['port']}", task["processes"], int(sys.argv[2]))

    from benchmarks.scaling.kinds import KINDS  # not before: it uses JAX
    from benchmarks.torture.digest import digest
    from contourmc.checkpoints import keeper

    keeper.MOST_TIME = 0.3  # of the run, for checkpoints: many more than usual
    for kind, steps in task["runs"]:
        print("begun", flush=True)
        folder = None if task["folder"] is None else Path(task["folder"]) / kind.replace(" ", "-")
        samples = KINDS[kind](steps, folder)
        print(json.dumps(_result(samples, digest(samples))), flush=True)


def _result(samples: Any, found: str) -> dict[str, Any]:
    theta = [] if samples.theta is None else samples.theta[0].tolist()
    nll = [] if samples.average is None else [samples.average.nll]
    energies = samples.energies[:, :: max(1, samples.energies.shape[1] // 100)].tolist()
    return dict(
        digest=found, seconds=samples.seconds, compile_seconds=samples.compile_seconds, theta=theta, nll=nll,
        energies=energies, draws=list(samples.energies.shape),
    )  # fmt: skip


if __name__ == "__main__":
    main()
