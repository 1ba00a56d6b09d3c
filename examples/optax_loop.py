"""A training loop with Optax, on handwritten digits: contour SGHMC in the place of the optimiser."""

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import contourmc as cm
import contourmc.optax as samplers

x, x_test, y, y_test = map(jnp.asarray, train_test_split(*load_digits(return_X_y=True), random_state=0))


def logits(params, x):
    return jax.nn.relu(x / 16 @ params["hidden"] + params["bias"]) @ params["output"]


def mean_loss(params, rows):
    return optax.softmax_cross_entropy_with_integer_labels(logits(params, x[rows]), y[rows]).mean()


bins = cm.Partition(low=60.0, width=10.0, bins=20)  # of U = N·loss + (N·weight_decay/2)·‖params‖²
tx = samplers.csghmc(0.05, bins, data_size=len(x), temperature=0.02, weight_decay=1e-4)


def step(carry, rows):
    params, state = carry
    loss, gradients = jax.value_and_grad(mean_loss)(params, rows)
    updates, state = tx.update(gradients, state, params, value=loss)
    return (optax.apply_updates(params, updates), state), (state.info, params)  # both of the point before the step


key = jax.random.key(0)
params = {"hidden": jax.random.normal(key, (64, 50)) / 8, "bias": jnp.zeros(50), "output": jnp.zeros((50, 10))}
rows = jax.random.randint(key, (4000, 100), 0, len(x))
draws = jax.tree.map(lambda leaf: leaf[1000::30], jax.lax.scan(step, (params, tx.init(params)), rows)[1])
average = cm.ClassificationAverage(logits, x_test, y_test, classes=10, effective=0.5)  # half of the models must count
sums, _ = jax.lax.scan(lambda sums, draw: (average.add(sums, *draw, None), None), average.init(), draws)
print(f"together the models are right on {(accuracy := average.of_one_chain(sums).accuracy):.1%} of the test set")
