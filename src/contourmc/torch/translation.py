"""A kernel's step, translated into PyTorch: the mathematics stays where it is, and is followed line by line.

The kernel's own `prepare` and `increment` are traced by JAX, with the mean loss, its gradient and the settings of a
parameter group as arguments. The result is straight-line code of four kinds, by what a value depends on:

    the step k alone               NumPy, on the host: ω_k, τ_k
    and the group's lr             NumPy, once for every group
    and the loss or θ              PyTorch on the parameters' device, or NumPy if that is the CPU
    and vectors of parameters      PyTorch, a few passes over all parameters (`vectors.py`)
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.checks import require
from contourmc._core.describe import describe
from contourmc._core.generated import generate, host_function, needed_instructions
from contourmc._core.operations import HOST, Library
from contourmc._core.pytrees import named_leaves
from contourmc._core.straight_line import Constant, Symbol
from contourmc.checkpoints.identity import plain
from contourmc.kernels.base import Kernel
from contourmc.kernels.dynamics import IncrementalDynamics
from contourmc.kernels.flattened import FlattenedKernel
from contourmc.kernels.schedules import evaluate
from contourmc.torch.vectors import LENGTH, Apply, Sum, Vector, VectorCode, precision

_GROUP, _DEVICE = 1, 2  # what a value depends on, besides the step
_SOME = np.array([1, 8, 50, 300, 2_000, 15_000, 100_000], np.int32)  # steps at which schedules are compared
_COUNT = jax.ShapeDtypeStruct((), np.int32)


@dataclass(frozen=True)
class Translation:
    """A kernel for PyTorch.

    initial: the state at the start, by name: numbers and arrays of NumPy; for a vector a number, or None for a copy of
        the position.
    shared: from (k, loss, penalty, *state): the info, the new state, and what the groups need.
    group: from (lr, weight decay, *what the groups need): the numbers of the vectors.
    settle: from the state, the same state without rounding errors.
    numbers: the place of each number of a vector in what `group` gives.
    vector_steps: what is computed of vectors that is not linear.
    added: what is added to the position.
    vectors: the new vectors of the state, by name.
    sources: the vectors that are given: `gradient`, `position`, `noise`, and those of the state.
    number: makes a number of NumPy, in the precision of θ.
    operations: how many operations the shared part has.
    """

    initial: dict[str, Any]
    shared: Callable[..., tuple[Any, ...]]
    group: Callable[..., tuple[Any, ...]]
    settle: Callable[..., tuple[Any, ...]]
    numbers: dict[Any, int]
    vector_steps: Sequence[Sum | Apply]
    added: Vector
    vectors: dict[str, Vector]
    sources: dict[str, Symbol]
    number: Callable[[Any], Any]
    operations: int

    @property
    def noisy(self) -> bool:
        """Whether a step needs noise: not at temperature 0."""
        return any(self.sources["noise"] in used(each) for each in self.everything)

    @property
    def everything(self) -> list[Any]:
        return [*self.vector_steps, self.added, *self.vectors.values()]


def used(thing: Any) -> set[Symbol]:
    """The vectors that a step or a sum reads."""
    if isinstance(thing, Apply):
        return {each for each in thing.inputs if isinstance(each, Symbol)}
    return {symbol for symbol, _ in (thing.vector if isinstance(thing, Sum) else thing).terms}


def check_kernel(kernel: Any) -> None:
    """Raise unless an optimiser can take the kernel's steps."""
    remedy = "give a kernel whose steps are increments of the position, such as cm.csghmc(...) or cm.langevin(...)"
    moves: Any = kernel.dynamics if isinstance(kernel, FlattenedKernel) else kernel
    require(isinstance(moves, IncrementalDynamics), "kernel", kernel, remedy)
    remedy = "an optimiser is a single chain: leave `shared` out"
    require(not kernel.interacting, "shared", True, remedy)
    remedy = "give a number, and change the learning rate with a scheduler of PyTorch"
    require(not callable(moves.step_size), "step_size", moves.step_size, remedy)


def settings_of(kernel: Any, data_size: int) -> dict[str, Any]:
    """What a state belongs to, as plain data: the size of the data, and all settings but the step size, which is lr/N.

    A function of the step stands as its values at a handful of steps.
    """
    parts: tuple[Any, ...] = (kernel, kernel.dynamics) if isinstance(kernel, FlattenedKernel) else (kernel,)
    kinds = {"kernel": type(kernel).__name__, "dynamics": type(parts[-1]).__name__}
    found: dict[str, Any] = {**kinds, "data_size": data_size}
    for part in parts:
        for entry in fields(part):
            value: Any = getattr(part, entry.name)
            if entry.repr and entry.name not in ("dynamics", "step_size"):
                found[entry.name] = _described(value, scheduled=entry.name in part.schedules)
    return found


def _described(value: Any, *, scheduled: bool) -> Any:
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
        return float(value)
    if scheduled and callable(value) and not is_dataclass(value):
        return _values(value)
    return plain(describe(value))


def _values(schedule: Callable[[Any], Any]) -> str:
    """To six digits, which do not depend on how the function is written down."""
    compute = host_function(lambda steps: evaluate(schedule, steps), jax.ShapeDtypeStruct(_SOME.shape, _SOME.dtype))
    return ", ".join(f"{value:.6g}" for value in compute(_SOME)[0]) + f" at steps {', '.join(map(str, _SOME))}"


def translate(kernel: Any, data_size: int, library: Library = HOST) -> Translation:
    """The kernel's step on N·(mean loss + penalty), with ε = lr/N.

    library: what computes the values that depend on the loss; NumPy on the CPU, where nothing has to be waited for.
    """
    kind = precision()
    vector, number = jax.ShapeDtypeStruct((LENGTH,), kind), jax.ShapeDtypeStruct((), kind)
    shapes = jax.eval_shape(lambda position: kernel.init(position).at(None), vector)
    names, tree = list(named_leaves(shapes)), jax.tree.structure(shapes)
    leaves = dict(zip(names, jax.tree.leaves(shapes), strict=True))
    counts = {name for name in names if name.split(".")[-1] == "steps"}
    vectors = [name for name in names if leaves[name].shape == (LENGTH,)]
    shared = [name for name in names if name not in vectors and name not in counts]

    def step(k: Any, lr: Any, decay: Any, loss: Any, penalty: Any, given: Any, *state: Any) -> Any:
        gradient, position, noise = given
        held = dict(zip([*shared, *vectors], state, strict=True)) | dict.fromkeys(counts, k - 1)
        moved = _with_step_size(kernel, lr / data_size)
        inputs = _inputs(moved, k, noise)
        energy = data_size * (loss + penalty)
        gradient = data_size * (gradient + decay * position)
        return moved.increment(inputs, tree.unflatten([held[name] for name in names]), energy, gradient)

    code = VectorCode()
    k, lr, decay = Symbol((), np.dtype(np.int32)), *(Symbol((), kind, _GROUP) for _ in range(2))
    loss, penalty, *state = (
        Symbol(leaf.shape, np.dtype(leaf.dtype), _DEVICE) for leaf in (number, number, *(leaves[n] for n in shared))
    )
    sources = {name: Symbol((LENGTH,), kind) for name in ("gradient", "position", "noise", *vectors)}
    (added, new, info), _ = code.trace(
        step,
        (_COUNT, *[number] * 4, (vector,) * 3, *(leaves[name] for name in (*shared, *vectors))),
        (k, lr, decay, loss, penalty, *map(Vector.of, list(sources.values())[:3]), *state,
         *(Vector.of(sources[name]) for name in vectors)),
    )  # fmt: skip
    after = dict(zip(names, jax.tree.leaves(new), strict=True))
    results = [*info, *(after[name] for name in shared)]
    mixed = [name for name, each in zip([*info._fields, *shared], results, strict=True) if _stage(each) & _GROUP]
    require(not mixed, "kernel", kernel, f"{mixed} would depend on the lr, of which every parameter group has its own")

    numbers = list(dict.fromkeys(_numbers([*code.vector_steps, added, *(after[name] for name in vectors)])))
    own = [each for each in needed_instructions(code.instructions, numbers) if each.output.stage & _GROUP]
    made = {each.output for each in own}
    read = [atom for each in own for atom in each.inputs] + numbers
    crossing = [atom for atom in dict.fromkeys(read) if isinstance(atom, Symbol) and atom not in {*made, lr, decay}]

    def on_host(symbol: Symbol) -> bool:
        return library is HOST or not symbol.stage & _DEVICE

    whole = [*results, *crossing]
    return Translation(
        initial=_initial(kernel, names, counts),
        shared=generate(code.instructions, [k, loss, penalty, *state], whole, library, on_host),
        group=generate(own, [lr, decay, *crossing], numbers, library, on_host, as_numbers=True),
        settle=_settle(kernel, tree, names, leaves, shared, library),
        numbers={number: i for i, number in enumerate(numbers)},
        vector_steps=code.vector_steps,
        added=added,
        vectors={name: after[name] for name in vectors},
        sources=sources,
        number=kind.type,
        operations=len(needed_instructions(code.instructions, whole)),
    )


def _stage(atom: Any) -> int:
    return atom.stage if isinstance(atom, Symbol) else 0


def _numbers(things: Sequence[Any]) -> list[Any]:
    """The numbers that steps and sums of vectors take."""
    found: list[Any] = []
    for each in things:
        if isinstance(each, Apply):
            outputs = {step.output for step in things if isinstance(step, (Apply, Sum))}
            found += [atom for atom in each.inputs if atom not in outputs and getattr(atom, "shape", ()) == ()]
        else:
            found += [number for _, number in (each.vector if isinstance(each, Sum) else each).terms]
    return found


def _with_step_size(kernel: Any, step_size: Any) -> Any:
    """The kernel with another step size, which is a value of the traced program and not checked."""
    new = copy.copy(kernel)
    if isinstance(kernel, FlattenedKernel):
        vars(new)["dynamics"] = _with_step_size(kernel.dynamics, step_size)
    else:
        vars(new)["step_size"] = step_size
    return new


def _inputs(kernel: Kernel, k: Any, noise: Any) -> Any:
    """What the kernel prepares for step k, with √(2·friction·τε)·w for the noise that it would draw."""
    prepared = kernel.prepare(jax.random.key(0), jnp.zeros(LENGTH, precision()), jnp.reshape(k, (1,)))
    moves, own = (kernel.dynamics, prepared.dynamics) if isinstance(kernel, FlattenedKernel) else (kernel, prepared)
    assert isinstance(moves, IncrementalDynamics)
    scale = moves.noise_scale(own.step_size[0], own.temperature[0])
    leaves, tree = jax.tree.flatten(prepared)
    drawn = [leaf.shape == (1, LENGTH) for leaf in leaves]
    require(sum(drawn) <= 1, "kernel", kernel, "a step may take one noise for each parameter, not several")
    return tree.unflatten([scale * noise if each else leaf[0] for each, leaf in zip(drawn, leaves, strict=True)])


def _initial(kernel: Any, names: Sequence[str], counts: set[str]) -> dict[str, Any]:
    """The state at the start, by name."""
    code = VectorCode()
    position, shape = Vector.new(), jax.ShapeDtypeStruct((LENGTH,), precision())
    state, _ = code.trace(lambda position: kernel.init(position).at(None), (shape,), (position,))
    found: dict[str, Any] = {}
    for name, leaf in zip(names, jax.tree.leaves(state), strict=True):
        if name not in counts:
            fine = leaf == position or isinstance(leaf, Constant)
            require(fine, "kernel", kernel, f"the state must start as numbers or as the position, but {name} does not")
            found[name] = leaf.value.copy()[()] if isinstance(leaf, Constant) else None
    return found


def _settle(
    kernel: Any, tree: Any, names: Sequence[str], leaves: dict[str, Any], shared: Sequence[str], library: Library
) -> Callable[..., tuple[Any, ...]]:
    """`kernel.settle` as a function of the shared part of the state; vectors have no rounding to settle."""
    code = VectorCode()
    symbols = {name: Symbol(leaves[name].shape, np.dtype(leaves[name].dtype), _DEVICE) for name in shared}
    given = [symbols.get(name) or _unshared(leaves[name]) for name in names]
    settled, _ = code.trace(lambda *state: kernel.settle(tree.unflatten(state)), [leaves[n] for n in names], given)
    results = [leaf for name, leaf in zip(names, jax.tree.leaves(settled), strict=True) if name in shared]
    return generate(code.instructions, list(symbols.values()), results, library, lambda _: library is HOST)


def _unshared(leaf: Any) -> Any:
    symbol = Symbol(leaf.shape, np.dtype(leaf.dtype))
    return Vector.of(symbol) if leaf.shape == (LENGTH,) else symbol
