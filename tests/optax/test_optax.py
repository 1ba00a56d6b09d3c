"""The Optax door: what it is in known cases, what it composes with, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import contourmc as cm
import contourmc.optax as samplers

PARTITION = cm.Partition(low=1.5, width=0.75, bins=20)
SIZE = 100
PARAMS = {"a": jnp.array([0.5, -1.0]), "b": jnp.array(0.3)}


def mean_loss(params):
    """1/N of the energy of two unit Gaussians 10 apart along the first coordinate, of mass 0.3 and 0.7."""
    x = params["a"][0]
    pair = jnp.logaddexp(jnp.log(0.3) - (x + 5) ** 2 / 2, jnp.log(0.7) - (x - 5) ** 2 / 2)
    return (params["a"][1] ** 2 / 2 + params["b"] ** 2 / 2 - pair) / SIZE


def trained(tx, steps, params=PARAMS):
    """The parameters before each of some steps, the states after them, and the last parameters."""

    def step(carry, _):
        params, state = carry
        loss, gradients = jax.value_and_grad(mean_loss)(params)
        updates, new = tx.update(gradients, state, params, value=loss)
        return (optax.apply_updates(params, updates), new), (params, new)

    (last, _), (before, states) = jax.jit(lambda carry: jax.lax.scan(step, carry, length=steps))(
        (params, tx.init(params))
    )
    return before, states, last


DECAY = 0.01
COSINE = optax.cosine_decay_schedule(1.0, 50)


@pytest.mark.parametrize(
    ("cold", "plain"),
    [
        (samplers.sgld(1.0, data_size=SIZE, temperature=0.0, weight_decay=DECAY), optax.sgd(1.0)),
        (samplers.sghmc(1.0, data_size=SIZE, temperature=0.0, weight_decay=DECAY), optax.sgd(1.0, momentum=0.9)),
        (samplers.sgld(COSINE, data_size=SIZE, temperature=0.0, weight_decay=DECAY), optax.sgd(COSINE)),
    ],
    ids=["sgd", "momentum", "schedule"],
)
def test_at_temperature_0_it_is_optaxs_own(cold, plain):
    """The same parameters after 50 steps, to a few roundings of float32: ours are scaled by N and back."""
    last, expected = trained(cold, 50)[2], trained(optax.chain(optax.add_decayed_weights(DECAY), plain), 50)[2]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), last, expected)


def test_the_masses_of_two_modes():
    """The mass of the left mode is 0.3. In 60,000 steps a run crosses about 400 times and has an error of 0.075
    (standard deviation over ten seeds); that of the mean of ten is 0.024, and 0.1 is four of these. SGLD without the
    contour stays where it is.
    """

    def mass(seed):
        tx = samplers.csgld(0.1 * SIZE, PARTITION, data_size=SIZE, omega=cm.Polynomial(10.0, 0.6, 100.0), seed=seed)
        before, states, _ = trained(tx, 60_000)
        return jax.nn.softmax(states.info.log_weight[10_000:]) @ (before["a"][10_000:, 0] < 0)

    assert float(jnp.mean(jax.vmap(mass)(jnp.arange(10)))) == pytest.approx(0.3, abs=0.1)
    alone = trained(samplers.sgld(0.1 * SIZE, data_size=SIZE), 60_000, PARAMS | {"a": jnp.array([5.0, 0.0])})[0]
    assert float(jnp.mean(alone["a"][:, 0] < 0)) < 0.01


def test_the_state_is_made_of_arrays_and_goes_on_where_it_was():
    tx = samplers.csghmc(1.0, PARTITION, data_size=SIZE, weight_decay=DECAY)
    state, params = tx.init(PARAMS), PARAMS
    assert all(
        isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.number) for leaf in jax.tree.leaves(state)
    )
    for _ in range(2):
        params, state = _one_step(tx, params, state)
    copy = jax.tree.unflatten(
        jax.tree.structure(state), [jnp.asarray(np.asarray(leaf)) for leaf in jax.tree.leaves(state)]
    )
    first, second = _one_step(tx, params, state), _one_step(tx, params, copy)
    jax.tree.map(np.testing.assert_array_equal, first, second)
    other = samplers.csghmc(1.0, PARTITION, data_size=SIZE, seed=1)
    assert not np.allclose(
        _one_step(other, PARAMS, other.init(PARAMS))[0]["b"], _one_step(tx, PARAMS, tx.init(PARAMS))[0]["b"]
    )


def _one_step(tx, params, state):
    loss, gradients = jax.value_and_grad(mean_loss)(params)
    updates, state = tx.update(gradients, state, params, value=loss)
    return optax.apply_updates(params, updates), state


def test_it_composes_with_chain():
    """Behind a transformation that doubles gradients, and another that halves them, nothing changes."""
    kernel = samplers.csghmc(1.0, PARTITION, data_size=SIZE)
    chained = trained(optax.chain(optax.scale(2.0), optax.scale(0.5), kernel), 20)[2]
    jax.tree.map(np.testing.assert_array_equal, chained, trained(kernel, 20)[2])


def test_it_composes_with_masked():
    """Parameters that are left out keep their own optimiser, and get no noise."""
    mask = {"a": True, "b": False}
    tx = optax.chain(
        optax.masked(samplers.csgld(1.0, PARTITION, data_size=SIZE), mask),
        optax.masked(optax.set_to_zero(), {"a": False, "b": True}),
    )
    last = trained(tx, 20)[2]
    assert last["b"] == PARAMS["b"]
    assert np.all(last["a"] != PARAMS["a"])


def test_it_composes_with_inject_hyperparams():
    """Settings are numbers in the state, which may be changed between steps: at temperature 0 the noise is gone."""
    tx = optax.inject_hyperparams(samplers.csghmc)(1.0, PARTITION, data_size=SIZE)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        trained(tx, 1)[2],
        trained(samplers.csghmc(1.0, PARTITION, data_size=SIZE), 1)[2],
    )
    state = tx.init(PARAMS)
    state.hyperparams["temperature"], state.hyperparams["zeta"] = jnp.array(0.0), jnp.array(0.0)
    step = jax.jit(lambda params, state: _one_step(tx, params, state))
    expected = trained(optax.sgd(1.0, momentum=0.9), 1)[2]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), step(PARAMS, state)[0], expected)


def test_it_composes_with_multi_steps():
    """Two half batches are one whole batch; the parameters come by Optax's name, as weight decay needs them."""
    gradients = [{"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}, {"a": jnp.array([3.0, -2.0]), "b": jnp.array(1.0)}]
    mean = jax.tree.map(lambda *each: sum(each) / 2, *gradients)
    kernel = samplers.csghmc(1.0, PARTITION, data_size=SIZE, temperature=0.0, weight_decay=DECAY)
    tx = optax.MultiSteps(kernel, 2)
    state = tx.init(PARAMS)
    for each in gradients:
        updates, state = tx.update(each, state, PARAMS, value=jnp.array(0.1))
    expected, _ = kernel.update(mean, kernel.init(PARAMS), params=PARAMS, value=jnp.array(0.1))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), updates, expected)


def test_a_schedule_may_begin_at_0():
    """Its first step stays where it is, and the second is that of SGD."""
    tx = samplers.sgld(optax.linear_schedule(0.0, 1.0, 2), data_size=SIZE, temperature=0.0)
    first, state = tx.update(PARAMS, tx.init(PARAMS), PARAMS)
    second, _ = tx.update(PARAMS, state, PARAMS)
    jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf, 0), first)
    jax.tree.map(lambda leaf, x: np.testing.assert_allclose(leaf, -0.5 * x, rtol=1e-6), second, PARAMS)


def test_bins_that_find_themselves_compose_with_inject_hyperparams():
    """They choose ζ and ω, which must not become numbers of the state, where changing them would do nothing."""
    tx = optax.inject_hyperparams(samplers.csghmc, static_args=("zeta", "omega"))(1.0, "auto", data_size=SIZE)
    state = tx.init(PARAMS)
    assert not {"zeta", "omega"} & set(state.hyperparams)
    state.hyperparams["temperature"] = jnp.array(0.0)
    step = jax.jit(lambda params, state: _one_step(tx, params, state))
    expected = trained(optax.sgd(1.0, momentum=0.9), 1)[2]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), step(PARAMS, state)[0], expected)
    with pytest.raises(ValueError, match=r'zeta and omega=.*static_args=\("zeta", "omega"\)'):
        optax.inject_hyperparams(samplers.csghmc)(1.0, "auto", data_size=SIZE).init(PARAMS)


def test_parameters_of_few_bits_keep_their_noise():
    """Of 3 × 1,000 numbers around 1 with a standard deviation of 0.02, where a velocity of 0.0004 is a tenth of what
    bfloat16 can tell apart. They begin at 1, and forget it in 200 steps. The spread of 1,000 numbers at 30 times has an
    error of about 1%, and rounding to the grid of bfloat16 adds 2%. Without the copies bfloat16 had 4% of the spread.
    """
    kinds, deviation = (jnp.bfloat16, jnp.float16, jnp.float32), 0.02
    params = {kind.__name__: jnp.ones(1000, kind) for kind in kinds}
    tx = samplers.sghmc(deviation**2 * 0.0005 * SIZE, data_size=SIZE)

    def step(carry, _):
        params, state = carry
        gradients = jax.tree.map(lambda x: (x - 1) / (SIZE * deviation**2), params)
        updates, state = tx.update(gradients, state, params)
        return (optax.apply_updates(params, updates), state), jax.tree.map(lambda x: x.astype(jnp.float32), params)

    (last, state), path = jax.jit(lambda carry: jax.lax.scan(step, carry, length=2500))((params, tx.init(params)))
    for kind in kinds:
        assert last[kind.__name__].dtype == kind
        assert float(path[kind.__name__][1000::50].std()) == pytest.approx(deviation, rel=0.05)
    assert state.copies["float32"] is None
    np.testing.assert_array_equal(state.copies["bfloat16"].astype(jnp.bfloat16), last["bfloat16"])
    with pytest.raises(ValueError, match=r"params=None.*less than 32 bits.*update\(…, params\)"):
        tx.update(params, tx.init(params))


def test_copies_follow_parameters_that_somebody_else_changes():
    tx, moved = samplers.sgld(1.0, data_size=SIZE, temperature=0.0), {"a": jnp.array([2.0, 3.0], jnp.bfloat16)}
    state = tx.init({"a": jnp.ones(2, jnp.bfloat16)})
    updates, state = tx.update({"a": jnp.full(2, 0.001, jnp.bfloat16)}, state, moved)
    np.testing.assert_array_equal(optax.apply_updates(moved, updates)["a"], moved["a"])  # too little to be seen yet
    np.testing.assert_allclose(state.copies["a"], [1.999, 2.999], rtol=1e-5)


def test_flax_train_state():
    """`apply_gradients` passes no loss on: plain samplers do without, contour kernels need the two lines below."""
    train_state = pytest.importorskip("flax.training.train_state")
    tx = samplers.csghmc(1.0, PARTITION, data_size=SIZE)
    state = train_state.TrainState.create(apply_fn=None, params=PARAMS, tx=tx)
    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    updates, opt_state = state.tx.update(gradients, state.opt_state, state.params, value=loss)
    state = state.replace(step=1, params=optax.apply_updates(state.params, updates), opt_state=opt_state)
    jax.tree.map(np.testing.assert_array_equal, state.params, _one_step(tx, PARAMS, tx.init(PARAMS))[0])
    with pytest.raises(ValueError, match=r"value=None is not possible: a contour kernel needs the loss"):
        state.apply_gradients(grads=gradients)
    plain = train_state.TrainState.create(apply_fn=None, params=PARAMS, tx=samplers.sghmc(1.0, data_size=SIZE))
    assert plain.apply_gradients(grads=gradients).step == 1


def test_flax_nnx_optimizer():
    """A linear model of 20 points of a line: contour SGHMC at a low temperature fits it to 0.05."""
    nnx = pytest.importorskip("flax.nnx")
    x = jnp.linspace(-1, 1, 20)[:, None]
    model = nnx.Linear(1, 1, rngs=nnx.Rngs(0))
    partition = cm.Partition(low=0.1, width=0.2, bins=30)
    tx = samplers.csghmc(0.05, partition, data_size=20, temperature=1e-4)
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - 2 * x) ** 2))(model)
        optimizer.update(model, gradients, value=loss)

    for _ in range(300):
        step(model, optimizer)
    assert float(model.kernel[...].squeeze()) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: samplers.sgld(0.0, data_size=10), "learning_rate=0.0"),
        (lambda: samplers.sgld(0.1, data_size=0), "data_size=0"),
        (lambda: samplers.sgld(0.1, data_size=10, weight_decay=-1.0), "weight_decay=-1.0"),
        (lambda: samplers.sghmc(0.1, data_size=10, momentum=1.0), "momentum=1.0"),
        (lambda: samplers.sghmc(0.1, data_size=10, temperature=-1.0), "temperature=-1.0"),
        (lambda: samplers.sgld(lambda count: -1.0, data_size=10), "step_size at step 1"),
        (lambda: samplers.sampler(cm.adjusted(0.1), data_size=10), "kernel="),
        (lambda: samplers.sgld(0.1, data_size=10).init({"a": jnp.arange(3)}), "parameters must be floats"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_impossible_settings_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "a contour kernel needs the loss"),
        (jnp.ones(3), "give the mean loss of the batch, one float"),
        (jnp.array(2), "give the mean loss of the batch, one float"),
        (jnp.array(jnp.nan), "the loss is not finite"),
    ],
)
def test_an_impossible_loss_is_named(value, message):
    tx = samplers.csgld(1.0, PARTITION, data_size=SIZE)
    with pytest.raises(ValueError, match=message):
        tx.update(PARAMS, tx.init(PARAMS), PARAMS, value=value)


def test_weight_decay_needs_the_parameters():
    tx = samplers.sgld(1.0, data_size=SIZE, weight_decay=DECAY)
    with pytest.raises(ValueError, match="params=None is not possible: weight decay needs them"):
        tx.update(PARAMS, tx.init(PARAMS))


def test_in_a_compiled_step_a_loss_that_is_not_finite_shows():
    tx = samplers.csgld(1.0, PARTITION, data_size=SIZE)
    updates, _ = jax.jit(tx.update)(PARAMS, tx.init(PARAMS), PARAMS, value=jnp.nan)
    assert np.isnan(updates["b"])
