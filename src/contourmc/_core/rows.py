"""A function of one position, at any number of stacked ones."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from contourmc._core.compiling import call_compiled
from contourmc._core.pytrees import position_size
from contourmc._core.tracing import Traced

ROWS = 1024  # positions in a call of the compiled program
NUMBERS = 2**22  # in its result, at most, unless a single position has more


class OverRows:
    """The function as it was when it was traced (see `tracing.py`), compiled once for any number of positions.

    shapes: of its result at one position.
    """

    def __init__(self, function: Callable[[Any], Any], position: Any):
        """For positions of these shapes."""
        self._function = Traced(function, position)
        self.shapes = jax.eval_shape(self._function, position)
        self._rows = min(ROWS, max(1, NUMBERS // max(position_size(self.shapes), 1)))

    def of(self, positions: Any, axes: int) -> Any:
        """Its results, as arrays on the host, at positions that are stacked along some leading axes."""
        leaves, structure = jax.tree.flatten(positions)
        lead = leaves[0].shape[:axes]
        count = int(np.prod(lead))
        rows = structure.unflatten([np.asarray(leaf).reshape(count, *leaf.shape[axes:]) for leaf in leaves])
        found = [self._of_rows(rows, begin, count) for begin in range(0, count, self._rows)]
        empty = jax.tree.map(lambda shape: np.empty((0, *shape.shape), shape.dtype), self.shapes)
        joined = jax.tree.map(lambda *parts: np.concatenate(parts), empty, *found)
        return jax.tree.map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), joined)

    def _of_rows(self, rows: Any, begin: int, count: int) -> Any:
        """At some rows from `begin` on; the last is repeated, so that one program does for any number of them."""
        chosen = np.minimum(np.arange(begin, begin + self._rows), count - 1)
        found = call_compiled(_at_rows, self._function, jax.tree.map(lambda leaf: leaf[chosen], rows))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: count - begin], found)


def _at_rows(function: Traced, rows: Any) -> Any:
    return jax.vmap(function)(rows)
