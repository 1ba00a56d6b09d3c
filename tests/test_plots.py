"""Every picture can be drawn and labels its axes."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import contourmc as cm
from contourmc import plots
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture()
PARTITION = cm.Partition(1.5, 1.0, 50)


@pytest.fixture(scope="module")
def run():
    return cm.sample(MIXTURE.energy, init=0.0, steps=20_000, kernel=cm.csgld(0.1, PARTITION), chains=2)


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
