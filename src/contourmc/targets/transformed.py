"""Targets with bounded or structured parameters, sampled free of their constraints."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.pytrees import Position, name_of
from contourmc.targets.base import Target
from contourmc.targets.constraints import Constraint, as_constraint, is_constraint
from contourmc.targets.energies import Energy, as_target
from contourmc.targets.parts import Evaluated
from contourmc.targets.view import View
from contourmc.targets.wrapped import WrappedTarget

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Coordinates(View):
    """Positions with some of their arrays constrained.

    constraints: by the path to an array, or to a part of the position all of whose arrays have it.
    """

    constraints: tuple[tuple[Path, Constraint], ...]

    def constrain(self, position: Position) -> Any:
        return self.with_gain(position)[0]

    def with_gain(self, position: Position) -> tuple[Any, Float[Array, ""]]:
        """What the user sees, and the log density that the sampled position gains."""
        leaves, structure = jax.tree_util.tree_flatten_with_path(position)
        values, gain = [], jnp.zeros((), jnp.result_type(*(leaf for _, leaf in leaves)))
        for path, leaf in leaves:
            constraint = self._of(path)
            value, gained = (leaf, None) if constraint is None else constraint.constrain(leaf)
            values.append(value)
            gain = gain if gained is None else gain + gained
        return structure.unflatten(values), gain

    def unconstrain(self, position: Any) -> Position:
        def free(path: Path, leaf: Array) -> Array:
            constraint = self._of(path)
            return leaf if constraint is None else constraint.unconstrain(leaf)

        return jax.tree_util.tree_map_with_path(free, position)

    def check_starts(self, positions: Any) -> None:
        leaves = jax.tree_util.tree_leaves_with_path(positions)
        names = ", ".join(name_of(path) for path, _ in leaves)
        for prefix, constraint in self.constraints:
            below = [(path, leaf) for path, leaf in leaves if path[: len(prefix)] == prefix]
            remedy = f"it is no part of the position, which has {names}"
            require(bool(below), "constraints", name_of(prefix), remedy)
            for path, leaf in below:
                fault = constraint.fault(leaf)
                require(not fault, f"init{jax.tree_util.keystr(path)}", leaf[0], fault)

    def _of(self, path: Path) -> Constraint | None:
        return next((constraint for prefix, constraint in self.constraints if path[: len(prefix)] == prefix), None)


@dataclass(frozen=True, eq=False)
class Transformed(WrappedTarget):
    """U(x(z)) − log |det ∂x/∂z|, as a function of z, with U another target of x.

    target: U.
    coordinates: how x follows from z.
    """

    functions: ClassVar[tuple[str, ...]] = ("target",)
    target: Target
    coordinates: Coordinates

    @property
    def view(self) -> View:
        return self.coordinates

    def starts(self, keys: Array) -> Position | None:
        given = self.target.starts(keys)
        return None if given is None else jax.vmap(self.coordinates.unconstrain)(given)

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        return self.target.prepare(key, self.coordinates.constrain(position), steps)

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> Evaluated:
        return self._evaluated(position, 1, lambda x: self.target.evaluate_from(inputs, x, state))

    def evaluate_part(self, inputs: Any, part: Int[Array, ""], position: Position, state: Any) -> Evaluated:
        parts = self.batch_parts
        return self._evaluated(position, parts, lambda x: self.target.evaluate_part(inputs, part, x, state))

    def _evaluated(self, position: Position, parts: int, evaluate: Any) -> Evaluated:
        """The energy and its gradient by the chain rule; each of some parts has its share of the gain."""
        (seen, gain), pull = jax.vjp(self.coordinates.with_gain, position)
        energy, gradient, state = evaluate(seen)
        (gradient,) = pull((gradient, jnp.full_like(gain, -1 / parts)))
        return energy - gain / parts, gradient, state

    def check(self, position: Any) -> None:
        self.target.check(jax.eval_shape(self.coordinates.constrain, position))


def transformed(target: Target | Energy, constraints: Any) -> Transformed:
    """A target whose parameters are bounded or structured, sampled without constraints.

    target: an energy, or any target, of the constrained position.
    constraints: `positive`, `simplex`, `ordered`, `interval(low, high)`, `periodic(period)`, or one of NumPyro's, by
        the names of the position, as nested as it is. One that stands for a part of the position holds for all arrays
        in it, and arrays that are not named are free.

    The logarithm of the Jacobian is added to the log density. Starts, draws, estimates and files are in the user's own
    coordinates; energies, and draws as they were sampled (`Samples.unconstrained`), in those without constraints.

    >>> def energy(position):
    ...     return position["mean"] ** 2 / 2 + position["scale"] - jnp.sum(jnp.log(position["weights"]))
    >>> target = cm.transformed(energy, {"scale": cm.positive, "weights": cm.simplex})
    >>> start = {"mean": 0.0, "scale": 1.0, "weights": jnp.array([0.5, 0.5])}
    >>> cm.sample(target, init=start, steps=2_000, kernel=cm.langevin(0.1)).draws["weights"].shape
    (4, 1800, 2)
    """
    inner = as_target(target)
    require(inner.view is None, "target", type(inner).__name__, "it has its own coordinates: constrain it there")
    given, _ = jax.tree_util.tree_flatten_with_path(constraints, is_leaf=is_constraint)
    require(bool(given), "constraints", constraints, 'give one or more, such as {"scale": cm.positive}')
    named = tuple((path, as_constraint(f"constraints{jax.tree_util.keystr(path)}", one)) for path, one in given)
    return Transformed(inner, Coordinates(named))
