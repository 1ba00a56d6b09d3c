"""Where the parameters lie: one flat buffer for all numbers of a type, and views of it shaped like the parameters.

Parameters of 16 bits would lose the noise: it is smaller than the distance between two of their numbers. Their sampler
moves copies in float32, and gives the parameters the nearest numbers that they can hold. Stochastic rounding would keep
the mean of a step, and add noise of its own that is larger than the sampler's.
"""

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
    kind: the type in which they are moved, float32 at least.
    positions: what is moved: the parameters themselves, or copies in this type.
    """

    def __init__(self, group: int, parameters: list[Any], begin: int):
        self.group, self.parameters, self.kind = group, parameters, moving_type(parameters[0].dtype)
        self.copied = self.kind != parameters[0].dtype
        self.positions = [each.detach().to(self.kind) for each in parameters] if self.copied else parameters
        self.begin, self._places = begin, []
        end = begin
        for each in parameters:
            self._places.append(end)
            end += -(-each.numel() // _ALIGNED) * _ALIGNED
        self.end = end

    def follow(self) -> None:
        """Take over what others have written into the parameters since they were given their positions."""
        if self.copied:
            for position, parameter in zip(self.positions, self.parameters, strict=True):
                same = position.to(parameter.dtype) == parameter
                position.copy_(torch.where(same, position, parameter.to(self.kind)))

    def publish(self) -> None:
        """Give the parameters their new positions."""
        if self.copied:
            foreach._foreach_copy_(self.parameters, self.positions)

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


def moving_type(kind: Any) -> Any:
    """The type in which parameters of this type are moved."""
    return kind if kind.itemsize >= torch.float32.itemsize else torch.float32


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
                begin = sizes.get(moving_type(kind), 0)
                part = Part(number, [each for each in with_gradient if each.dtype == kind], begin)
                sizes[part.kind] = part.end
                self.parts.append(part)
        self._sizes = sizes
        self._present = [each for part in self.parts for each in part.parameters]
        self._absent = [each for group in groups for each in group["params"] if each.grad is None]

    def buffers(self, device: Any) -> dict[Any, Any]:
        """A buffer of zeros for each type in which parameters are moved."""
        return {kind: torch.zeros(size, dtype=kind, device=device) for kind, size in self._sizes.items()}

    def fits(self) -> bool:
        """Whether the same parameters have a gradient now."""
        moved = all(each.grad is not None for each in self._present)
        return moved and all(each.grad is None for each in self._absent)
