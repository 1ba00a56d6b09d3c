"""Data larger than memory: the rows of a batch are read when needed, one batch ahead."""

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require_finite
from contourmc.data.host_callback import Reader


class MemmapReader(Reader):
    """Gives rows of arrays, such as memory-mapped ones, while a thread reads those of the next step.

    data: a pytree of the arrays.
    """

    def __init__(self, data: Any):
        self.data = data
        super().__init__(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], canonical(leaf)), data))
        self._pool: ThreadPoolExecutor | None = None
        self._following: dict[bytes, np.ndarray] = {}
        self._ahead: tuple[bytes, Future[Any]] | None = None

    def open(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="contourmc memmap reader")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool, self._ahead, self._following = None, None, {}

    def expect(self, requests: np.ndarray) -> None:
        steps = np.moveaxis(requests, -2, 0)
        self._following = {step.tobytes(): following for step, following in pairwise(steps)}

    def read(self, request: np.ndarray) -> Any:
        wanted = request.tobytes()
        known, future = self._ahead or (b"", None)
        rows = future.result() if future is not None and known == wanted else self._gather(request)
        following = self._following.get(wanted)
        if self._pool is not None and following is not None:
            self._ahead = following.tobytes(), self._pool.submit(self._gather, following)
        return rows

    def described(self, request: np.ndarray) -> tuple[str, int]:
        return "rows of the data", 0

    def _gather(self, chosen: np.ndarray) -> Any:
        def gather(path: Any, leaf: Any, shape: Any) -> np.ndarray:
            rows = np.asarray(leaf[chosen], shape.dtype)
            require_finite(f"data{jax.tree_util.keystr(path)}", rows)
            return rows

        return jax.tree_util.tree_map_with_path(gather, self.data, self.shapes)


def canonical(array: Any) -> Any:
    """The type that an array has on the device."""
    return jax.dtypes.canonicalize_dtype(array.dtype.newbyteorder("="))
