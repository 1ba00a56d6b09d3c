"""What the weights of a model average are worth: as they are, tempered until half of the models count, and all equal.

A network of 32 hidden units on half of scikit-learn's digits, by contour SGHMC with two chains and 200 models, at
several ζ; from ζ = 1,000 on, temperatures and bins are such that the gradient multiplier runs from about −2 to 6. Means
over six seeds, and paired differences of the tempered average to the others with standard errors; a minute on a CPU.

    python -m benchmarks.tempering
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import contourmc as cm

SEEDS = 6
# ζ: the lowest bin, the width and number of bins, and the temperature
SETTINGS = {
    1.0: (200.0, 20.0, 100, 1.0),
    1e2: (200.0, 20.0, 100, 1.0),
    1e3: (200.0, 20.0, 100, 0.2),
    1e4: (130.0, 5.0, 200, 5e-3),
    1e6: (110.0, 5.0, 200, 5e-5),
}
KINDS: dict[str, dict[str, float]] = {
    "as they are": dict(tempering=1.0),
    "half count": dict(effective=0.5),
    "equal": dict(tempering=0.0),
}


def init(key: Any) -> dict[str, Any]:
    first, second = jax.random.split(key)
    hidden = {"kernel": jax.random.normal(first, (64, 32)) / 8, "bias": jnp.zeros(32)}
    return {"hidden": hidden, "output": {"kernel": jax.random.normal(second, (32, 10)) / 6, "bias": jnp.zeros(10)}}


def apply(params: Any, x: Any) -> Any:
    hidden, output = params["hidden"], params["output"]
    return jnp.tanh(x @ hidden["kernel"] + hidden["bias"]) @ output["kernel"] + output["bias"]


def measure(zeta: float, seed: int) -> np.ndarray:
    """Accuracy in percent, NLL, ECE, and the share of the models that count, for each kind of weights."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    split = train_test_split(*load_digits(return_X_y=True), random_state=0, test_size=0.5)
    x, test_x, y, test_y = map(np.asarray, split)
    likelihood = cm.CategoricalLikelihood(apply, classes=10)
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x / 16, y), batch_size=100)
    low, width, bins, temperature = SETTINGS[zeta]
    partition = cm.Partition(low=low, width=width, bins=bins)
    kernel = cm.csghmc(2e-4, partition, temperature=temperature, zeta=zeta, rule="scalable")
    run = cm.sample(posterior, init=init, steps=4000, kernel=kernel, chains=2, seed=seed, thin=36)
    rows = []
    for weights in KINDS.values():
        average = cm.ClassificationAverage(likelihood.predict, test_x / 16, test_y, classes=10, **weights)  # type: ignore[arg-type]
        found = average.over(run)
        rows.append([100 * found.accuracy, found.nll, found.calibration_error(), found.effective_share])
    return np.array(rows)


def main() -> None:
    table = Table("ζ", "weights", "accuracy", "NLL", "half count − this", "ECE", "models that count")
    for zeta in SETTINGS:
        figures = np.array([measure(zeta, seed) for seed in range(SEEDS)])
        for kind, one in zip(KINDS, figures.transpose(1, 0, 2), strict=True):
            accuracy, nll, ece, share = one.mean(axis=0)
            difference = figures[:, 1, 1] - one[:, 1]
            error = difference.std(ddof=1) / SEEDS**0.5
            shown = "" if kind == "half count" else f"{difference.mean():+.4f} ± {error:.4f}"
            table.add_row(f"{zeta:g}", kind, f"{accuracy:.1f}", f"{nll:.4f}", shown, f"{ece:.3f}", f"{share:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
