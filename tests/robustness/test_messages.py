"""Bad input is answered by a message that names the argument and the remedy."""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

KERNEL = cm.sgld(0.1)


def energy(x):
    return jnp.sum(x**2) / 2


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(init="0.0"), r"^init='0.0'.*floats"),
        (dict(init=["a"]), r"^init\[0\]='a'.*floats"),
        (dict(init=object()), r"^init=<object.*floats"),
        (dict(init=jnp.zeros(0)), r"^init=.*at least one number"),
        (dict(init=3), r"^init=3.*write 0\.0"),
        (dict(seed=1.5), r"^seed=1\.5.*whole number"),
        (dict(seed=None), r"^seed=None.*whole number"),
        (dict(seed=-1), r"^seed=-1.*from 0"),
        (dict(seed=2**64), r"^seed=\d+.*2\*\*64"),
        (dict(average=3), r"^average=\['int'\].*give an Average"),
        (dict(target="x**2"), r"^target='x\*\*2'.*give a function"),
        (dict(target=lambda x: jnp.sqrt(jnp.abs(x))), r"^init='a start of chain 0 where the gradient is not finite'"),
        (dict(kernel=None, steps=1000, target=lambda x: x), r"^target='an energy .*no lowest value.*check its sign"),
    ],
)
def test_every_message_names_the_argument_and_the_remedy(changes, words):
    arguments = dict(target=energy, init=0.0, steps=100, kernel=KERNEL) | changes
    with pytest.raises(ValueError, match=f"(?is){words}"):
        cm.sample(arguments.pop("target"), **arguments)


@pytest.mark.usefixtures("untyped")
def test_numbers_of_other_libraries_are_numbers():
    plain = cm.sample(energy, init=0.0, steps=100, kernel=KERNEL, seed=3)
    same = cm.sample(energy, init=0.0, steps=100, kernel=cm.sgld(jnp.float32(0.1)), seed=np.int64(3))
    np.testing.assert_array_equal(plain.draws, same.draws)
    assert type(same.settings["seed"]) is int


def test_all_bits_of_a_seed_count():
    runs = [cm.sample(energy, init=0.0, steps=100, kernel=KERNEL, seed=seed).draws for seed in (0, 2**32, 2**63)]
    assert not np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[1], runs[2])


def test_a_start_far_away_is_told_to_come_closer():
    with pytest.raises(ValueError, match="start closer"):
        cm.sample(lambda x: 1e4 * jnp.sqrt(1 + x**2), init=1e9, steps=2000)


@pytest.mark.usefixtures("untyped")
def test_a_step_of_ones_own_loop_takes_python_floats():
    import jax

    _, info = KERNEL.step(jax.random.key(0), KERNEL.init(jnp.zeros(())), 0.5, 1.0)
    assert float(info.energy) == 0.5
