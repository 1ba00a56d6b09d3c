"""Any kernel as an optimiser of PyTorch."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.info import Info
from contourmc._core.operations import HOST
from contourmc.checkpoints.identity import differences
from contourmc.kernels.base import Kernel
from contourmc.torch import ranks
from contourmc.torch.device_operations import device_library
from contourmc.torch.layout import Layout, Part, foreach, moving_type
from contourmc.torch.motion import Motion
from contourmc.torch.noise import noise_source
from contourmc.torch.translation import check_kernel, settings_of, translate
from contourmc.torch.watch import LossWatch, require_finite_loss

_POSITION = "position"  # of a parameter of 16 bits, in float32, among what PyTorch stores for it
SETTLE_EVERY = 100  # steps between two removals of rounding errors from θ
# Settings that a group cannot have of its own: one energy, one θ and one chain belong to all parameters.
_WHOLE = frozenset(
    ("kernel", "step_size", "data_size", "temperature", "momentum", "partition", "zeta", "omega", "scheme", "rule",
     "weights", "theta", "seed")
)  # fmt: skip
_SPARSE = "give dense gradients, such as those of Embedding(..., sparse=False)"
_BACKWARD = (
    "the loss is finite, so the backward pass makes it, as that of sqrt does at 0; "
    "torch.autograd.set_detect_anomaly(True) names the operation"
)
_ACCUMULATED = (
    "add contourmc.torch.ensemble_callback(...) to the callbacks of the Trainer: the sampler needs the mean loss over "
    "the batches, and Lightning gives it a share of the last one's"
)
_LOSS = "give the mean loss of the batch, a tensor with one number: opt.step(loss), or a closure that returns it"


class Sampler(torch.optim.Optimizer):
    """A kernel that draws from the posterior of a network, as an optimiser.

        opt = Sampler(model.parameters(), lr=0.1, kernel=partial(cm.langevin, momentum=0.9), data_size=len(train))
        loss.backward(); opt.step(loss)

    The loss L is the *mean* over a batch of minus the log likelihood. The kernel samples exp(−U/τ) with the energy

        U(x) = N·L(x) + N·λ/2·‖x‖²,      step size ε = lr/N,

    where N is the size of the data and the weight decay λ a Gaussian prior of precision N·λ. It is this whole energy,
    prior included, whose bins a contour kernel learns. At temperature 0, SGHMC is SGD with momentum.

    Parameters without a gradient stay where they are, as with every optimiser of PyTorch. Where `torch.distributed` is
    initialised, all ranks draw one chain: give each the mean loss of its own part of the batch.

    lr: the learning rate on the mean loss; every group may have its own, and schedulers may change it.
    kernel: a kernel, whose step size is replaced by lr/N; or a function that makes one from a step size.
    data_size: N, the number of observations in the training set.
    weight_decay: λ; every group may have its own.
    seed: of the noise. None: it is drawn from PyTorch's generator, so that `torch.manual_seed` decides it, and no two
        samplers have the same noise.

    >>> import torch, contourmc.torch
    >>> net, inputs = torch.nn.Linear(2, 1), torch.ones(8, 2)
    >>> opt = contourmc.torch.Sampler(net.parameters(), lr=0.01, kernel=cm.langevin, data_size=100)
    >>> loss = net(inputs).square().mean()
    >>> loss.backward()
    >>> opt.step(loss) == loss
    tensor(True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any,
        kernel: Kernel | Callable[[float], Kernel],
        *,
        data_size: int,
        weight_decay: float = 0.0,
        seed: int | None = None,
    ):
        remedy = "give the number of observations in the training set, such as len(train)"
        self.data_size = require_count("data_size", data_size, 1, remedy)
        _check_numbers(lr, weight_decay)
        self.kernel = kernel if isinstance(kernel, Kernel) else kernel(float(lr) / self.data_size)
        check_kernel(self.kernel)
        self._layout: Layout | None = None
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))
        self._device = self.param_groups[0]["params"][0].device
        self._on_host = self._computes_on_host()
        self._watch = None if self._on_host else LossWatch(self._device)
        library = HOST if self._on_host else device_library(self._device)
        self._translation = translate(self.kernel, self.data_size, library)
        self._vectors = list(self._translation.vectors)
        self._shared = {
            name: value if self._on_host else torch.as_tensor(value, device=self._device)
            for name, value in self._translation.initial.items()
            if name not in self._vectors
        }
        self._steps, self._info = 0, None
        own = int(torch.randint(2**63 - 1, (), device="cpu")) if seed is None else seed
        self._drawn = own if seed is None else None  # stands until the ranks of a distributed run agree on one
        self._noise = noise_source(own, self._device)
        self._noise_buffers: list[Any] = []
        self._compared, self._mean_loss = False, None
        self._motions: list[Motion] = []

    def _computes_on_host(self) -> bool:
        """Whether NumPy follows the code for θ: on the CPU, where it takes a tenth of PyTorch's time for a number."""
        return self._device.type == "cpu"

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        _check_names(group)
        _check_numbers(group["lr"], group["weight_decay"])
        device = self.param_groups[0]["params"][0].device
        for each in group["params"]:
            ranks.require_whole(each)
            require(each.is_floating_point(), "params", str(each.dtype), "give parameters of real numbers")
            require(each.device == device, "params", str(each.device), f"all parameters must be on {device}, as θ is")
        self._layout = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step from the gradients that `backward` left; gives the loss.

        closure: the mean loss of the batch, or a function that computes it together with the gradients.
        """
        loss = mean = closure
        if callable(closure) and not isinstance(closure, torch.Tensor):
            with torch.enable_grad():
                loss = closure()
            require(loss is not None, "closure", "a function that returns nothing", "let it return the mean loss")
            if self._mean_loss is None:
                batches = _accumulated(closure)
                require(batches == 1, "accumulate_grad_batches", batches, _ACCUMULATED)
            mean = loss if self._mean_loss is None else self._mean_loss
        self._mean_loss = None
        for group in self.param_groups:
            _check_names(group)
        given = self._read(mean)
        layout = self._prepared()
        self._check_gradients(layout)
        value = self._agreed(given, layout)
        translation, count, names = self._translation, len(Info._fields), list(self._shared)
        with np.errstate(all="ignore"):
            results = translation.shared(
                np.int32(self._steps + 1), value, self._penalty(layout), *self._shared.values()
            )  # fmt: skip
            self._info = results[:count]
            self._shared = dict(zip(names, results[count:], strict=False))
            crossing = results[count + len(names) :]
            if self._noise_buffers:
                self.draw_noise(self._noise_buffers)
            for motion in self._motions:
                group = self.param_groups[motion.part.group]
                lr, decay = translation.number(group["lr"]), translation.number(group["weight_decay"])
                motion(translation.group(lr, decay, *crossing), bool(decay))
            self._steps += 1
            if self._steps % SETTLE_EVERY == 0:
                self._shared = dict(zip(names, translation.settle(*self._shared.values()), strict=True))
        return loss

    def take_loss(self, loss: Any) -> None:
        """Let the next step take this mean loss, and not what its closure gives.

        For closures that know a part of the loss alone, as Lightning's where gradients are accumulated.
        """
        self._mean_loss = loss

    def draw_noise(self, buffers: Sequence[Any]) -> None:
        """Fill these flat tensors, one for each type of parameters, with independent N(0, 1)."""
        self._noise.fill(buffers)

    @property
    def energy(self) -> Any:
        """U(x) where the last step began, prior included: a tensor with one number, as all of these."""
        return self._reported("energy")

    @property
    def bin(self) -> Any:
        """The energy bin of that point."""
        return self._reported("bin")

    @property
    def multiplier(self) -> Any:
        """1 + ζτ·s, by which the gradient was multiplied there."""
        return self._reported("multiplier")

    @property
    def log_weight(self) -> Any:
        """The logarithm of the importance weight of that point; 0 without a contour."""
        return self._reported("log_weight")

    @property
    def theta(self) -> Any:
        """θ, the probabilities of the energy bins as learnt so far; None without a contour."""
        if "theta.levels" not in self._shared:
            return None
        self.check_losses()
        with np.errstate(all="ignore"):
            settled = self._translation.settle(*map(_copied, self._shared.values()))
        return torch.as_tensor(settled[list(self._shared).index("theta.levels")]).exp()

    @torch.no_grad()
    def weigh(self, loss: Any) -> Any:
        """The log weight of the present parameters, where the mean loss is this; nothing moves or is learnt."""
        given, layout = self._read(loss), self._prepared()
        value = self._agreed(given, layout, weighing=True)
        shared = map(_copied, self._shared.values())
        with np.errstate(all="ignore"):
            results = self._translation.shared(np.int32(self._steps + 1), value, self._penalty(layout), *shared)
        return torch.as_tensor(results[Info._fields.index("log_weight")], device=self._device)

    def check_losses(self) -> None:
        """Raise if a loss was not finite. On a CPU every step does it; this waits for a GPU."""
        if self._watch is not None:
            self._watch.check()

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on to the bit: θ, the visits of bins and the noise are under the key `sampler`."""
        self.check_losses()
        shared = {name: torch.as_tensor(_copied(value)) for name, value in self._shared.items()}
        settings = settings_of(self.kernel, self.data_size)
        own = {"steps": self._steps, "state": shared, "noise": self._noise.state(), "settings": settings}
        return {**super().state_dict(), "sampler": own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        require("sampler" in state_dict, "state_dict", sorted(state_dict), "give what a Sampler's state_dict() gave")
        own = state_dict["sampler"]
        if "theta.levels" in self._shared and "settings" in own:  # version 0.2.0 did not store them
            found = differences(own["settings"], settings_of(self.kernel, self.data_size))
            remedy = "make the sampler with the settings of the state, for which its θ was learnt"
            require(not found, "state_dict", "; ".join(found[:3]), remedy)
        shapes = [
            {name: tuple(np.shape(value)) for name, value in each.items()} for each in (own["state"], self._shared)
        ]
        require(shapes[0] == shapes[1], "state_dict", shapes[0], f"this sampler has {shapes[1]}: use the same settings")
        super().load_state_dict(state_dict)
        self._widen(state_dict)
        self._shared = {name: self._taken(own["state"][name], value) for name, value in self._shared.items()}
        self._steps = int(own["steps"])
        self._noise.restore(own["noise"])
        self._layout = None  # the vectors of the state have to be taken over
        self._compared, self._drawn = False, None

    def _widen(self, state_dict: dict[str, Any]) -> None:
        """Take over in full what PyTorch has cast to parameters of 16 bits."""
        for group, own in zip(state_dict["param_groups"], self.param_groups, strict=True):
            for number, parameter in zip(group["params"], own["params"], strict=True):
                if moving_type(parameter.dtype) != parameter.dtype:
                    for name, value in state_dict["state"].get(number, {}).items():
                        self.state[parameter][name] = value.to(parameter.device, copy=True)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a sampler cannot be copied or pickled: use its state_dict() and load_state_dict()")

    def _taken(self, stored: Any, present: Any) -> Any:
        """A stored value as the present one is kept."""
        if isinstance(present, torch.Tensor):
            return stored.to(present.device, present.dtype, copy=True)
        return np.array(stored.cpu().numpy(), present.dtype)[()]

    def _reported(self, name: str) -> Any:
        require(self._info is not None, name, None, "it is known after the first step")
        assert self._info is not None
        return torch.as_tensor(self._info[Info._fields.index(name)], device=self._device)

    def _prepared(self) -> Layout:
        """The buffers for the parameters that have a gradient; made anew when these are others than before."""
        if self._layout is None or not self._layout.fits():
            layout = Layout(self.param_groups)
            remedy = "call loss.backward() before opt.step(loss)"
            require(bool(layout.parts), "gradients", None, remedy)
            buffers = {name: layout.buffers(self._device) for name in self._vectors}
            if self._translation.noisy:
                buffers["noise"] = layout.buffers(self._device)
            library = device_library(self._device)
            self._motions = [
                Motion(self._translation, part, {name: each[part.kind] for name, each in buffers.items()}, library)
                for part in layout.parts
            ]
            for motion in self._motions:
                if motion.part.copied:
                    self._restore(_POSITION, motion.part, motion.part.positions, None)
                for name in self._vectors:
                    start = self._translation.initial[name]
                    self._restore(name.split(".")[-1], motion.part, motion.views(name), start)
            self._noise_buffers = list(buffers.get("noise", {}).values())
            self._layout = layout
        for part in self._layout.parts:
            part.follow()
        return self._layout

    def _restore(self, name: str, part: Part, places: Sequence[Any], initial: Any) -> None:
        """What a step changes of each parameter, as it was or as it begins, in its new place.

        initial: a number, or None for a copy of the parameter.
        """
        for parameter, place in zip(part.parameters, places, strict=True):
            start = parameter if initial is None else torch.full_like(place, float(initial))
            place.copy_(self.state[parameter].get(name, start))
            self.state[parameter][name] = place

    def _read(self, loss: Any) -> Any:
        """The loss of this process, as a number of Python or on the device."""
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
            given = f"{loss.dtype} of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else loss
            require(False, "loss", given, _LOSS)
        if self._on_host:
            return loss.item()
        if loss.device != self._device:
            require(False, "loss", f"a tensor on {loss.device}", f"it must be on {self._device}, as the parameters")
        return loss.detach().reshape(()).float()

    def _agreed(self, loss: Any, layout: Layout, *, weighing: bool = False) -> Any:
        """The loss as the translated code takes it: the mean over the ranks, if there are several."""
        if ranks.are_several():
            if not self._compared:
                self._compare(layout)
            own = torch.tensor(loss, dtype=torch.float64) if self._on_host else loss
            mean = ranks.mean_loss(own, weighing=weighing, look=self._on_host or weighing)
            loss = mean.item() if self._on_host else mean
        if self._watch is not None:
            self._watch.add(loss)
            return loss
        require_finite_loss(loss)
        return self._translation.number(loss)

    def _check_gradients(self, layout: Layout) -> None:
        """Raise if a gradient is sparse, or holds NaN or infinity; on a GPU the loss that follows tells the latter."""
        parameters = [each for part in layout.parts for each in part.parameters]
        require(not any(each.grad.is_sparse for each in parameters), "gradient", "a sparse tensor", _SPARSE)
        # One sum over all numbers takes a twentieth of looking at each; it may be infinite although they are finite.
        if not self._on_host or math.isfinite(sum(each.grad.sum().item() for each in parameters)):
            return
        for number, group in enumerate(self.param_groups):
            for i, each in enumerate(group["params"]):
                bad = [] if each.grad is None else each.grad[~each.grad.isfinite()].tolist()
                names = group.get("param_names")  # there if the sampler was given model.named_parameters()
                name = repr(names[i]) if names else f"parameter {i} of group {number}, of shape {tuple(each.shape)}"
                require(not bad, f"the gradient of {name}", (bad or [0.0])[0], _BACKWARD)

    def _compare(self, layout: Layout) -> None:
        """Raise unless this sampler is the same on all ranks; a seed that was drawn becomes that of the first rank."""
        seed = ranks.seed_of_the_first(self._drawn or 0, self._device)
        if self._drawn is not None and self._steps == 0:
            self._noise = noise_source(seed, self._device)
        noise, probe = noise_source(0, self._device), torch.empty(8, device=self._device)
        noise.restore(self._noise.state())
        noise.fill([probe])
        parameters = [each for part in layout.parts for each in part.parameters]
        vectors = [view for motion in self._motions for name in self._vectors for view in motion.views(name)]
        vectors += [each for part in layout.parts for each in part.positions]
        numbers = [torch.as_tensor(each, device=self._device) for each in (self._steps, *self._shared.values())]
        held = dict(params=parameters, gradients=[each.grad for each in parameters])
        ranks.require_replicas({**held, "seed": [probe], "state_dict": [*numbers, *vectors]})
        self._compared = True

    def _penalty(self, layout: Layout) -> Any:
        """Σ λ/2·‖x‖² over the groups."""
        total: Any = 0.0
        for part in layout.parts:
            decay = self.param_groups[part.group]["weight_decay"]
            if decay:
                norms = torch.stack(foreach._foreach_norm(part.positions)).float()
                squares = norms.square_().sum().mul_(decay / 2)
                total = total + (squares.item() if self._on_host else squares)
        return self._translation.number(total) if self._on_host else total


def _accumulated(closure: Any) -> int:
    """Over how many batches Lightning accumulates gradients, whose closures are partial functions of the module."""
    module = next(iter(getattr(closure, "args", ())), None)
    with suppress(RuntimeError):  # a module that no Trainer fits
        return getattr(getattr(module, "trainer", None), "accumulate_grad_batches", 1)
    return 1


def _check_names(group: dict[str, Any]) -> None:
    """Raise if a group has a setting that only the whole sampler can have."""
    if _WHOLE.isdisjoint(group):
        return
    name = min(_WHOLE & group.keys())
    remedy = "a group may have its own lr and weight_decay; give this one to the sampler, for all parameters"
    require(False, f"the param_group setting {name!r}", group[name], remedy)


def _check_numbers(lr: Any, weight_decay: Any) -> None:
    require_number("lr", float(lr), "the learning rate must be above 0", positive=True)
    require_number("weight_decay", weight_decay, "the weight decay λ must be 0 or more", positive=False)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value.copy()
