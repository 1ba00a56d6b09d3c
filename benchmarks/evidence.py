"""`python -m benchmarks.evidence`: log Z(T) and the log evidence of automatic runs on the gallery, beside the truth.

For every problem and seed one run of 10 chains × 200,000 steps; from it log Z(2) − log Z(1) and log Z(4) − log Z(1)
where these temperatures were visited, and the log evidence. `given`: how many seeds gave an estimate. `error`, `worst`:
its distance from the truth, mean and largest. `within 2`: how many were within two of their standard errors. Seconds
are what the estimate takes after the run, with compilation.
"""

import argparse
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

import contourmc as cm
from contourmc.problems import Problem, gallery

TEMPERATURES = (2.0, 4.0)
EVIDENCE = "log evidence"


class Figure(NamedTuple):
    """One estimate: its error and standard error, NaN if it was refused; and how long it took."""

    quantity: str
    error: float
    standard_error: float
    seconds: float


def figures(problem: Problem, seed: int, chains: int, steps: int) -> Iterator[Figure]:
    """All estimates of one run whose truth is known."""
    run = cm.sample(problem.energy, init=problem.start, steps=steps, chains=chains, seed=seed)
    for temperature in TEMPERATURES:
        truth = problem.log_normaliser(temperature)
        if truth is None or problem.log_evidence is None:
            continue
        began, quantity = time.perf_counter(), f"log Z({temperature:g}) − log Z(1)"
        low, high = run.temperature_range()
        value = error = np.nan
        if low <= temperature <= high:
            value, error, _ = run.log_normaliser(temperature)
        yield Figure(quantity, value - (truth - problem.log_evidence), error, time.perf_counter() - began)
    if problem.log_evidence is not None:
        began = time.perf_counter()
        found = run.log_evidence(seed=seed)
        yield Figure(EVIDENCE, found.value - problem.log_evidence, found.error, time.perf_counter() - began)


def row(problem: Problem, quantity: str, found: list[Figure]) -> str:
    """A line of the table: seeds that gave an estimate, mean and largest error, standard error, how many it covers."""
    errors, standard = (np.array([getattr(one, name) for one in found]) for name in ("error", "standard_error"))
    seconds = np.median([one.seconds for one in found])
    given = np.isfinite(errors)
    head = f"| {problem.name} | {problem.dimension} | {quantity} | {given.sum()} of {len(found)} |"
    if not given.any():
        return f"{head} | | | | | {seconds:.1f} |"
    errors, standard = errors[given], standard[given]
    inside = [int(np.sum(np.abs(errors) <= times * standard)) for times in (2, 3)]
    sizes = f"{np.mean(np.abs(errors)):.4f} | {np.max(np.abs(errors)):.4f} | {np.mean(standard):.4f}"
    return f"{head} {sizes} | {inside[0]} | {inside[1]} | {seconds:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--chains", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--only", default="", help="the problems whose names hold this text")
    chosen = parser.parse_args()
    problems = [problem for name, problem in gallery().items() if chosen.only in name]
    print("| problem | dimension | quantity | given | error | worst | standard error | within 2 | within 3 | seconds |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for problem in track(problems, description="problems", console=Console(stderr=True)):
        found = [
            figure for seed in range(chosen.seeds) for figure in figures(problem, seed, chosen.chains, chosen.steps)
        ]
        for quantity in dict.fromkeys(figure.quantity for figure in found):
            print(row(problem, quantity, [figure for figure in found if figure.quantity == quantity]), flush=True)


if __name__ == "__main__":
    main()
