"""Where the parameters lie: one flat buffer for all numbers of a type, and views of it shaped like the parameters."""

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

# Functions of PyTorch on lists of tensors, `_foreach_add_` and its like, which its own optimisers use: private by name.
foreach: Any = torch
_ALIGNED = 4  # parameters begin at multiples of this many numbers, so that the device can read several at once


class Part:
    """Parameters of one group and type, and their place in the buffers of that type.

    group: the number of the group.
    parameters: those that have a gradient.
    kind: their type.
    """

    def __init__(self, group: int, parameters: list[Any], begin: int):
        self.group, self.parameters, self.kind = group, parameters, parameters[0].dtype
        self.begin, self._places = begin, []
        end = begin
        for each in parameters:
            self._places.append(end)
            end += -(-each.numel() // _ALIGNED) * _ALIGNED
        self.end = end

    def slice(self, buffer: Any) -> Any:
        """The part of a buffer that belongs to these parameters."""
        return buffer[self.begin : self.end]

    def views(self, buffer: Any) -> list[Any]:
        """Views of a buffer, shaped and laid out like the parameters."""
        return [
            buffer[place : place + each.numel()].as_strided(each.shape, each.stride(), place)
            if _dense(each)
            else buffer[place : place + each.numel()].view(each.shape)
            for place, each in zip(self._places, self.parameters, strict=True)
        ]


def _dense(tensor: Any) -> bool:
    """Whether the numbers fill their memory without gaps or overlaps, in whatever order, such as channels last."""
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    ) or (tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d))  # fmt: skip


class Layout:
    """All parameters that have a gradient, in parts by group and type."""

    def __init__(self, groups: Sequence[dict[str, Any]]):
        self.parts: list[Part] = []
        sizes: dict[Any, int] = {}
        for number, group in enumerate(groups):
            with_gradient = [each for each in group["params"] if each.grad is not None]
            for kind in dict.fromkeys(each.dtype for each in with_gradient):
                part = Part(number, [each for each in with_gradient if each.dtype == kind], sizes.get(kind, 0))
                sizes[kind] = part.end
                self.parts.append(part)
        self._sizes = sizes
        self._present = [each for part in self.parts for each in part.parameters]
        self._absent = [each for group in groups for each in group["params"] if each.grad is None]

    def buffers(self, device: Any) -> dict[Any, Any]:
        """A buffer of zeros for each type."""
        return {kind: torch.zeros(size, dtype=kind, device=device) for kind, size in self._sizes.items()}

    def fits(self) -> bool:
        """Whether the same parameters have a gradient now."""
        moved = all(each.grad is not None for each in self._present)
        return moved and all(each.grad is None for each in self._absent)
