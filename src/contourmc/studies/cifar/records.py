"""The record of a run as plain data: how it was made, its evaluations one by one, and what came of it."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from contourmc._core.checks import require
from contourmc._core.whole_file import write_whole
from contourmc.draws.estimates import kish, normalise
from contourmc.draws.samples import Samples
from contourmc.predictions.classification import ClassificationAverage, ClassificationPrediction
from contourmc.predictions.model_average import updated_mean
from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.sets import SETS, ImageSet, find_set

Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class LogitAverage(ClassificationAverage):
    """The average of probabilities, and next to it the average of logits that Deng et al. (2022) report."""

    def no_means(self) -> dict[str, Array]:
        means = super().no_means()
        return means | {"logits": jnp.zeros_like(means["probabilities"])}

    def add_means(
        self, means: dict[str, Array], share: Float[Array, ""], predicted: Any
    ) -> tuple[dict[str, Array], Float[Array, ""], Float[Array, ""]]:
        new, error, nll = super().add_means(means, share, predicted)
        return new | {"logits": updated_mean(means["logits"], predicted, share)}, error, nll


def of_mean_logits(prediction: ClassificationPrediction) -> ClassificationPrediction:
    """The prediction by the softmax of the mean logits over all draws of all chains."""
    probabilities = softmax(prediction.over_chains(prediction.means["logits"]), axis=1)
    return replace(prediction.chain(0), means={"probabilities": probabilities[None]})


def figures(prediction: ClassificationPrediction) -> dict[str, float]:
    return {
        "accuracy": prediction.accuracy,
        "nll": prediction.nll,
        "ece": prediction.calibration_error(),
        "brier": prediction.brier,
    }


def evaluation(epoch: int, point: dict[str, float], samples: Samples, before: list[Record]) -> Record:
    """What is known after an epoch: the present model, the average so far, and where the chain has been.

    before: the evaluations before.

    The bins are those visited since then, and one below, since a multiplier comes of the difference of two log θ.
    """
    average = None if samples.average is None else figures(samples.average)
    entry: Record = {"epoch": epoch, "point": point, "average": average}
    if samples.average is not None and "logits" in samples.average.means:
        entry["mean_logits"] = figures(of_mean_logits(samples.average))
    if samples.trajectory.visits is not None:
        visits = samples.trajectory.visits[0, -1].copy()
        for earlier in before:
            first, counts = earlier["bins"]["first"], earlier["bins"]["visits"]
            visits[first : first + len(counts)] -= np.asarray(counts, visits.dtype)
        visited = np.append(np.flatnonzero(visits), 0)  # none before bins that follow the energies begin to flatten
        part = slice(max(int(visited[0]) - 1, 0), int(visited[:-1].max(initial=0)) + 1)
        entry["bins"] = {"first": part.start, "visits": visits[part].tolist(), "log_theta": _log_theta(samples)[part]}
    return entry


def results(images: ImageSet, samples: Samples, history: list[Record]) -> Record:
    """The best point so far, the average so far, and the path to them.

    interrupted: whether there are epochs to come, which is so until the last evaluation.
    mean_logits: in place of mean probabilities, where they are averaged; and the best accuracy and the best NLL of all
        evaluations, each chosen on the test set, as Deng et al. (2022) report them.
    energies, multipliers: the least and the largest of the kept draws, of which `draws` has every one.
    """
    best = max(history, key=lambda entry: entry["point"]["accuracy"])
    found: Record = {
        "epochs": history[-1]["epoch"],
        "interrupted": samples.interrupted,
        "best_point": best["point"] | {"epoch": best["epoch"]},
        "last_point": history[-1]["point"],
        "average": history[-1]["average"],
        "seconds": samples.seconds,
        "compile_seconds": samples.compile_seconds,
    }
    if "mean_logits" in history[-1]:
        found["mean_logits"] = history[-1]["mean_logits"]
        found["best_mean_logits_on_the_test_set"] = best_mean_logits(history)
    found |= {name: samples.settings[name] for name in ("following", "swaps") if name in samples.settings}
    if samples.average is not None:
        reliability = dict(zip(("confidence", "accuracy", "share"), samples.average.reliability(), strict=True))
        # Of all chains, those of the first at the beginning.
        energies, multipliers = samples.energies.ravel(), samples.multipliers.ravel()
        log_weights = samples.log_weights.ravel()
        zeta = samples.settings.get("following", {}).get("zeta", images.zeta)
        found |= {
            "models": samples.average.models * samples.chains,
            "reliability": {name: values.tolist() for name, values in reliability.items()},
            "energies": [float(energies.min()), float(energies.max())],
            "multipliers": [float(multipliers.min()), float(multipliers.max())],
            "effective_models_by_weight": float(kish(normalise(log_weights))),
            "effective_models_by_theta": float(kish(normalise(log_weights / zeta))),
            "draws": {
                "steps": samples.steps.tolist(),
                "energies": _rounded(energies, 1),
                "multipliers": _rounded(multipliers, 4),
                "log_weights": _rounded(log_weights, 1),
            },
        }
    if samples.trajectory.visits is not None and samples.trajectory.visits[0, -1].any():
        visits = samples.trajectory.visits[0, -1]
        visited = np.flatnonzero(visits)
        found["bins_visited"] = [int(visited[0]), int(visited[-1])]
        found["bins"] = {"visits": visits.tolist(), "log_theta": _log_theta(samples)}
    return found


def best_mean_logits(history: list[Record]) -> Record:
    """The best accuracy and the best NLL of the mean logits so far, each with the epoch after which it was so."""
    there = [entry for entry in history if "mean_logits" in entry]
    best = {
        "accuracy": max(there, key=lambda entry: entry["mean_logits"]["accuracy"]),
        "nll": min(there, key=lambda entry: entry["mean_logits"]["nll"]),
    }
    return {name: {"value": entry["mean_logits"][name], "epoch": entry["epoch"]} for name, entry in best.items()}


def _log_theta(samples: Samples) -> list[float]:
    assert samples.theta is not None
    return _rounded(np.log(np.maximum(samples.theta[0], 1e-300)), 4)


def _rounded(values: np.ndarray, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def write_record(file: Path, record: Record) -> None:
    """Replace the record as a whole, so that an interruption leaves the one before."""
    write_whole(file, json.dumps(record, indent=1) + "\n")


def read_records(folder: Path) -> list[Record]:
    """All records in a folder, in the order of the paper's table."""
    records = []
    for file in sorted(folder.glob("*-seed-*.json")):
        known = False
        with suppress(ValueError, KeyError, TypeError):
            record = json.loads(file.read_text(encoding="utf-8"))
            known = record["settings"]["algorithm"] in ALGORITHMS and record["results"]["epochs"] > 0
            known = known and set_of(record).name in SETS
            records.append(record)
        require(known, "file", str(file), "it is no record of a run: remove it, or make it again")
    return sorted(records, key=lambda record: list(ALGORITHMS).index(record["settings"]["algorithm"]))


def set_of(record: Record) -> ImageSet:
    """The data set of a run; the first records, all of CIFAR-10, do not say."""
    return find_set(record["settings"].get("dataset", "cifar10"))


def kernel_of(record: Record) -> Record | None:
    """The description of the kernel; the first records have the name of the rule, and its ρ beside it."""
    kernel = record["settings"].get("kernel")
    if kernel is None or not isinstance(kernel.get("rule"), str):
        return kernel
    rest = {name: value for name, value in kernel.items() if name not in ("rule", "rho")}
    return rest | {"rule": {"kind": kernel["rule"].title(), "rho": kernel["rho"]}}


def network_of(record: Record) -> str:
    return f"ResNet-{6 * record['settings']['depth'] + 2}"
