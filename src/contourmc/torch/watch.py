"""Whether every loss so far was a number, without waiting for a GPU in any step."""

from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require

_EVERY = 100  # steps between two looks at a flag on a GPU
_REMEDY = "the run has diverged: lower lr, or clip the gradients; the parameters may hold such numbers already"


class LossWatch:
    """A flag on the device that turns to NaN with the first loss that is not finite.

    On the CPU a bad loss is found at once. On a GPU the flag travels to the host every 100 steps while the steps go on,
    and is looked at 100 steps later; `check` waits for it.
    """

    def __init__(self, device: Any):
        self._flag, self._zero = torch.zeros((), device=device), torch.zeros((), device=device)
        self._host = torch.zeros((), pin_memory=device.type == "cuda")
        self._travels = device.type == "cuda"
        self._arrived: Any = None
        self._steps = 0

    def add(self, loss: Any) -> None:
        """One more loss, on the device."""
        self._flag.addcmul_(loss, self._zero)
        self._steps += 1
        if self._travels and self._steps % _EVERY == 0:
            if self._arrived is not None and self._arrived.query():
                require_finite_loss(float(self._host), "a loss of the last steps")
            self._host.copy_(self._flag, non_blocking=True)
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    def check(self) -> None:
        """Wait for the device, and raise if a loss was not finite."""
        require_finite_loss(float(self._flag), "a loss of the last steps")


def require_finite_loss(value: float, argument: str = "loss") -> None:
    require(abs(value) < float("inf"), argument, value, _REMEDY)
