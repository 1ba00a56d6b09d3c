"""The settings of contour kernels: how they compare, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import Partition, Polynomial, contour, csgld, ksgld

PARTITION = Partition(low=1.0, width=0.5, bins=8)


def test_equal_settings_are_equal_objects():
    """The compiled loop is cached by them; known θ in any form of sequence."""
    theta = [0.125] * 8
    kernel = csgld(0.1, PARTITION, theta=theta)
    assert kernel == csgld(0.1, PARTITION, theta=tuple(theta))
    assert hash(kernel) == hash(csgld(0.1, PARTITION, theta=tuple(theta)))
    assert csgld(0.1, PARTITION) == csgld(0.1, PARTITION, zeta=1.0) != csgld(0.1, PARTITION, zeta=0.9)


@pytest.mark.usefixtures("untyped")
def test_known_theta_may_be_an_array():
    kernel = csgld(0.1, PARTITION, theta=np.full(8, 0.125))
    assert kernel == csgld(0.1, PARTITION, theta=[0.125] * 8)
    assert kernel == ksgld(0.1, PARTITION, jnp.full(8, 0.125))
    assert isinstance(hash(kernel), int)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("zeta", -1.0), ("zeta", float("nan")), ("zeta", float("inf")), ("zeta", "a"),
        ("omega", 0.0), ("omega", -0.1), ("omega", 1.0), ("omega", 2.0), ("omega", Polynomial(2.0, 0.6)),
        ("omega", float("nan")), ("omega", lambda k: -0.1 * k),
        ("scheme", "middle"), ("scheme", None), ("rule", "paper"), ("weights", "equal"),
        ("theta", [0.5, 0.5]), ("theta", [0.125] * 7 + [0.5]), ("theta", [1.125] + [-0.125] + [0.0] * 6),
        ("theta", [float("nan")] * 8), ("theta", [[0.125] * 8]),
        ("partition", None), ("partition", 8),
        ("step_size", 0.0), ("step_size", -0.1), ("temperature", -1.0),
    ],
)  # fmt: skip
def test_bad_input_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}"):
        csgld(**{"step_size": 0.1, "partition": PARTITION} | {argument: value})


@pytest.mark.usefixtures("untyped")
def test_bad_dynamics_are_named():
    for bad in (None, "sgld", csgld(0.1, PARTITION)):
        with pytest.raises(ValueError, match=r"^dynamics="):
            contour(bad, PARTITION)
