"""Checks of a run whose bins followed the energies: what they found, in words, and whether there was anything."""

from collections.abc import Iterator

import numpy as np

from contourmc.draws.findings import Finding
from contourmc.draws.weighted import WeightedDraws

MOSTLY_NOISE = 0.2  # of the variation of smoothed energies must come from the positions
MOST_FALL = 2.0  # from the first quarter of the draws to the last, in units of S


def check_following(samples: WeightedDraws) -> Iterator[Finding]:
    """What bins that follow the energies found."""
    found = samples.settings.get("following")
    if found is None:
        return
    if np.ptp(samples.energies) == 0:
        message = "all energies are the same, so that there was nothing to flatten."
        yield Finding("warning", "energies", 0.0, message, "Check that the likelihood depends on the parameters.")
        return
    low, high = found["multipliers_within"]
    least, largest = float(np.min(samples.multipliers)), float(np.max(samples.multipliers))
    zeta = "" if "zeta" not in found else f", ζ = {found['zeta']:.3g}"
    message = (
        f"batches change the energy by ±{found['noise']:.3g}; smoothed, it lay at {found['mean_energy']:.4g} ±"
        f" {found['spread']:.3g}: bins of {found['width']:.3g}{zeta}, multipliers {least:.2f} … {largest:.2f} at the"
        f" draws, within {low:g} … {high:g}."
    )
    yield Finding("note", "bins", found["width"], message, "")
    quarter = max(1, samples.energies.shape[1] // 4)
    early, late = samples.energies[:, :quarter], samples.energies[:, -quarter:]
    fall, by_chance = float(np.mean(early) - np.mean(late)), found["noise"] * (2 / late.size) ** 0.5
    if fall > MOST_FALL * found["spread"] + 3 * by_chance:
        message = f"the energy fell by {fall:.3g} while it was flattened, so that the bins are as wide as this fall."
        advice = "Begin after it, and after the last fall of a learning rate: give a larger burn_in."
        yield Finding("warning", "fall", fall / found["spread"], message, advice)
    share = found["share_not_noise"]
    if share < MOSTLY_NOISE:
        message = (
            f"{1 - share:.0%} of the variation of the smoothed energy is noise of the batches: little was flattened."
        )
        yield Finding("note", "noise", share, message, "Larger batches, or more smoothing, let more be seen.")
