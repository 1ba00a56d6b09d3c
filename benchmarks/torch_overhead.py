"""What a step of each sampler costs over `torch.optim.SGD` with momentum: whole training steps, in turns in one run.

    python -m benchmarks.torch_overhead                  # a small MLP on the CPU
    python -m benchmarks.torch_overhead --device cuda    # ResNet-20 on a GPU

A ratio is that of the medians over rounds, each of which times every optimiser once, in a changing order.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import contourmc as cm


def main() -> None:
    import torch  # pyright: ignore[reportMissingImports]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, nargs="+", help="batch sizes; 128 256 512 on the CPU, 128 1000 on a GPU")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20, help="steps in a round")
    parser.add_argument("--threads", type=int, help="threads of PyTorch on the CPU; default as PyTorch chooses")
    parser.add_argument("--busy", action="store_true", help="count CPU time, on a machine that others use too")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    device = torch.device(given.device)
    on_gpu = device.type == "cuda"
    print(
        f"PyTorch {torch.__version__},",
        torch.cuda.get_device_name() if on_gpu else f"{torch.get_num_threads()} threads",
    )
    for batch in given.batch or ([128, 1000] if on_gpu else [128, 256, 512]):
        steps = {name: training_step(make, batch, device) for name, make in optimisers().items()}
        clock = time.process_time if given.busy else time.perf_counter
        times = interleaved(steps, given.rounds, given.steps, torch.cuda.synchronize if on_gpu else lambda: None, clock)
        reference = statistics.median(times["SGD"])
        print(f"\n{'ResNet-20, bfloat16' if on_gpu else 'MLP 784-256-256-10'}, batch {batch}")
        for name, measured in times.items():
            median = statistics.median(measured)
            print(f"  {name:24s} {1e6 * median:9.1f} µs   {median / reference:.3f}")


def optimisers() -> dict[str, Callable[[Any], Any]]:
    """Each optimiser from a model's parameters."""
    import torch  # pyright: ignore[reportMissingImports]

    from contourmc.torch import CSGHMC, CSGLD, SGHMC, SGLD

    common: dict[str, Any] = dict(lr=1e-3, data_size=50_000, temperature=1e-2)
    contour: dict[str, Any] = dict(
        partition=cm.Partition(low=10_000.0, width=1000.0, bins=200), zeta=1e3, rule="scalable"
    )
    return {
        "SGD": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=True),
        "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=5e-4, foreach=True),
        "SGLD": lambda p: SGLD(p, **common),
        "SGHMC": lambda p: SGHMC(p, **common),
        "CSGLD": lambda p: CSGLD(p, **common, **contour),
        "CSGHMC": lambda p: CSGHMC(p, **common, **contour),
        "CSGHMC, temperature 0": lambda p: CSGHMC(p, **{**common, "temperature": 0.0}, **contour),
        "CSGHMC, weight decay": lambda p: CSGHMC(p, **common, **contour, weight_decay=5e-4),
    }


def training_step(make: Callable[[Any], Any], batch: int, device: Any) -> Callable[[], None]:
    """A whole training step of a model of its own: forward, backward, and the optimiser's step."""
    import torch  # pyright: ignore[reportMissingImports]

    from benchmarks.torch_resnet import resnet20

    torch.manual_seed(0)
    nn, functional = torch.nn, torch.nn.functional
    on_gpu = device.type == "cuda"
    if on_gpu:
        model = resnet20(10).to(device, memory_format=torch.channels_last)
        x = torch.randn(batch, 3, 32, 32, device=device).contiguous(memory_format=torch.channels_last)
    else:
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        x = torch.randn(batch, 784)
    y = torch.randint(0, 10, (batch,), device=device)
    optimiser = make(model.parameters())
    plain = isinstance(optimiser, torch.optim.SGD)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step() if plain else optimiser.step(loss)

    return step


def interleaved(
    steps: dict[str, Callable[[], None]],
    rounds: int,
    count: int,
    wait: Callable[[], None],
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """Seconds a step, for every round."""
    for step in steps.values():
        for _ in range(5):
            step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            wait()
            begin = clock()
            for _ in range(count):
                steps[name]()
            wait()
            times[name].append((clock() - begin) / count)
    return times


if __name__ == "__main__":
    main()
