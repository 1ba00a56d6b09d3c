"""A PyMC model: its energy, its positions by name, and starts from its prior."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pymc.backends.arviz import find_observations  # pyright: ignore[reportMissingImports]
from pymc.initial_point import make_initial_point_fn  # pyright: ignore[reportMissingImports]
from pymc.pytensorf import rvs_in_graph  # pyright: ignore[reportMissingImports]
from pytensor.graph.replace import clone_replace  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc._core.rows import OverRows
from contourmc.pymc.jaxified import jaxified
from contourmc.targets.model import Model
from contourmc.targets.view import Labels

TRIES = 16  # draws from the prior, of which a chain starts at the one with the lowest energy
SAME = 1e-3  # how far a start may be from itself after a way there and back, relatively


class PyMCModel(Model):
    """model: of PyMC.

    Sampled positions are by the names of PyMC's value variables, such as `scale_log__`; what users see is by those of
    its variables, such as `scale`.
    """

    def __init__(self, model: Any):
        self.model = model
        _require_possible(model)
        self._values = [variable.name for variable in model.value_vars]
        self._free = [variable.name for variable in model.free_RVs]
        self._seen = [*self._free, *(variable.name for variable in model.deterministics)]
        self._log_density = jaxified(model.value_vars, [model.logp()])
        by_name = {variable.name: variable for variable in model.unobserved_value_vars}
        self._constrain = jaxified(model.value_vars, [by_name[name] for name in self._seen])
        self._unconstrain = self._inverse()

    def __repr__(self) -> str:
        return f"pymc.Model({', '.join(self._free)})"

    def energy(self, position: Position) -> Float[Array, ""]:
        return -self._log_density(*(position[name] for name in self._values))[0]

    def constrain(self, position: Position) -> dict[str, Array]:
        seen = self._constrain(*(position[name] for name in self._values))
        return {name: jnp.asarray(value) for name, value in zip(self._seen, seen, strict=True)}

    def unconstrain(self, position: dict[str, Array]) -> Position:
        values = self._unconstrain(*(position[name] for name in self._free))
        return {name: jnp.asarray(value) for name, value in zip(self._values, values, strict=True)}

    def check_starts(self, positions: Any) -> None:
        remedy = f"give a dictionary with a value for each free variable: {', '.join(self._free)}"
        right = isinstance(positions, dict) and set(positions) == set(self._free)
        require(right, "init", sorted(positions) if isinstance(positions, dict) else positions, remedy)
        like = jax.eval_shape(self.constrain, _numbers(self.model.initial_point()))
        for name in self._free:
            given, shape = np.shape(positions[name])[1:], like[name].shape
            require(given == shape, f"init[{name!r}]", f"an array of shape {given}", f"give one of shape {shape}")
        # A transformation of PyMC's does not say what its support is, and gives NaN, or another point, outside of it.
        back = jax.vmap(lambda one: self.constrain(self.unconstrain(one)))(positions)
        for name in self._free:
            same = np.isclose(positions[name], back[name], rtol=SAME, atol=SAME)
            bad = np.flatnonzero(~same.reshape(len(same), -1).all(axis=1))
            value = np.asarray(positions[name])[bad[0] if len(bad) else 0]
            require(not len(bad), f"init[{name!r}]", value, "it is outside of the support of its prior")

    def starts(self, keys: Array) -> Position:
        """Of some draws from the prior the one with the lowest energy."""
        draw, energy = self._prior(), jax.jit(jax.vmap(self.energy))
        found = []
        for key in np.asarray(jax.random.key_data(keys)).reshape(len(keys), -1):
            seeds = np.random.SeedSequence(key.tolist()).generate_state(TRIES)
            tries = [_numbers(draw(int(seed))) for seed in seeds]
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tries)
            energies = np.asarray(energy(stacked), float)
            found.append(tries[int(np.argmin(np.where(np.isfinite(energies), energies, np.inf)))])
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *found)

    @property
    def labels(self) -> Labels:
        dims = {name: tuple(axes) for name, axes in self.model.named_vars_to_dims.items() if None not in axes}
        coords = {axis: np.asarray(labels).tolist() for axis, labels in self.model.coords.items() if labels is not None}
        return Labels(dims, coords)

    def arviz_groups(self, draws: dict[str, np.ndarray], *, log_likelihood: bool) -> dict[str, dict[str, np.ndarray]]:
        observed = self.model.observed_RVs
        if not observed:
            return {}
        groups = {"observed_data": {name: np.asarray(data) for name, data in find_observations(self.model).items()}}
        if log_likelihood:
            terms = jaxified(self.model.value_vars, self.model.logp(vars=observed, sum=False))
            names = [variable.name for variable in observed]

            def at(position: dict[str, Array]) -> dict[str, Array]:
                sampled = self.unconstrain(position)
                return dict(zip(names, terms(*(sampled[name] for name in self._values)), strict=True))

            free = {name: draws[name] for name in self._free}
            one = {name: jax.ShapeDtypeStruct(values.shape[2:], values.dtype) for name, values in free.items()}
            groups["log_likelihood"] = OverRows(at, one).of(free, 2)
        return groups

    def _inverse(self) -> Callable[..., tuple[Array, ...]]:
        """The value variables as a function of the free ones."""
        variables, transforms = self.model.free_RVs, self.model.rvs_to_transforms
        inputs = [variable.type() for variable in variables]
        values = [
            variable if transforms[variable] is None else transforms[variable].forward(variable, *variable.owner.inputs)
            for variable in variables
        ]
        return jaxified(inputs, clone_replace(values, replace=dict(zip(variables, inputs, strict=True))))

    def _prior(self) -> Callable[[int], dict[str, np.ndarray]]:
        """Draws from the prior; from around its centre if one of the distributions cannot be drawn from."""
        draw = make_initial_point_fn(model=self.model, default_strategy="prior", return_transformed=True)
        try:
            draw(0)
        except NotImplementedError:
            jittered = {*self.model.free_RVs}
            return make_initial_point_fn(model=self.model, jitter_rvs=jittered, return_transformed=True)
        return draw


def _require_possible(model: Any) -> None:
    """Raise unless the model has continuous free variables alone, and all of its data."""
    require(bool(model.free_RVs), "model", "a model without free variables", "it has none that could be sampled")
    discrete = [variable.name for variable in model.free_RVs if np.dtype(variable.type.dtype).kind != "f"]
    remedy = "energies need continuous ones: sum them out, for example with pm.Mixture or pymc-extras' marginalize"
    require(not discrete, "model", f"discrete free variables: {', '.join(discrete)}", remedy)
    parts = [variable.name for variable in model.observed_RVs if _has_minibatch(variable, model)]
    remedy = "PyMC does not compile them for JAX: give the whole data, or a cm.Posterior with a batch_size"
    require(not parts, "model", f"mini-batches in {', '.join(parts)}", remedy)


def _has_minibatch(variable: Any, model: Any) -> bool:
    """Whether its data are chosen at random."""
    return bool(rvs_in_graph([model.rvs_to_values[variable]]))


def _numbers(point: dict[str, np.ndarray]) -> dict[str, Array]:
    """A point of PyMC's, in the precision that JAX has."""
    return {name: jnp.asarray(np.asarray(value), jnp.result_type(float)) for name, value in point.items()}
