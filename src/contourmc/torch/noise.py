"""Standard normal noise for all parameters at once.

On a GPU a generator of PyTorch draws it. On a CPU that would take as long as half a step of a small network. There, 16
random bits choose one of 65,536 equally probable values instead: the means of N(0, 1) over as many cells of equal
probability. The largest value is 4.4, the variance exactly 1, the kurtosis 2.9998, and the distance to the distribution
function of N(0, 1) at most 1/131,072.
"""

from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require_seed

_CELLS = 1 << 16
_PIECE = 1 << 15  # numbers at a time, so that their bits stay in the cache


@runtime_checkable
class Noise(Protocol):
    """Where noise comes from; it goes on where it was after `restore(state())`."""

    def fill(self, buffers: Sequence[Any]) -> None:
        """Fill flat tensors with independent N(0, 1)."""
        ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


def noise_source(seed: int, device: Any) -> Noise:
    """The noise for this device."""
    return HostNoise(require_seed(seed)) if device.type == "cpu" else DeviceNoise(require_seed(seed), device)


class DeviceNoise:
    """Drawn by a generator on the device."""

    def __init__(self, seed: int, device: Any):
        self._generator = torch.Generator(device)
        self._generator.manual_seed(seed)

    def fill(self, buffers: Sequence[Any]) -> None:
        for each in buffers:
            each.normal_(generator=self._generator)

    def state(self) -> dict[str, Any]:
        return {"generator": self._generator.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._generator.set_state(state["generator"].cpu())


class HostNoise:
    """16 bits of SFC64 for every number, and a table of 65,536 values."""

    def __init__(self, seed: int):
        self._bits = np.random.SFC64(seed)
        self._index = torch.empty(_PIECE, dtype=torch.int64)

    def fill(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            table = _normal_table(buffer.dtype)
            for piece in buffer.split(_PIECE):
                size = len(piece)
                words = np.asarray(self._bits.random_raw(-(-size // 4)))
                index = self._index[:size].copy_(torch.from_numpy(words.view(np.uint16)[:size]))
                torch.index_select(table, 0, index, out=piece)

    def state(self) -> dict[str, Any]:
        return {"words": self._bits.state["state"]["state"].tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        self._bits = np.random.SFC64(0)
        own = self._bits.state
        own["state"]["state"] = np.array(state["words"], np.uint64)
        self._bits.state = own


@cache
def _normal_table(kind: Any) -> Any:
    """The mean of N(0, 1) in each of the cells, times a number that makes the variance 1."""
    edges = np.array([NormalDist().inv_cdf(i / _CELLS) for i in range(1, _CELLS // 2 + 1)])
    density = np.concatenate([[0.0], np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)])
    lower = -_CELLS * np.diff(density)  # the mean over a cell is the difference of the density over its probability
    table = np.concatenate([lower, -lower[::-1]])
    return torch.from_numpy(table / np.sqrt(np.mean(table**2))).to(kind)
