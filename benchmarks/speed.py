"""Time per step beside BlackJAX, a C loop and ourselves: `python -m benchmarks.speed`, or `make bench`.

A report, not a test: it always exits with 0. Absolute times differ between machines and from hour to hour;
every row is therefore a ratio of two medians from the same minute.
"""

import os
import platform
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.table import Table

import contourmc as cm
from benchmarks.blackjax_loop import LOOPS, blackjax_loop
from benchmarks.c_loop import c_loop
from benchmarks.problem import BINS, MIXTURE, STEP_SIZE, THIN, csgld, logistic_regression
from benchmarks.timing import Contender, Timing, measure
from contourmc._core.pytrees import as_arguments
from contourmc.engine.loop import Segment, Span, compile_segment
from contourmc.engine.plan import make_plan
from contourmc.engine.state import start_chain

STEPS = 100_000  # of a peer's chain, in a call
SAMPLE_STEPS = 1_000_000  # of each of ten chains: a call of `sample` costs about 0.1 s besides its steps
CHAINS = 10
MANY_BINS = 1000
ROWS, COLUMNS = 4000, 400
# JAX's default, and XLA's own. Ours always runs on the default, where it is faster; BlackJAX needs a key for
# every step, and is faster on XLA's.
GENERATORS = {"default": "threefry2x32", "rbg": "rbg"}
TOO_NOISY = 1.25  # the median spread; at 1.5, ratios were seen to differ by a tenth from run to run
BLACKJAX = find_spec("blackjax") is not None

Timings = dict[str, Timing]


def main() -> None:
    """Measure, and print the table."""
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has none of its own
    with console.status("one chain …"):
        one = measure(one_chain(), repeats=25)
    with console.status("ten chains …"):
        ten = measure(ten_chains(), repeats=7)
    with console.status("a costly gradient …"):
        costly = measure(costly_gradient(), repeats=17)

    table = Table(title="Time per step; of ten chains: a step of all ten")
    table.add_column("what")
    for heading in ("ours, µs", "peer, µs", "ratio", "limit", "verdict"):
        table.add_column(heading, justify="right")
    for cells in rows(one, ten, costly):
        table.add_row(*cells)
    console.print(table)
    if not BLACKJAX:
        console.print("BlackJAX is not installed (the extra `bench`): its rows are left out.")
    if "C" not in one:
        console.print("There is no C compiler `cc`: its row is left out.")
    spreads = [timing.spread for timings in (one, ten, costly) for timing in timings.values()]
    noise = f"{np.median(spreads):.2f} in the median, {max(spreads):.2f} at worst"
    console.print(f"{cpu_model()}, {cores()} cores; JAX {jax.__version__} on {jax.default_backend()}.")
    console.print(f"Noise, the slowest over the fastest repeat: {noise}.")
    if np.median(spreads) > TOO_NOISY:
        console.print("[yellow]Other programs were running: do not trust a verdict near its limit.[/]")


def rows(one: Timings, ten: Timings, costly: Timings) -> Iterator[tuple[str, ...]]:
    """The cells of every row that could be measured."""
    csgld, first_call = one["csgld"], "–"
    if BLACKJAX:
        for name in GENERATORS:
            peer = best_blackjax(one, name)
            yield compare(f"one chain: CSGLD vs BlackJAX ({name} generator)", csgld, peer, 1 / 3)
        first_call = f"{best_blackjax(one, 'default').first_call:.2f} s"
    if "C" in one:
        yield compare("one chain: CSGLD vs a C loop", csgld, one["C"], 3)
    if BLACKJAX:
        for name in GENERATORS:
            peer = best_blackjax(ten, name)
            yield compare(f"ten chains: `sample` vs BlackJAX ({name} generator)", ten["sample"], peer, 1 / 2)
    yield compare("one chain: CSGLD vs SGLD", csgld, one["sgld"], 1.5)
    cost = f"gradient of {costly['gradient'].median:.0f} µs"
    yield compare(f"{cost}: CSGLD vs SGLD", costly["csgld"], costly["sgld"], 1.05)
    yield compare(f"one chain: m = {MANY_BINS:,} vs m = {BINS}", one["csgld, many bins"], csgld, 1.3)
    yield "first call, with compilation", f"{csgld.first_call:.2f} s", first_call, "", "", "shown"


def one_chain() -> dict[str, Contender]:
    """Everything that runs a single chain on the mixture."""
    contenders = {
        "csgld": segment(MIXTURE, csgld(), jnp.zeros(()), THIN),
        "csgld, many bins": segment(MIXTURE, csgld(MANY_BINS), jnp.zeros(()), THIN),
        "sgld": segment(MIXTURE, cm.sgld(STEP_SIZE), jnp.zeros(()), THIN),
    }
    if compiled := c_loop(STEPS):
        contenders["C"] = Contender(compiled, STEPS)
    return contenders | blackjax(None)


def ten_chains() -> dict[str, Contender]:
    """Ten chains, ours as `sample` runs them: set-up, threads, draws and all."""

    def run() -> cm.Samples:
        return cm.sample(
            MIXTURE, init=0.0, steps=SAMPLE_STEPS, kernel=csgld(), chains=CHAINS, thin=THIN, progress=False
        )

    return {"sample": Contender(run, SAMPLE_STEPS)} | blackjax(CHAINS)


def costly_gradient() -> dict[str, Contender]:
    """CSGLD and SGLD where the target takes the time, and the target alone."""
    energy = logistic_regression(ROWS, COLUMNS)
    start, step_size, steps = jnp.zeros(COLUMNS), 0.01, 1024
    # From a fifth below the energy at the start, where the chains end up, in bins wide for its fluctuations.
    partition = cm.Partition(low=0.8 * float(energy(start)), width=20.0, bins=BINS)

    def descend(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        position, total = carry
        value, gradient = jax.value_and_grad(energy)(position)
        return position - step_size * gradient, total + value

    loop = jax.jit(lambda: jax.lax.fori_loop(0, steps, descend, (start, jnp.zeros(()))))
    target = cm.ExactEnergy(energy)
    return {
        "gradient": Contender(lambda: jax.block_until_ready(loop()), steps),
        "csgld": segment(target, cm.csgld(step_size, partition), start, 10, steps),
        "sgld": segment(target, cm.sgld(step_size), start, 10, steps),
    }


def segment(target: cm.Target, kernel: cm.Kernel, start: Array, thin: int, steps: int | None = None) -> Contender:
    """One chain in the compiled program of the library, as a long run calls it: a segment, unless given."""
    plan = make_plan(target, kernel, start, 10_000_000, thin)
    chain = start_chain(target, kernel, jax.random.key(0), start, None, large=plan.build.large)
    kernel = as_arguments(kernel)
    stack = jax.tree.map(lambda leaf: leaf[None], chain)
    steps = min(steps or plan.stretch, plan.segment_steps)
    span = Span(*np.array([1, steps, 0, thin, plan.stretch], np.int32))

    def run() -> Segment:
        program = compile_segment(target, kernel, plan, stack)  # at the first call; then it is looked up
        if program is None:
            raise RuntimeError("the compiler refuses a single kernel")
        return jax.block_until_ready(program(target, kernel, stack, span, None))

    return Contender(run, steps)


def blackjax(chains: int | None) -> dict[str, Contender]:
    """BlackJAX with every generator in every loop; nothing if it is not installed."""
    if not BLACKJAX:
        return {}
    return {
        f"BlackJAX {name}, {loop}": Contender(blackjax_loop(loop, STEPS, generator, chains), STEPS)
        for name, generator in GENERATORS.items()
        for loop in LOOPS
    }


def best_blackjax(timings: Timings, generator: str) -> Timing:
    """The faster of BlackJAX's loops."""
    return min((timings[f"BlackJAX {generator}, {loop}"] for loop in LOOPS), key=lambda timing: timing.median)


def compare(what: str, ours: Timing, peer: Timing, limit: float) -> tuple[str, ...]:
    """The cells of a row; the limit is the most that the ratio may be."""
    ratio = ours.median / peer.median
    verdict = "[green]met[/]" if ratio <= limit else "[red]missed[/]"
    return what, f"{ours.median:.3g}", f"{peer.median:.3g}", f"{ratio:.2f}", f"{limit:.3g}", verdict


def cpu_model() -> str:
    """The processor's name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
