"""The draws that a run has kept: those in its state, which are in memory, and those that are on disk.

Of several processes each has the draws of its own chains in memory, and all can read the store on disk.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from contourmc._core.processes import joined_rows
from contourmc.draws.draw_store import Columns, DrawStore
from contourmc.engine.length import Length
from contourmc.engine.state import Draws, RunState, joined
from contourmc.targets.view import TracedView


class KeptDraws:
    """length: of the run.
    as_positions: makes positions as they were given to the run of those inside it.
    view: how the user sees positions; None if as they were given.
    """

    def __init__(self, length: Length, as_positions: Callable[[Any], Any], view: TracedView | None):
        self._length, self._as_positions, self._view = length, as_positions, view
        self._disk: DrawStore | None = None

    @property
    def store_name(self) -> str:
        """The name of the store on disk; empty without one."""
        return "" if self._disk is None else self._disk.path.name

    def open(self, path: Path, state: RunState) -> None:
        """From now on, keep whole chunks of draws in a store on disk; raises if those already there are damaged."""
        none = jax.tree.map(lambda leaf: leaf[:, :0], state.draws[0])
        self._disk = DrawStore(path, self._columns_of(none), self.steps(0, 0), state.stored)

    def flushed(self, state: RunState) -> RunState:
        """The state, after its draws have been written to disk.

        Those of a chunk that is not complete also stay in memory, and will be written again.
        """
        if self._disk is None:
            return state
        draws = _in_memory(state)
        count = draws.energy.shape[1]
        self._disk.write(state.stored, self._columns_of(draws), self.steps(state.stored, count))
        whole = count // self._disk.chunk * self._disk.chunk
        rest = jax.tree.map(lambda leaf: leaf[:, whole:].copy(), draws)
        return state._replace(draws=(rest,), stored=state.stored + whole)

    def energies(self, state: RunState) -> np.ndarray:
        """Of all draws, (chain, draw)."""
        energies = {"/": {"energies": joined_rows(_in_memory(state).energy)}}
        whole = energies if self._disk is None else self._disk.with_rest(state.stored, energies)
        return whole["/"]["energies"]

    def columns(self, state: RunState, *, on_disk: bool = True) -> Columns:
        """All draws, by the names that they have in `Samples`, or only those in memory.

        Positions on disk are read when they are used.
        """
        columns = joined_rows(self._columns_of(_in_memory(state)))
        return self._disk.with_rest(state.stored, columns) if self._disk is not None and on_disk else columns

    def steps(self, first: int, count: int) -> Int[np.ndarray, " draws"]:
        """The steps of some draws."""
        length = self._length
        return length.steps_before + length.burn_in + length.thin * (first + 1 + np.arange(count))

    def _columns_of(self, draws: Draws) -> Columns:
        position, states, energies, log_weights, multipliers, virials = draws
        numbers = dict(energies=energies, log_weights=log_weights, multipliers=multipliers, virials=virials)
        columns = {"/": numbers, "draws": self._as_positions(position), "target_states": states, "unconstrained": None}
        if self._view is not None and position is not None:
            columns |= {"draws": self._view.of(columns["draws"], 2), "unconstrained": columns["draws"]}
        return columns


def _in_memory(state: RunState) -> Draws:
    return jax.tree.map(lambda *parts: joined(parts, axis=1), *state.draws)
