"""One θ for all chains or one for each, learnt for ever or fixed after a while: `python -m benchmarks.sharing`.

Two modes in 100 dimensions, of scales 1 and 1.05 and masses 0.4 and 0.6, from the first one. Every step makes the same
moves; only θ differs. The errors are total variations of the mode masses: of all chains together, and of each alone.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.table import Table

import contourmc as cm
from contourmc.problems import gallery

STEPS, CHAINS, SEEDS = 200_000, 10, 3
PARTITION = cm.Partition(low=140.0, width=4.0, bins=52)


def for_ever(step: Array) -> Array:
    """10/(k^0.6 + 100)."""
    return cm.Polynomial(10.0, 0.6, 100.0)(step)


def then_fixed(step: Array) -> Array:
    """The same for three tenths of the run, then next to nothing."""
    return jnp.where(step <= 3 * STEPS // 10, for_ever(step), 1e-9)


def main() -> None:
    problem = gallery()["mixture-100d"]
    table = Table("θ", "learnt", "error, together", "error, a chain", title=f"Means of {SEEDS} seeds")
    for shared in (False, True):
        for name, omega in (("for ever", for_ever), ("then fixed", then_fixed)):
            kernel = cm.contour(cm.langevin(0.2, momentum=0.8), PARTITION, omega=omega, shared=shared)
            runs = [
                cm.sample(
                    problem.energy, init=jnp.asarray(problem.start), steps=STEPS, kernel=kernel, chains=CHAINS,
                    seed=seed, burn_in=3 * STEPS // 10,
                )
                for seed in range(SEEDS)
            ]  # fmt: skip
            together = np.mean([problem.distance(run) for run in runs])
            alone = np.mean([problem.chain_distances(run).mean() for run in runs])
            table.add_row("shared" if shared else "of each chain", name, f"{together:.3f}", f"{alone:.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
