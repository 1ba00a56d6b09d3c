"""How long two processes on this machine take to exchange something: `python -m benchmarks.scaling.latency`."""

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.scaling.layouts import ROOT, free_port

TIMES = 200


def measure() -> tuple[float, float]:
    """Seconds for a message between the hosts, and for a mean of 50 numbers within a compiled program."""
    command = [sys.executable, "-m", "benchmarks.scaling.latency", str(free_port())]
    workers = [
        subprocess.Popen([*command, str(i)], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for i in range(2)
    ]
    outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    lines = [line for line in outputs[0].splitlines() if line.startswith("[") and line.endswith("]")]
    message, mean = json.loads(lines[-1])
    return message, mean


def _seconds(call: Any) -> float:
    call()
    began = time.perf_counter()
    for _ in range(TIMES):
        call()
    return (time.perf_counter() - began) / TIMES


def main() -> None:
    import contourmc as cm

    cm.distributed(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec

    from contourmc._core.mesh import DEVICES, deal, make_mesh
    from contourmc._core.processes import any_process

    mesh = make_mesh(2)
    assert mesh is not None

    def means(x: Any) -> Any:
        return jax.lax.fori_loop(0, TIMES, lambda _, y: jax.lax.pmean(y, DEVICES) + 1, x)

    along = PartitionSpec(DEVICES)
    program = jax.jit(jax.shard_map(means, mesh=mesh, in_specs=along, out_specs=along, check_vma=False))
    numbers = deal(mesh, jnp.zeros((2, 50)))
    jax.block_until_ready(program(numbers))
    began = time.perf_counter()
    jax.block_until_ready(program(numbers))
    mean = (time.perf_counter() - began) / TIMES
    print(json.dumps([_seconds(lambda: any_process(False)), mean]), flush=True)


if __name__ == "__main__":
    main()
