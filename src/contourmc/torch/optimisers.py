"""The samplers by name, each with the settings that it has."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from contourmc.flattening.theta import Scheme
from contourmc.kernels.contour import DEFAULT_OMEGA, Bins, RuleOrName, Weights, csghmc, csgld
from contourmc.kernels.schedules import Schedule
from contourmc.kernels.sghmc import sghmc
from contourmc.kernels.sgld import sgld
from contourmc.torch.sampler import Sampler


class SGLD(Sampler):
    """x ← x − lr·(∇L + λx) + √(2τ·lr/N)·w: stochastic gradient Langevin dynamics; SGD at temperature 0.

    The settings that all samplers have are explained at `Sampler`.

    temperature: τ: 1 samples the posterior, less a colder one; a number or a schedule, such as `cm.CyclicCosine`.

    >>> import torch, contourmc.torch
    >>> net = torch.nn.Linear(2, 1)
    >>> opt = contourmc.torch.SGLD(net.parameters(), lr=0.01, data_size=100)
    >>> loss = net(torch.ones(8, 2)).square().mean()
    >>> loss.backward()
    >>> opt.step(loss) == loss
    tensor(True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        data_size: int,
        temperature: Schedule = 1.0,
        weight_decay: float = 0.0,
        seed: int | None = None,
    ):
        super().__init__(
            params,
            lr,
            lambda step_size: sgld(step_size, temperature),
            data_size=data_size,
            weight_decay=weight_decay,
            seed=seed,
        )


class SGHMC(Sampler):
    """v ← βv − lr·(∇L + λx) + √(2(1−β)τ·lr/N)·w,  x ← x + v: SGLD with momentum; momentum SGD at temperature 0.

    The settings that all samplers have are explained at `Sampler`, the temperature at `SGLD`.

    momentum: β, how much of the velocity a step keeps.

    >>> import torch, contourmc.torch
    >>> net = torch.nn.Linear(2, 1)
    >>> opt = contourmc.torch.SGHMC(net.parameters(), lr=0.01, data_size=100, momentum=0.9)
    >>> loss = net(torch.ones(8, 2)).square().mean()
    >>> loss.backward()
    >>> opt.step(loss) == loss
    tensor(True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        data_size: int,
        temperature: Schedule = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        seed: int | None = None,
    ):
        super().__init__(
            params,
            lr,
            lambda step_size: sghmc(step_size, temperature, momentum),
            data_size=data_size,
            weight_decay=weight_decay,
            seed=seed,
        )


class CSGLD(Sampler):
    """SGLD whose gradient is multiplied by 1 + ζτ·s(U), while the probabilities θ of the energy bins are learnt.

    Each point carries the log weight `opt.log_weight`. The settings that all samplers have are explained at `Sampler`,
    the temperature at `SGLD`, and those of the flattening at `contourmc.Contour`.

    partition: the bins of the energy U = N·(mean loss) + prior: `low` a little above the lowest of a plain run,
        and bins wider than the noise that batches give U.

    >>> import torch, contourmc.torch
    >>> net, partition = torch.nn.Linear(2, 1), cm.Partition(low=0.0, width=10.0, bins=20)
    >>> opt = contourmc.torch.CSGLD(net.parameters(), lr=0.01, data_size=100, partition=partition)
    >>> loss = net(torch.ones(8, 2)).square().mean()
    >>> loss.backward()
    >>> opt.step(loss) == loss
    tensor(True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        data_size: int,
        partition: Bins,
        temperature: Schedule = 1.0,
        weight_decay: float = 0.0,
        zeta: float = 1.0,
        omega: Schedule | None = DEFAULT_OMEGA,
        scheme: Scheme = "smooth",
        rule: RuleOrName = "original",
        weights: Weights = "continuous",
        theta: Sequence[float] | np.ndarray | None = None,
        seed: int | None = None,
    ):
        super().__init__(
            params,
            lr,
            lambda step_size: csgld(
                step_size, partition, temperature=temperature, zeta=zeta, omega=omega, scheme=scheme, rule=rule,
                weights=weights, theta=theta,
            ),
            data_size=data_size,
            weight_decay=weight_decay,
            seed=seed,
        )  # fmt: skip


class CSGHMC(Sampler):
    """SGHMC whose gradient is multiplied by 1 + ζτ·s(U), while the probabilities θ of the energy bins are learnt.

    The settings are those of `CSGLD`, and the momentum β of `SGHMC`.

    >>> import torch, contourmc.torch
    >>> net = torch.nn.Linear(2, 1)
    >>> opt = contourmc.torch.CSGHMC(net.parameters(), lr=0.01, data_size=100, partition="auto")
    >>> loss = net(torch.ones(8, 2)).square().mean()
    >>> loss.backward()
    >>> opt.step(loss) == loss
    tensor(True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        data_size: int,
        partition: Bins,
        temperature: Schedule = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        zeta: float = 1.0,
        omega: Schedule | None = DEFAULT_OMEGA,
        scheme: Scheme = "smooth",
        rule: RuleOrName = "original",
        weights: Weights = "continuous",
        theta: Sequence[float] | np.ndarray | None = None,
        seed: int | None = None,
    ):
        super().__init__(
            params,
            lr,
            lambda step_size: csghmc(
                step_size, partition, temperature=temperature, momentum=momentum, zeta=zeta, omega=omega, scheme=scheme,
                rule=rule, weights=weights, theta=theta,
            ),
            data_size=data_size,
            weight_decay=weight_decay,
            seed=seed,
        )  # fmt: skip
