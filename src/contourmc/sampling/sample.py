"""`sample`: from an energy and a start to weighted draws; and `resume`, for a run that was cut."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from contourmc._core.progress import Progress
from contourmc.draws.samples import Samples
from contourmc.engine.run import DivergenceError, Run
from contourmc.engine.together import heeding_interrupts
from contourmc.engine.watching import OnBlock
from contourmc.flattening.following import Following
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.schedules import Schedule
from contourmc.predictions.average import Average
from contourmc.sampling.kept_run import stored_call
from contourmc.sampling.start import start
from contourmc.sampling.training import diverged
from contourmc.targets.base import Target
from contourmc.targets.energies import Energy


def sample(
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
    progress: bool | None = None,
    average: Average | Sequence[Average] | None = None,
    store: bool = True,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    on_block: OnBlock | Sequence[OnBlock] | None = None,
    block_every: float = 1.0,
) -> Samples:
    """Run `chains` chains of `steps` steps each and return their weighted draws.

    target: a function from a position (any pytree of floats) to its energy, minus the log density up to a
        constant; or a `Target`. Or a list of targets, one for each chain, alike in all but the numbers in their
        arrays, such as posteriors on different splits of a data set. A list needs a kernel or a learning_rate; look at
        its chains one by one, since estimates over all of them mix different targets.
    init: the position where all chains start; or a function from a JAX random key to one, such as `Box(low, high)`; or,
        with `per_chain_init`, positions stacked along a leading chain axis. Of a target with its own coordinates, as
        from `transformed`, a position in these. It is not needed for a target with its own starts, as from
        `from_numpyro`. Numbers of half precision, such as bfloat16, are sampled and returned as float32, which is also
        what the target gets.
    kernel: how to move, for example `csgld(...)`. Without one the run tunes itself: a pilot of at most a tenth of
        the steps finds step size, scales and energy partition, the chains learn θ together, and then
        sample with all of it fixed. See docs/tuning.md.
    partition, step_size: for a run without a kernel; the pilot finds what is not given. Energies that are not exact
        need a step size.
    learning_rate: for a posterior on mini-batches, without a kernel: that of the mean loss, as in training scripts; a
        number, or a schedule such as `CyclicCosine`. The run is one of contour SGHMC whose bins follow the energies
        (`Following`), and which begins to flatten once models are averaged: after 40% of the steps, or, if the learning
        rate goes in cycles, after the first one, with a draw at the end of each. It flattens by the term of the data,
        and an `average` weighs models such that at least half of them count. `partition=Following(...)` to change its
        bounds. What was found is in `Samples.settings["following"]`. See docs/networks.md.
    temperature: of a run with a learning_rate; 0.01 unless given. 1 samples the posterior itself.
    chains: 4 unless given, 1 with a learning_rate, or as many as there are targets in a list.
    seed: the same seed gives the same draws on the same machine. With a kernel whose chains do not share θ, chain i
        does not depend on `chains`. A run that begins at the last draws of another needs another seed: with the same
        one it meets the same noise.
    burn_in: steps at the start that no draw or estimate uses; a tenth of the steps unless given. Without a
        kernel it is the length of pilot and learning together, three tenths unless given.
    thin: keep one draw in `thin` steps; about 10,000 draws a chain unless given, fewer of large positions, and 100
        with an `average`, which may have to predict a test set for each. Means and variances still use every step,
        unless a position has more than 16,384 numbers.
    progress: show a progress bar; by default only on a terminal, and a line a minute on standard error elsewhere.
    average: what to average over the kept draws while the run goes on, for example a
        `ClassificationAverage`; the result is `Samples.average`. For a list of targets a list, with an average for
        each chain; the result is then a list too.
    store: whether the positions of kept draws are stored; an `average` does not need them.
    checkpoint: a folder for checkpoints and draws. The same call again, or `resume(folder)`, goes on where a run was
        cut, and the result is the same bit for bit; with more `steps`, a run goes on beyond its end. Draws are kept
        there and not in memory. See docs/checkpoints.md.
    checkpoint_every: the least seconds between two checkpoints; one is also written whenever the stage changes.

    on_block: a function that is called with the steps done and a dictionary of figures, or a list of them, such as
        those of `cm.callbacks`: for training curves, or to end the run, which it does by returning False. The draws so
        far are then the result, marked `interrupted`. See docs/networks.md.
    block_every: the least seconds between two calls of it; it is also called after the last step.

    Ctrl-C ends the run at any stage and returns the draws so far, marked `interrupted`. A number that is not finite
    raises a `DivergenceError`, and data that cannot be read a `DataError`; both carry the draws so far. `start` gives
    the same run step by step.

    >>> run = cm.sample(energy, init=1.0, steps=20_000, chains=4)
    >>> print(run.mean() < 0, run.expectation(lambda x: x < 0) > 0.5)
    True True
    """
    begin = partial(
        start, target, init=init, kernel=kernel, partition=partition, step_size=step_size, temperature=temperature,
        chains=chains, seed=seed, per_chain_init=per_chain_init,
    )  # fmt: skip
    kept: dict[str, Any] = dict(average=average, store=store, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    length: dict[str, Any] = dict(steps=steps, burn_in=burn_in, thin=thin)
    with heeding_interrupts(), begin(learning_rate=learning_rate, **length, **kept) as run:
        try:
            return _finished(run, progress, on_block, block_every)
        except DivergenceError as error:
            if learning_rate is None:
                raise
            raise diverged(error, partial(begin, store=False), learning_rate, run.step) from error


def resume(
    folder: str | Path,
    *,
    steps: int | None = None,
    progress: bool | None = None,
    on_block: OnBlock | Sequence[OnBlock] | None = None,
    block_every: float = 1.0,
) -> Samples:
    """Go on with a run that `sample(…, checkpoint=folder)` began, here or in another process.

    steps: in total, to extend the run; as many as it was to make unless given.
    progress, on_block, block_every: as for `sample`.

    The call is kept in the folder, pickled: resume only folders that you trust. If it could not be kept, since its
    target reads data from files or a loader, repeat the call of `sample` instead.

    >>> run = cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002), checkpoint="folder")
    >>> cm.resume("folder", steps=4_000)
    Samples(4 chains × 3800 draws, SGLD)
    """
    with heeding_interrupts(), start(**stored_call(folder, steps)) as run:
        return _finished(run, progress, on_block, block_every)


def _finished(
    run: Run, progress: bool | None, on_block: OnBlock | Sequence[OnBlock] | None, block_every: float
) -> Samples:
    """The samples of a run, after the steps that remain."""
    if run.step < run.steps:
        with Progress(run.steps, run.chains, progress) as bar, suppress(KeyboardInterrupt):
            run.advance(report=bar.update, on_block=on_block, block_every=block_every)
    return run.samples()
