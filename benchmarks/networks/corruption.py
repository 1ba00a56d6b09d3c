"""Test images made worse: noise, blur and low contrast, each at five strengths."""

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter

Images = Float[np.ndarray, "n height width"]

NOISE = (0.1, 0.2, 0.3, 0.4, 0.5)  # standard deviations; pixels are from 0 to 1
BLUR = (0.03, 0.05, 0.07, 0.09, 0.12)  # standard deviations, as shares of the height
CONTRAST = (0.75, 0.6, 0.45, 0.3, 0.15)  # what remains of the distance from an image's mean
KINDS = ("noise", "blur", "contrast")
STRENGTHS = 5


def corrupted(images: Images) -> dict[str, list[Images]]:
    """By kind, for each strength; the noise is always the same."""
    generator = np.random.default_rng(0)
    height, means = images.shape[1], images.mean(axis=(1, 2), keepdims=True)
    return {
        "noise": [images + deviation * generator.normal(size=images.shape) for deviation in NOISE],
        "blur": [gaussian_filter(images, (0, share * height, share * height)) for share in BLUR],
        "contrast": [means + factor * (images - means) for factor in CONTRAST],
    }
