"""`python -m benchmarks.still_chains`: how many chains of automatic runs stand still where scales shrink.

Two posteriors on which one step size for all places is not enough: eight schools in the non-centred form, through
NumPyro's potential, and a mixture of three components for the velocities of 82 galaxies (Roeder 1990).
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.progress import track
from rich.table import Table

import contourmc as cm

VELOCITIES = """
9172 9350 9483 9558 9775 10227 10406 16084 16170 18419 18552 18600 18927 19052 19070 19330 19343 19349 19440 19473
19529 19541 19547 19663 19846 19856 19863 19914 19918 19973 19989 20166 20175 20179 20196 20215 20221 20415 20629 20795
20821 20846 20875 20986 21137 21492 21701 21814 21921 21960 22185 22209 22242 22249 22314 22374 22495 22746 22747 22888
22914 23206 23241 23263 23484 23538 23542 23666 23706 23711 24129 24285 24289 24366 24717 24990 25633 26960 26995 32065
32789 34279
"""


def eight_schools() -> tuple[Callable[[Any], Array], Any]:
    """The potential and a start, as `initialize_model` gives them."""
    import numpyro  # pyright: ignore[reportMissingImports]  # an optional extra
    import numpyro.distributions as dist  # pyright: ignore[reportMissingImports]
    from numpyro.infer.util import initialize_model  # pyright: ignore[reportMissingImports]

    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            theta = numpyro.sample("theta", dist.Normal(0, 1))
            numpyro.sample("effect", dist.Normal(mu + tau * theta, errors), obs=effects)

    found = initialize_model(jax.random.key(0), model)
    return found.potential_fn, found.param_info.z


def galaxies() -> tuple[Callable[[Any], Array], Any]:
    """Means, log scales and weights of three normal components, with wide priors, in units of 1,000 km/s."""
    data = jnp.asarray([float(number) / 1000 for number in VELOCITIES.split()])

    def energy(x: dict[str, Array]) -> Array:
        mu, log_sigma = x["mu"], x["log_sigma"]
        terms = jax.nn.log_softmax(x["weight"]) - 0.5 * ((data[:, None] - mu) / jnp.exp(log_sigma)) ** 2 - log_sigma
        prior = jnp.sum(((mu - 20) / 10) ** 2) + jnp.sum((log_sigma - 0.5) ** 2) + jnp.sum(x["weight"] ** 2)
        return prior / 2 - jnp.sum(jax.nn.logsumexp(terms, axis=1))

    return energy, {"mu": jnp.array([10.0, 20.0, 30.0]), "log_sigma": jnp.zeros(3), "weight": jnp.zeros(3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="runs of four chains on each problem")
    parser.add_argument("--steps", type=int, default=200_000, help="of each chain")
    chosen = parser.parse_args()
    table = Table("problem", "chains", "stood still", "fewest distinct draws", title="Chains that stand still")
    for problem in (eight_schools, galaxies):
        energy, init = problem()
        still, fewest = 0, chosen.steps
        for seed in track(range(chosen.runs), problem.__name__, console=Console(stderr=True)):
            run = cm.sample(energy, init=init, steps=chosen.steps, chains=4, seed=seed)
            still += int(run.still.sum())
            fewest = min(fewest, *(len(np.unique(energies)) for energies in run.energies))
        table.add_row(problem.__name__.replace("_", " "), str(4 * chosen.runs), str(still), f"{fewest:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
