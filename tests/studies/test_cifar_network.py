"""ResNet-20 of the CIFAR study: its layers, folded images, and augmentation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from contourmc.studies.cifar.augmentation import Augmentation
from contourmc.studies.cifar.folding import Layout
from contourmc.studies.cifar.network import ImageLikelihood, ResNet
from contourmc.studies.cifar.normalisation import Normalisation
from contourmc.studies.cifar.sets import CIFAR100

RANDOM = np.random.default_rng(0)
IMAGES = jnp.asarray(RANDOM.integers(0, 256, (8, 32, 32, 3)), jnp.uint8)
LABELS = jnp.arange(8)


def test_the_network_has_the_size_of_resnet_20():
    params, _ = jax.eval_shape(ImageLikelihood(ResNet()).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 269_722
    params, _ = jax.eval_shape(ImageLikelihood(ResNet(classes=100)).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 269_722 + 90 * 65


def test_folded_images_give_the_same_function():
    """Likelihoods, gradients and statistics agree to rounding: some 1e-6 after eight layers in float32."""
    plain, folded = (ImageLikelihood(ResNet(1, jnp.float32, folded)) for folded in (False, True))
    params, statistics = jax.jit(plain.init)(jax.random.key(0))

    def evaluate_both(likelihood):
        def total(params):
            log_likelihoods, new = likelihood(params, statistics, (IMAGES, LABELS))
            return jnp.sum(log_likelihoods), new

        return jax.jit(jax.value_and_grad(total, has_aux=True))(params)

    results = evaluate_both(plain), evaluate_both(folded)
    for one, two in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, two, atol=3e-5 * np.abs(one).max())
    logits = [jax.jit(likelihood.predict)(params, statistics, IMAGES) for likelihood in (plain, folded)]
    np.testing.assert_allclose(*logits, atol=1e-4)


@pytest.mark.parametrize("rectified", [False, True])
def test_normalisation_is_that_of_flax(rectified):
    """Values, gradients and running statistics, to rounding; Flax differentiates the formula by itself."""
    x = 3 + 2 * jax.random.normal(jax.random.key(0), (6, 8, 8, 16))
    wanted = jax.random.normal(jax.random.key(1), x.shape)
    ours = Normalisation(Layout.PLAIN, True, jnp.float32, rectified)
    flax = nn.BatchNorm(use_running_average=False, momentum=0.9)
    learnt = {"scale": jnp.linspace(0.5, 2.0, 16), "bias": jnp.linspace(-1.0, 1.0, 16)}

    def evaluated(module, finish):
        def total(params, x):
            start = module.init(jax.random.key(0), x)["batch_stats"]
            y, new = module.apply({"params": params, "batch_stats": start}, x, mutable=["batch_stats"])
            return jnp.sum(wanted * finish(y)), new["batch_stats"]

        return jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))(learnt, x)

    results = evaluated(ours, lambda y: y), evaluated(flax, nn.relu if rectified else lambda y: y)
    for one, two in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5 * np.abs(two).max())


def test_augmentation_shifts_mirrors_and_erases():
    image = np.zeros((32, 32, 3), np.uint8)
    image[10:20, 5] = 200  # a line left of the middle
    batch = jnp.asarray(np.repeat(image[None], 500, axis=0)), np.zeros(500)

    def augmented(**switches):
        choice = Augmentation(**{"crop": False, "flip": False, "erase": False} | switches)
        return np.asarray(choice(jax.random.key(0), batch)[0])

    np.testing.assert_array_equal(augmented(), batch[0])
    flipped = augmented(flip=True)[:, 10, 26, 0] == 200
    assert 200 < flipped.sum() < 300  # half of 500, within 4.5 standard deviations
    np.testing.assert_array_equal(augmented(flip=True)[flipped][:, :, ::-1], batch[0][flipped])
    rows, columns = (np.argmax(augmented(crop=True)[..., 0].max(axis=axis), axis=1) for axis in (2, 1))
    assert set(rows) == set(range(6, 15))
    assert set(columns) == set(range(1, 10))
    blank = jnp.zeros((2000, 32, 32, 3), jnp.uint8), np.zeros(2000)
    share = (np.asarray(Augmentation(False, False, True)(jax.random.key(0), blank)[0])[..., 0] > 0).mean(axis=(1, 2))
    assert 900 < (share > 0).sum() < 1100  # half of 2,000, within 4.5 standard deviations
    assert share[share > 0].min() > 0.01
    assert share.max() < 0.45
    assert abs(share[share > 0].mean() - 0.21) < 0.02  # the mean of 2% to 40%
    painted = np.asarray(Augmentation(False, False, True, CIFAR100.mean)(jax.random.key(0), blank)[0])
    assert set(map(tuple, painted.reshape(-1, 3))) == {(0, 0, 0), (129, 124, 112)}
