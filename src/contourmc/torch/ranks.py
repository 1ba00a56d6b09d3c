"""One chain on all ranks of `torch.distributed`, as DistributedDataParallel keeps one model on them.

DistributedDataParallel averages the gradients. θ is learnt from the energies, so the losses are averaged too, and the
noise is the same everywhere. All else is computed alike on every rank, so parameters and θ agree to the bit.
"""

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
import torch.distributed as distributed  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_DATA_PARALLEL = (
    "wrap the model in DistributedDataParallel. Sharded parameters (FSDP) are not supported, and chains that differ "
    "between the ranks need processes without init_process_group"
)
_REMEDIES = {
    "params": _DATA_PARALLEL,
    "gradients": _DATA_PARALLEL,
    "seed": "give every rank the same seed",
    "state_dict": "load the same state on every rank",
}


def are_several() -> bool:
    """Whether several processes draw the chain."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def require_whole(parameter: Any) -> None:
    """Raise if the parameter is a DTensor, of which every rank has a part."""
    names = {kind.__name__ for kind in type(parameter).__mro__}  # to import DTensor takes 0.7 s
    require("DTensor" not in names, "params", "sharded (DTensor)", _DATA_PARALLEL)


def mean_loss(loss: Any, *, weighing: bool, look: bool) -> Any:
    """The mean over the ranks, which must all be weighing a point, or all making a step.

    look: whether to check this, which waits for the device.
    """
    both = torch.stack([loss, torch.full_like(loss, float(weighing))])
    distributed.all_reduce(both)
    mean, share = both / distributed.get_world_size()
    remedy = "call ensemble.add(opt, loss) on every rank, as opt.step(loss)"
    require(not look or float(share) == weighing, "weigh", "called on some ranks only", remedy)
    return mean


def seed_of_the_first(seed: int, device: Any) -> int:
    """The seed that the first rank gave."""
    given = torch.tensor(seed, device=device)
    distributed.broadcast(given, src=0)
    return int(given)


def require_replicas(held: dict[str, Sequence[Any]]) -> None:
    """Raise on all ranks unless each of these lists of tensors is the same on all of them.

    held: `params`, `gradients`, `seed` (some of the noise) and `state_dict`, the first three as tensors on one device.
    """
    digests = torch.stack([_digest(tensors) for tensors in held.values()])
    both = torch.cat([digests, -digests])
    distributed.all_reduce(both, distributed.ReduceOp.MAX)
    spread = both[: len(held)] + both[len(held) :]
    for name, distance in zip(held, spread.tolist(), strict=True):
        require(distance == 0, name, "not the same on all ranks", _REMEDIES[name])


def _digest(tensors: Sequence[Any]) -> Any:
    """The sum of their bits as whole numbers, which does not depend on the order in which a device adds them."""
    return torch.stack([each.detach().view(_BITS[each.element_size()]).sum() for each in tensors]).sum()
