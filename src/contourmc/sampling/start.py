"""`start`: the run that `sample` makes, step by step."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from contourmc._core.compilation_cache import use_compilation_cache
from contourmc._core.compiling import require_no_late_fork
from contourmc._core.processes import several
from contourmc.engine.run import Run
from contourmc.flattening.following import Following
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.schedules import Schedule
from contourmc.predictions.average import Average
from contourmc.sampling.kept_run import KeptRun, require_same_everywhere
from contourmc.sampling.prepared import prepare
from contourmc.targets.base import Target, check_starts
from contourmc.targets.energies import Energy


def start(
    target: Target | Energy | Sequence[Target],
    *,
    init: Any = None,
    steps: int,
    kernel: Kernel | None = None,
    partition: Partition | Following | Literal["auto"] = "auto",
    step_size: float | Literal["auto"] = "auto",
    learning_rate: Schedule | None = None,
    temperature: Schedule | None = None,
    chains: int | None = None,
    seed: int = 0,
    burn_in: int | None = None,
    thin: int | None = None,
    per_chain_init: bool = False,
    average: Average | Sequence[Average] | None = None,
    store: bool = True,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
) -> Run:
    """The run that `sample` makes, before its first step: advance it, and look at its samples in between.

    All arguments are those of `sample`.

    >>> with cm.start(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002)) as run:
    ...     run.advance(500)
    >>> run.step, run.samples()
    (500, Samples(4 chains × 300 draws, SGLD, interrupted))
    """
    require_no_late_fork()
    use_compilation_cache()
    call: dict[str, Any] = dict(
        target=target, init=init, steps=steps, kernel=kernel, partition=partition, step_size=step_size,
        learning_rate=learning_rate, temperature=temperature, chains=chains, seed=seed, burn_in=burn_in, thin=thin,
        per_chain_init=per_chain_init, average=average, store=store,
    )  # fmt: skip
    with ExitStack() as resources:
        kept = None if checkpoint is None else KeptRun(checkpoint, checkpoint_every, call)
        if kept is not None:
            resources.enter_context(kept.lock())
            call = kept.planned()
        prepared = prepare(**call, on_disk=kept is not None)
        if several():
            require_same_everywhere(prepared)
        resources.enter_context(prepared.target.session())
        check_starts(prepared.target, prepared.positions, per_chain=prepared.per_chain)
        run = prepared.run()
        keeper = None if kept is None else kept.keep(run, prepared)
        if keeper is not None:
            resources.callback(keeper.close, run)

        def reopen() -> ExitStack:
            with ExitStack() as again:
                if kept is not None and keeper is not None:
                    again.enter_context(kept.lock())
                    keeper.require_newest()
                again.enter_context(prepared.target.session())
                prepared.target.seek(run.step, None)
                if keeper is not None:
                    again.callback(keeper.close, run)
                return again.pop_all()

        run.hold(resources.pop_all(), reopen, keeper)
    return run
