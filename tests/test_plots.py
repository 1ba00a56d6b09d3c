"""Every picture can be drawn and labels its axes."""

from dataclasses import replace

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba

from contourmc import plots
from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.partition import Partition
from contourmc.flattening.summary import Flattening
from contourmc.predictions.classification import ClassificationPrediction
from contourmc.predictions.prediction import Points
from contourmc.predictions.regression import RegressionPrediction
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture()
PARTITION = Partition(1.5, 1.0, 50)


@pytest.fixture
def run() -> Samples:
    """Two chains of exact draws, as if a contour kernel had made them."""
    draws = np.asarray(MIXTURE.draw(2000)).reshape(2, -1)
    energies = np.asarray(MIXTURE.energy(jnp.asarray(draws)), float)
    trajectory = Trajectory(
        steps=np.array([1000]),
        log_weights=np.zeros((2, 1)),
        means=draws.mean(axis=1, keepdims=True),
        squares=np.mean(draws**2, axis=1, keepdims=True),
        centre=np.zeros(2),
        theta=np.tile(MIXTURE.theta(PARTITION), (2, 1, 1)),
        visits=np.full((2, 1, PARTITION.bins), 20),
    )
    return Samples(
        draws=draws,
        energies=energies,
        log_weights=np.zeros(draws.shape),
        multipliers=np.linspace(-1, 2, 2000).reshape(2, -1),
        steps=1 + np.arange(1000),
        trajectory=trajectory,
        settings={},
        seconds=0.0,
        flattening=Flattening(PARTITION, 0.25, fixed=False),
    )


def test_pictures_have_labels_and_legends(run):
    x = np.linspace(-10, 8, 100)
    theta = MIXTURE.theta(PARTITION)
    drawn = [
        lambda ax: plots.plot_landscape(MIXTURE.energy, x, theta, PARTITION, zetas=(0.5, 1), ax=ax),
        lambda ax: plots.plot_theta(run, theta, ax=ax),
        lambda ax: plots.plot_energies(run, ax=ax),
        lambda ax: plots.plot_trace(run, ax=ax),
        lambda ax: plots.plot_marginal(run, density=(x, np.exp(-x)), ax=ax),
        lambda ax: plots.plot_density(run, lambda x: x, lambda x: x**2, ax=ax),
    ]
    figure, axes = plt.subplots(2, 3)
    for draw, ax in zip(drawn, axes.flat, strict=True):
        assert draw(ax) is ax
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert ax.get_title()
    figure.canvas.draw()
    plt.close(figure)


def test_temperatures_have_four_panels(run):
    assert run.flattening is not None
    fixed = replace(run, flattening=replace(run.flattening, temperature=1.0))
    axes = plots.plot_temperatures(fixed, [0.9, 1.0, 1.05])
    for ax in axes:
        assert ax.get_xlabel() == "temperature T"
        assert ax.get_ylabel()
        assert ax.get_title()
    axes[0].figure.canvas.draw()
    plt.close(axes[0].figure)
    with pytest.raises(ValueError, match="four axes"):
        plots.plot_temperatures(fixed, [1.0], axes=axes[:2])


@pytest.fixture
def nested(run) -> Samples:
    """The same draws as one number of a dictionary, beside an array of two."""
    draws = {"a": np.stack([run.draws, -run.draws], axis=-1), "b": run.draws**2}
    return replace(run, draws=draws)


def test_axes_have_the_names_of_coordinates(run, nested):
    figure, axes = plt.subplots(2, 3)
    plots.plot_marginal(run, ax=axes[0, 0])
    plots.plot_marginal(nested, ax=axes[0, 1])
    plots.plot_marginal(nested, "b", ax=axes[0, 2])
    plots.plot_density(nested, ax=axes[1, 0])
    plots.plot_density(nested, "b", square_of_a, ax=axes[1, 1])
    plots.plot_density(nested, lambda x: x["a"][0], "a[1]", ax=axes[1, 2])
    assert [ax.get_xlabel() for ax in axes.flat] == ["x", "a[0]", "b", "a[0]", "b", "function of the position"]
    assert [ax.get_ylabel() for ax in axes[1]] == ["a[1]", "square_of_a", "a[1]"]
    plt.close(figure)


def square_of_a(position):
    return position["a"][0] ** 2


def test_a_named_coordinate_is_the_one_that_is_drawn(nested):
    figure, ax = plt.subplots()
    plots.plot_marginal(nested, "b", bins=5, ax=ax)
    heights, edges = nested.histogram(lambda x: x["b"], 5)
    (drawn,) = ax.patches
    np.testing.assert_allclose(drawn.get_data().values, heights)  # type: ignore[attr-defined]
    np.testing.assert_allclose(drawn.get_data().edges, edges)  # type: ignore[attr-defined]
    plt.close(figure)


def test_what_is_no_number_is_refused_by_name(run, nested):
    for draw, words in (
        (lambda: plots.plot_marginal(nested, "c"), r"coordinate='c'.*there is a\[0\], a\[1\], b"),
        (lambda: plots.plot_density(run), "coordinate=None.*there is x:"),
        (lambda: plots.plot_marginal(nested, lambda x: x["a"]), "to one number"),
    ):
        with pytest.raises(ValueError, match=words):
            draw()
    plt.close("all")


def test_every_move_with_a_negative_multiplier_is_red(run):
    """However small it is: where energies are flattened well, all are near 0."""
    figure, ax = plt.subplots()
    plots.plot_trace(replace(run, multipliers=np.tile([-1e-3, 1e-3, 1e-3, 1.0], (2, 250))), ax=ax)
    colours = {tuple(colour) for colour in ax.collections[0].get_facecolors()}  # type: ignore[attr-defined]
    assert colours == {to_rgba(plots.RED), to_rgba(plots.BLUE)}
    assert [text.get_text() for text in ax.get_legend().texts] == ["drift uphill, 25%", "downhill, 75%"]  # type: ignore[union-attr]
    plt.close(figure)


def test_energies_below_zero_are_in_the_picture(run):
    figure, ax = plt.subplots()
    energies = run.energies - 100
    plots.plot_trace(replace(run, energies=energies), ax=ax)
    low, high = ax.get_ylim()
    assert low < energies[0].min() < np.quantile(energies[0], 0.999) < high < 0
    plt.close(figure)


def test_flattening_lowers_the_barrier():
    """The paper's figure 1a: the barrier of about 12 falls with ζ; at ζ = 1 a few units are left."""
    x, energy, _ = MIXTURE.grid(20_001)
    between = (x > -6) & (x < 4)

    def barrier(energies):
        return energies[between].max() - energies.min()

    heights = [
        barrier(plots.flattened_energy(energy, MIXTURE.theta(PARTITION), PARTITION, zeta, "centred"))
        for zeta in (0.0, 0.5, 0.75)
    ]
    assert heights[0] == pytest.approx(barrier(energy), abs=1e-3)
    assert heights[0] > 11 > heights[1] > heights[2]
    assert heights[2] < 4


POINTS = Points(*[np.ones(1)] * 4)


def drawn(draw):
    """The curve of the model average, its label, and the axis."""
    figure, ax = plt.subplots()
    assert draw(ax) is ax
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_title()
    figure.canvas.draw()
    plt.close(figure)
    (curve,) = (line for line in ax.lines if str(line.get_label()).startswith("model average"))
    return np.transpose(curve.get_data()), curve.get_label(), ax


def test_reliability_shows_the_bins_by_hand():
    """Confidence 0.6 for 8 inputs of which 4 are right, 0.95 for 2 that are: ECE 0.8·0.1 + 0.2·0.05 = 0.09."""
    first = np.array([0.6] * 8 + [0.95] * 2)
    labels = np.array([0] * 4 + [1] * 4 + [0] * 2)
    means = dict(probabilities=np.stack([first, 1 - first], axis=1)[None], entropy=np.zeros((1, 10)))
    prediction = ClassificationPrediction(means, labels, np.ones(1), 1, POINTS, np.ones(1))
    points, label, ax = drawn(lambda ax: plots.plot_reliability(prediction, bins=10, ax=ax))
    np.testing.assert_allclose(points, [[0.6, 0.5], [0.95, 1.0]])
    assert "ECE 0.090" in label
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in ax.patches]
    np.testing.assert_allclose(bars, [(0.6, 0.1, 0.8), (0.9, 0.1, 0.2)])
    band = ax.collections[0].get_paths()[0].vertices  # type: ignore[index]
    reach = 1.96 * np.sqrt(0.6 * 0.4 / 8)
    np.testing.assert_allclose(band[np.isclose(band[:, 0], 0.6), 1].min(), 0.6 - reach)


def test_calibration_shows_the_coverage():
    """Targets spread evenly over the predictive distribution give the diagonal; all at its median give 1."""
    for below, expected in ((np.arange(0.0005, 1, 0.001), lambda p: p), (np.full(1000, 0.5), np.ones_like)):
        means = dict(below=below[None], noise=np.ones((1, 1000)))
        prediction = RegressionPrediction(means, np.zeros(1000), np.ones(1), 1, POINTS, np.ones(1))
        points, label, _ = drawn(lambda ax, prediction=prediction: plots.plot_calibration(prediction, ax=ax))
        np.testing.assert_allclose(points[:, 1], expected(points[:, 0]), atol=0.002)
        assert ("mean gap 0.5" in label) == (below[0] == 0.5)
