"""Charts of how far probabilities can be relied on: shares that came true against the probabilities that were given."""

import numpy as np
from jaxtyping import Float, Num

from contourmc.draws.exhibits.chart import BLUE, GREY, ORANGE, Axis, Chart, Layer


def chance_band(
    probability: Float[np.ndarray, " points"], counts: Num[np.ndarray, " points"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Where 95% of the shares of so many would lie if probabilities were right: p ± 1.96·√(p(1 − p)/n)."""
    reach = 1.96 * np.sqrt(probability * (1 - probability) / counts)
    return probability - reach, probability + reach


def calibration_chart(
    title: str,
    caption: str,
    labels: tuple[str, str],
    probability: Float[np.ndarray, " points"],
    observed: Float[np.ndarray, " points"],
    counts: Num[np.ndarray, " points"],
) -> Chart:
    """The shares, the diagonal on which they lie if calibrated, and what chance alone explains.

    labels: of the axes.
    """
    low, high = chance_band(probability, counts)
    caption += " The band is what chance alone explains, in 95% of the cases."
    layers = [
        Layer("band", {"x": probability, "y": low, "y2": high}, "chance", ORANGE),
        Layer("dashes", {"x": (0.0, 1.0), "y": (0.0, 1.0)}, "calibrated", GREY),
        Layer("line", {"x": probability, "y": observed}, "model average", BLUE),
    ]
    return Chart(title, caption, Axis(labels[0], limits=(0.0, 1.0)), Axis(labels[1], limits=(0.0, 1.0)), layers)
