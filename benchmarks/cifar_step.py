"""Milliseconds for the gradients of ResNet-20 on a batch of 1,000 images, bfloat16, on a GPU, and where they go.

The network of the CIFAR study with plain momentum SGD, without data and sampler: 50 steps in a compiled loop.

    python -m benchmarks.cifar_step
"""

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from benchmarks.timing import Contender, measure
from contourmc.studies.cifar.network import ImageLikelihood, ResNet

STEPS, BATCH_SIZE, ROUNDS, SHOWN = 50, 1000, 5, 25


def training(folded: bool) -> Callable[[], None]:
    """Makes 50 steps, always the same, and waits for them."""
    random = np.random.default_rng(0)
    images = jnp.asarray(random.integers(0, 256, (BATCH_SIZE, 32, 32, 3)).astype(np.uint8))
    labels = jnp.asarray(random.integers(0, 10, BATCH_SIZE))
    likelihood = ImageLikelihood(ResNet(folded=folded))
    params, statistics = jax.jit(likelihood.init)(jax.random.key(0))
    vector, unravel = ravel_pytree(params)

    def loss(vector, statistics, shift):
        log_likelihoods, new = likelihood(unravel(vector), statistics, (jnp.roll(images, shift, axis=0), labels))
        return -jnp.mean(log_likelihoods), new

    def step(carry, shift):
        vector, velocity, statistics = carry
        gradient, statistics = jax.grad(loss, has_aux=True)(vector, statistics, shift)
        velocity = 0.9 * velocity - 0.01 * gradient
        return (vector + velocity, velocity, statistics), None

    run = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(STEPS))[0])
    begin = vector, jnp.zeros_like(vector), statistics
    return lambda: jax.block_until_ready(run(begin))


def kernels(run: Callable[[], None]) -> Counter[str]:
    """Nanoseconds of each GPU kernel, in all 50 steps."""
    spent: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        for file in Path(folder).rglob("*.xplane.pb"):
            planes = jax.profiler.ProfileData.from_file(str(file)).planes
            lines = [line for plane in planes if "GPU" in plane.name for line in plane.lines if "Stream" in line.name]
            for line in lines:
                for event in line.events:
                    spent[event.name] += int(event.duration_ns)
    return spent


def main() -> None:
    run = training(folded=jax.default_backend() != "cpu")
    timing = measure({"gradients": Contender(run, STEPS)}, ROUNDS)["gradients"]
    print(f"{jax.devices()[0].device_kind}: {timing.median / 1000:.3f} ms a step, median of {ROUNDS} rounds")
    spent = kernels(run)
    print(f"GPU kernels: {sum(spent.values()) / STEPS / 1e6:.3f} ms a step")
    for name, nanoseconds in spent.most_common(SHOWN):
        print(f"  {nanoseconds / STEPS / 1e6:.4f}  {name[:100]}")


if __name__ == "__main__":
    main()
