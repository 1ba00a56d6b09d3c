"""A NumPyro model with its arguments: its energy, its positions by name, and starts from its prior."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro import handlers, infer
from numpyro.distributions import ImproperUniform, biject_to
from numpyro.infer import util

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc._core.rows import OverRows
from contourmc.numpyro.sites import find_sites
from contourmc.targets.model import Model
from contourmc.targets.view import Labels

TRIES = 16  # draws from the prior, of which a chain starts at the one with the lowest energy
KEY = 0  # of the subsample where any will do


class NumPyroModel(Model):
    """function, args, kwargs: the model, and what it is called with.
    sites: what it is made of.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.sites = find_sites(function, args, kwargs)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)

    def energy(self, position: Position) -> Float[Array, ""]:
        return self._energy(self.function, position)

    def random_energy(self, position: Position, key: PRNGKeyArray) -> Float[Array, ""]:
        """The energy of a model that needs a key, such as one with a subsampled plate."""
        return self._energy(handlers.seed(self.function, key), position)

    def _energy(self, model: Callable[..., Any], position: Position) -> Float[Array, ""]:
        return jnp.asarray(util.potential_energy(model, self.args, self.kwargs, position))

    def constrain(self, position: Position) -> dict[str, Array]:
        seen = util.constrain_fn(self._any_subsample(), self.args, self.kwargs, position, return_deterministic=True)
        return {name: jnp.asarray(seen[name]) for name in (*self.sites.latent, *self.sites.deterministic)}

    def unconstrain(self, position: dict[str, Array]) -> Position:
        return util.unconstrain_fn(self._any_subsample(), self.args, self.kwargs, position)

    def check_starts(self, positions: Any) -> None:
        names = [*self.sites.latent]
        remedy = f"give a dictionary with a value for each latent site: {', '.join(names)}"
        right = isinstance(positions, dict) and set(positions) == set(names)
        require(right, "init", sorted(positions) if isinstance(positions, dict) else positions, remedy)
        for name, shape in self.sites.latent.items():
            given = np.shape(positions[name])[1:]
            require(given == shape, f"init[{name!r}]", f"an array of shape {given}", f"give one of shape {shape}")

        def inside(position: dict[str, Array]) -> dict[str, Array]:
            trace = self._trace(handlers.substitute(self._any_subsample(), data=position))
            return {name: jnp.all(trace[name]["fn"].support(position[name])) for name in names}

        for name, fine in jax.vmap(inside)(positions).items():
            bad = np.flatnonzero(~np.asarray(fine))
            value = np.asarray(positions[name])[bad[0] if len(bad) else 0]
            require(not len(bad), f"init[{name!r}]", value, "it is outside of the support of its prior")

    def starts(self, keys: Array) -> Position:
        """Of some draws from the prior the one with the lowest energy, or near 0 where none has a finite one."""

        def start(key: PRNGKeyArray) -> Position:
            key, subsample = jax.random.split(key)
            tries = jax.vmap(self._draw)(jax.random.split(key, TRIES))
            shapes = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], tries))
            near = jax.vmap(lambda key: _uniform(key, shapes))(jax.random.split(subsample, TRIES))
            best, low = self._best(tries, subsample)
            fallback, _ = self._best(near, subsample)
            return jax.tree.map(lambda a, b: jnp.where(jnp.isfinite(low), a, b), best, fallback)

        return jax.jit(jax.vmap(start))(keys)

    @property
    def labels(self) -> Labels:
        return self.sites.labels

    def arviz_groups(self, draws: dict[str, np.ndarray], *, log_likelihood: bool) -> dict[str, dict[str, np.ndarray]]:
        """Without those of a model on mini-batches, which does not see all observations."""
        if self.sites.random or not self.sites.observed:
            return {}
        groups = {"observed_data": self.sites.observed}
        if log_likelihood:
            groups["log_likelihood"] = self._log_likelihoods({name: draws[name] for name in self.sites.latent})
        return groups

    def _log_likelihoods(self, latent: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Of each observation at each draw."""

        def at(position: dict[str, Array]) -> dict[str, Array]:
            found = util.log_likelihood(self.function, position, *self.args, batch_ndims=0, **self.kwargs)
            return {name: found[name] for name in self.sites.observed}

        one = {name: jax.ShapeDtypeStruct(values.shape[2:], values.dtype) for name, values in latent.items()}
        return OverRows(at, one).of(latent, 2)

    def _any_subsample(self) -> Callable[..., Any]:
        """The model, with some subsample if it has any: for what does not depend on it."""
        return handlers.seed(self.function, jax.random.key(KEY)) if self.sites.random else self.function

    def _trace(self, model: Callable[..., Any]) -> dict[str, Any]:
        return handlers.trace(model).get_trace(*self.args, **self.kwargs)

    def _draw(self, key: PRNGKeyArray) -> Position:
        """A draw from the prior, as it is sampled; sites without a proper prior are near 0."""

        def improper(site: dict[str, Any]) -> Any:
            if site["type"] == "sample" and isinstance(site["fn"], ImproperUniform):
                return infer.init_to_uniform(site)
            return None

        trace = self._trace(handlers.substitute(handlers.seed(self.function, key), substitute_fn=improper))
        return {name: biject_to(trace[name]["fn"].support).inv(trace[name]["value"]) for name in self.sites.latent}

    def _best(self, tries: Position, key: PRNGKeyArray) -> tuple[Position, Float[Array, ""]]:
        """The one of stacked positions with the lowest energy, and that."""
        energy = (lambda one: self.random_energy(one, key)) if self.sites.random else self.energy
        energies = jax.vmap(energy)(tries)
        leaves = jnp.stack([jnp.isfinite(leaf).reshape(TRIES, -1).all(axis=1) for leaf in jax.tree.leaves(tries)])
        energies = jnp.where(jnp.isfinite(energies) & leaves.all(axis=0), energies, jnp.inf)
        lowest = jnp.argmin(energies)
        return jax.tree.map(lambda leaf: leaf[lowest], tries), energies[lowest]


def _uniform(key: PRNGKeyArray, shapes: Any) -> Position:
    """Between −2 and 2, as NumPyro starts."""
    leaves, structure = jax.tree.flatten(shapes)
    keys = jax.random.split(key, len(leaves))
    drawn = [jax.random.uniform(k, leaf.shape, leaf.dtype, -2.0, 2.0) for k, leaf in zip(keys, leaves, strict=True)]
    return structure.unflatten(drawn)
