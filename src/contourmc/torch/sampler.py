"""Any kernel as an optimiser of PyTorch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require, require_count, require_number, require_seed
from contourmc._core.info import Info
from contourmc._core.operations import HOST
from contourmc.kernels.base import Kernel
from contourmc.torch.device_operations import device_library
from contourmc.torch.layout import Layout
from contourmc.torch.motion import Motion
from contourmc.torch.translation import check_kernel, translate
from contourmc.torch.watch import LossWatch, require_finite_loss

_SETTLE_EVERY = 100  # steps between two removals of rounding errors from θ
_LOSS = "give the mean loss of the batch, a tensor with one number: opt.step(loss), or a closure that returns it"


class Sampler(torch.optim.Optimizer):
    """A kernel that draws from the posterior of a network, as an optimiser.

        opt = Sampler(model.parameters(), lr=0.1, kernel=partial(cm.langevin, momentum=0.9), data_size=len(train))
        loss.backward(); opt.step(loss)

    The loss L is the *mean* over a batch of minus the log likelihood. The kernel samples exp(−U/τ) with the energy

        U(x) = N·L(x) + N·λ/2·‖x‖²,      step size ε = lr/N,

    where N is the size of the data and the weight decay λ a Gaussian prior of precision N·λ. It is this whole energy,
    prior included, whose bins a contour kernel learns. At temperature 0, SGHMC is SGD with momentum.

    lr: the learning rate on the mean loss; every group may have its own, and schedulers may change it.
    kernel: a kernel, whose step size is replaced by lr/N; or a function that makes one from a step size.
    data_size: N, the number of observations in the training set.
    weight_decay: λ; every group may have its own.
    seed: of the noise.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        kernel: Kernel | Callable[[float], Kernel],
        *,
        data_size: int,
        weight_decay: float = 0.0,
        seed: int = 0,
    ):
        remedy = "give the number of observations in the training set, such as len(train)"
        self.data_size = require_count("data_size", data_size, 1, remedy)
        _check_group(lr, weight_decay)
        self.kernel = kernel if isinstance(kernel, Kernel) else kernel(float(lr) / self.data_size)
        check_kernel(self.kernel)
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))
        first = self.param_groups[0]["params"][0]
        self._device = first.device
        self._on_host = first.device.type == "cpu"
        library = HOST if self._on_host else device_library(first.device)
        self._translation = translate(self.kernel, self.data_size, library)
        self._vectors = list(self._translation.vectors)
        self._shared = [
            value if self._on_host else torch.as_tensor(value, device=self._device)
            for name, value in self._translation.initial.items()
            if name not in self._vectors
        ]
        self._shared_names = [name for name in self._translation.initial if name not in self._vectors]
        self._info: Info | None = None
        self._steps = 0
        self._watch = None if self._on_host else LossWatch(self._device)
        self.generator = torch.Generator(self._device)
        self.generator.manual_seed(require_seed(seed))
        self._layout: Layout | None = None
        self._motions: list[Motion] = []
        self._noise: dict[Any, Any] = {}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        _check_group(group["lr"], group["weight_decay"])
        device = self.param_groups[0]["params"][0].device
        for each in group["params"]:
            require(not each.is_complex(), "params", each.dtype, "give parameters of real numbers")
            require(each.is_floating_point(), "params", each.dtype, "give parameters of real numbers")
            require(each.device == device, "params", str(each.device), f"all parameters must be on {device}, as θ is")
        self._layout = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step from the gradients that `backward` left; gives the loss.

        closure: the mean loss of the batch, or a function that computes it together with the gradients.
        """
        loss = closure
        if callable(closure) and not isinstance(closure, torch.Tensor):
            with torch.enable_grad():
                loss = closure()
            require(loss is not None, "closure", "a function that returns nothing", "let it return the mean loss")
        layout = self._prepared()
        gradients = [_gradients(part.parameters) for part in layout.parts]
        value, penalty = self._read(loss), self._penalty(layout)
        self._steps += 1
        count = len(Info._fields)
        with np.errstate(all="ignore"):
            results = self._translation.shared(np.int32(self._steps), value, penalty, *self._shared)
            self._info = Info(*results[:count])
            self._shared = list(results[count : count + len(self._shared)])
            crossing = results[count + len(self._shared) :]
            if self._translation.noisy:
                self.draw_noise(list(self._noise.values()))
            for motion, given in zip(self._motions, gradients, strict=True):
                group = self.param_groups[motion.part.group]
                lr, decay = map(self._translation.number, (group["lr"], group["weight_decay"]))
                motion(given, self._translation.group(lr, decay, *crossing))
            if self._steps % _SETTLE_EVERY == 0:
                self._shared = list(self._translation.settle(*self._shared))
        return loss

    def draw_noise(self, buffers: Sequence[Any]) -> None:
        """Fill these flat tensors, one for each type of parameters, with independent N(0, 1)."""
        for each in buffers:
            each.normal_(generator=self.generator)

    @property
    def energy(self) -> Any:
        """U(x) of the last step, prior included: a tensor with one number, as all of these."""
        return self._reported("energy")

    @property
    def bin(self) -> Any:
        """The energy bin of the point from which the last step went."""
        return self._reported("bin")

    @property
    def multiplier(self) -> Any:
        """1 + ζτ·s, by which the gradient was multiplied in the last step."""
        return self._reported("multiplier")

    @property
    def log_weight(self) -> Any:
        """The logarithm of the importance weight of the point from which the last step went; 0 without a contour."""
        return self._reported("log_weight")

    @property
    def theta(self) -> Any:
        """θ, the probabilities of the energy bins as learnt so far; None without a contour."""
        if "theta.levels" not in self._shared_names:
            return None
        with np.errstate(all="ignore"):
            settled = self._translation.settle(*(_copied(each) for each in self._shared))
        return torch.as_tensor(settled[self._shared_names.index("theta.levels")]).exp()

    def _reported(self, name: str) -> Any:
        require(self._info is not None, name, None, "it is known after the first step")
        return torch.as_tensor(getattr(self._info, name), device=self._device)

    def _prepared(self) -> Layout:
        """The buffers for the parameters that have a gradient; made anew when these are others than before."""
        if self._layout is None or not self._layout.fits():
            layout = Layout(self.param_groups)
            buffers = {name: layout.buffers(self._device) for name in self._vectors}
            noise = layout.buffers(self._device) if self._translation.noisy else {}
            library = device_library(self._device)
            self._motions = []
            for part in layout.parts:
                own = {name: buffer[part.kind] for name, buffer in buffers.items()}
                if noise:
                    own["noise"] = noise[part.kind]
                zeros = lambda kind=part.kind: layout.buffers(self._device)[kind]
                self._motions.append(Motion(self._translation, part, own, zeros, library))
                for name in self._vectors:
                    self._restore(name, part.parameters, self._motions[-1].views(name))
            self._layout, self._noise = layout, noise
        return self._layout

    def _restore(self, name: str, parameters: list[Any], views: list[Any]) -> None:
        """The vectors of the state, as they were or as they begin, in their new place."""
        initial, short = self._translation.initial[name], name.split(".")[-1]
        for parameter, view in zip(parameters, views, strict=True):
            start = parameter if initial is None else torch.full_like(view, float(initial))
            view.copy_(self.state[parameter].get(short, start))
            self.state[parameter][short] = view

    def _read(self, loss: Any) -> Any:
        """The loss as the translated code takes it."""
        require(isinstance(loss, torch.Tensor), "loss", loss, _LOSS)
        require(loss.numel() == 1, "loss", f"a tensor of shape {tuple(loss.shape)}", _LOSS)
        require(loss.is_floating_point(), "loss", f"a tensor of {loss.dtype}", _LOSS)
        if self._watch is None:
            value = loss.item()
            require_finite_loss(value)
            return self._translation.number(value)
        require(loss.device == self._device, "loss", f"a tensor on {loss.device}", f"it must be on {self._device}")
        value = loss.detach().reshape(()).float()
        self._watch.add(value)
        return value

    def _penalty(self, layout: Layout) -> Any:
        """Σ λ/2·‖x‖² over the groups."""
        total = None
        for part in layout.parts:
            decay = self.param_groups[part.group]["weight_decay"]
            if decay:
                squares = torch.stack(torch._foreach_norm(part.parameters)).float().square_().sum().mul_(decay / 2)
                total = squares if total is None else total + squares
        if self._on_host:
            return self._translation.number(0 if total is None else total.item())
        return 0.0 if total is None else total


def _gradients(parameters: list[Any]) -> list[Any]:
    gradients = [each.grad for each in parameters]
    for each in gradients:
        require(not each.is_sparse, "gradient", "a sparse tensor", "give dense gradients: Embedding(..., sparse=False)")
    return gradients


def _check_group(lr: Any, weight_decay: Any) -> None:
    require_number("lr", float(lr), "the learning rate must be above 0", positive=True)
    require_number("weight_decay", weight_decay, "the weight decay λ must be 0 or more", positive=False)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value.copy()
