"""Jumps between basins: the map, the stationary law, and barriers that nothing else crosses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.kernels.equilibrium import PARTITION, SETTINGS, TEMPERATURE, contour_pvalues

import contourmc as cm
from contourmc import adjusted, basin_shapes, contour, jumps
from contourmc.kernels.basin_shapes import BasinShapes
from contourmc.kernels.jumps import Jumps

MEANS = np.array([[0.0, 0.0], [6.0, 1.0], [-4.0, 5.0]])
FACTORS = np.array([[[1.0, 0.0], [0.5, 1.0]], [[2.0, 0.3], [0.0, 0.5]], [[0.7, -0.2], [0.1, 1.5]]])


def choice_of(further, count):
    """A uniform number that leads to the basin so many after one's own."""
    return jnp.float32((further - 0.5) / (count - 1))


def test_an_image_is_where_the_formula_says_and_leads_back():
    """y = μ_b + L_b L_a⁻¹(x − μ_a), and back again to x; the volumes cancel. Float32, numbers of order 10: 1e-4."""
    shapes, x = basin_shapes(MEANS, FACTORS), MEANS[0] + [0.3, -0.2]
    for b in (1, 2):
        y, log_volume = shapes.image(jnp.asarray(x, jnp.float32), choice_of(b, 3))
        expected = MEANS[b] + FACTORS[b] @ np.linalg.inv(FACTORS[0]) @ (x - MEANS[0])
        np.testing.assert_allclose(y, expected, atol=1e-4)
        dets = np.abs(np.linalg.det(FACTORS))
        assert float(log_volume) == pytest.approx(np.log(dets[b] / dets[0]), abs=1e-5)
        back, other = shapes.image(y, choice_of(3 - b, 3))
        np.testing.assert_allclose(back, x, atol=1e-4)
        assert float(other) == pytest.approx(-float(log_volume), abs=1e-5)


def test_positions_of_float32_jump_where_jax_computes_in_float64(double_precision):
    """As in a run that tunes itself, whose pilot measures the basins in float64."""
    kernel = jumps(adjusted(0.1), basin_shapes(MEANS, FACTORS), every=2)
    position, energy = jnp.asarray(MEANS[0], jnp.float32), jnp.float64(0.5)
    state = kernel.init(position)
    after, _ = jax.eval_shape(kernel.step, jax.random.key(0), state, energy, position)
    assert jax.tree.map(lambda leaf: leaf.dtype, after) == jax.tree.map(lambda leaf: leaf.dtype, state)
    y, _ = kernel.shapes.image(position, choice_of(1, 3))
    np.testing.assert_allclose(y, MEANS[1], atol=1e-6)


def test_all_other_basins_are_reached_and_none_of_the_spare_room():
    """Three basins in room for four: from each, uniform numbers lead to the two others, half of them each."""
    shapes = basin_shapes(MEANS, FACTORS)
    assert shapes.means.shape == (4, 2)
    for a in range(3):
        images, _ = jax.vmap(lambda u, a=a: shapes.image(shapes.means[a], u))(jnp.linspace(0, 0.999, 100))
        reached = np.bincount(np.asarray(jax.vmap(shapes.basin_of)(images)), minlength=4)
        assert reached.tolist() == [0 if b in (a, 3) else 50 for b in range(4)]


def test_an_image_outside_its_basin_is_not_to_be_entered():
    """So far out that, seen from there, another basin is closer."""
    shapes = basin_shapes([[0.0], [4.0]], [[[1.0]], [[1.0]]])
    inside, outside = (shapes.image(jnp.float32([x]), jnp.float32(0.5))[1] for x in (1.0, -3.0))
    assert inside == 0
    assert outside == -jnp.inf


# On two modes, flattened, with shapes that fit badly: many images are outside of their basins.
SHAPES = basin_shapes([[-1.7], [1.6]], [[[0.8]], [[0.9]]])


def pvalues(kernel):
    """Of the law, and of the weighted mean energy. Small steps hardly move: what the jumps do wrong stays."""
    return contour_pvalues(contour(kernel, PARTITION, **SETTINGS), steps=40)[:2]


def test_the_flattened_density_is_kept():
    assert min(pvalues(Jumps(adjusted(0.01, TEMPERATURE), SHAPES, 2))) > 1e-4


class ForgetsTheVolume(BasinShapes, arrays=()):
    """Jumps without the determinant."""

    def image(self, x, choice):
        y, log_volume = super().image(x, choice)
        return y, jnp.where(jnp.isfinite(log_volume), 0.0, log_volume)


class ForgetsTheMembership(BasinShapes, arrays=()):
    """Enters images that do not belong to the basin they were made for."""

    def image(self, x, choice):
        y, _ = super().image(x, choice)
        a = self.basin_of(x)
        return y, self.log_volumes[1 - a] - self.log_volumes[a]


@pytest.mark.parametrize("broken", [ForgetsTheVolume, ForgetsTheMembership])
def test_what_is_forgotten_is_noticed(broken):
    wide = basin_shapes([[-1.7], [1.6]], [[[0.5]], [[0.9]]])
    forgetful = broken(*(getattr(wide, name) for name in ("count", "means", "factors", "inverses", "log_volumes")))
    assert min(pvalues(Jumps(adjusted(0.01, TEMPERATURE), wide, 2))) > 1e-4
    assert min(pvalues(Jumps(adjusted(0.01, TEMPERATURE), forgetful, 2))) < 1e-6


def test_a_barrier_of_hundreds_is_crossed():
    """0.3 and 0.7 of the mass, 40 standard deviations apart, one of them three times as wide in four dimensions.

    Without flattening. 16 chains × 4,000 steps with 666 jumps each, of which some 40% are accepted: the mass is known
    to √(0.21/(16·150)) = 0.01; 4 of that.
    """
    widths, weights = jnp.array([1.0, 3.0]), jnp.array([0.3, 0.7])
    means = jnp.stack([jnp.full(4, -20.0), jnp.full(4, 20.0)])

    def energy(x):
        parts = -jnp.sum((x["x"] - means) ** 2, axis=1) / (2 * widths**2) - 4 * jnp.log(widths)
        return -jax.nn.logsumexp(parts, b=weights)

    shapes = basin_shapes(means, jnp.eye(4) * widths[:, None, None])
    kernel = jumps(adjusted(0.2), shapes, every=6)
    run = cm.sample(energy, init={"x": means[0]}, steps=4000, chains=16, kernel=kernel, progress=False)
    mass, error = run.expectation(lambda x: x["x"][0] < 0, error=True)
    assert float(mass) == pytest.approx(0.3, abs=0.04)
    assert float(error) < 0.02
    alone = cm.sample(energy, init={"x": means[0]}, steps=400, chains=2, kernel=adjusted(0.2), progress=False)
    assert np.all(alone["x"] < 0)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: jumps(cm.sgld(0.1), SHAPES), r"^dynamics=.*adjusted"),
        (lambda: jumps(adjusted(0.1), "two"), r"^shapes='two'.*basin_shapes"),
        (lambda: jumps(adjusted(0.1), SHAPES, every=1), r"^every=1 "),
        (lambda: basin_shapes([[0.0]], [[[1.0]]]), r"^means=\(1, 1\)"),
        (lambda: basin_shapes(MEANS, FACTORS[:2]), r"^factors=\(2, 2, 2\)"),
        (lambda: basin_shapes(MEANS, np.zeros((3, 2, 2))), "^factors=.*inverse"),
        (lambda: basin_shapes(MEANS * np.nan, FACTORS), "^means="),
        (lambda: jumps(adjusted(0.1), SHAPES).init(jnp.zeros(3)), r"^shapes=.*3 numbers"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
