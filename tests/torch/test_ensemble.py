"""The ensemble of draws: weights, predictions, batch norm, and Lightning's callback."""

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.info import Info

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from contourmc.torch import CSGLD, SGLD, Ensemble, ensemble_callback  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_classifier.py"


def linear(value):
    model = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(value)
    return model


def collect(ensemble, model, values, log_weights):
    for value, log_weight in zip(values, log_weights, strict=True):
        with torch.no_grad():
            model.weight.fill_(value)
        ensemble.add(log_weight=log_weight)
    return ensemble


@pytest.mark.parametrize("shift", [0.0, -900.0, 900.0])
@pytest.mark.parametrize("running", [False, True])
def test_the_prediction_is_the_weighted_mean(shift, running):
    """Weights may be e^±900, which no float holds."""
    model, x = linear(0.0), torch.ones(2, 1)
    values, weights = [1.0, 3.0, -2.0], np.array([0.2, 0.5, 0.3])
    ensemble = Ensemble(model, inputs=x if running else None)
    collect(ensemble, model, values, np.log(weights) + shift)
    expected = torch.full((2, 1), float(np.dot(values, weights)))
    torch.testing.assert_close(ensemble.predict() if running else ensemble.predict(x), expected, atol=1e-4, rtol=1e-4)
    assert ensemble.effective_models == pytest.approx(1 / np.sum(weights**2), rel=1e-3)
    np.testing.assert_allclose(ensemble.weights, weights, rtol=1e-6)
    assert len(ensemble.states) == (0 if running else 3)


def test_tempering_makes_weights_equal_and_batches_change_nothing():
    model, x = linear(0.0), torch.arange(5.0)[:, None]
    ensemble = Ensemble(model, tempering=0.0, batch_size=2, transform=torch.square)
    collect(ensemble, model, [1.0, 3.0], [0.0, 50.0])
    assert ensemble.effective_models == pytest.approx(2)
    torch.testing.assert_close(ensemble.predict(x), 5 * x**2)


@pytest.mark.parametrize("running", [False, True])
def test_without_settings_at_least_half_of_the_draws_count_and_it_is_said(running):
    """By the power that the averages of JAX take for the same weights, so that all three have one average."""
    model, x = linear(0.0), torch.ones(1, 1)
    random = np.random.default_rng(0)
    values, log_weights = random.normal(size=60), (100 * random.normal(size=60)).astype(np.float32)
    ensemble = collect(Ensemble(model, inputs=x if running else None), model, values, log_weights.tolist())
    with pytest.warns(UserWarning, match=r"weights of the 60 models .* tempered.*effective=0.5.*tempering=1"):
        found = ensemble.predict() if running else ensemble.predict(x)

    average = cm.RegressionAverage(lambda value, x: (value * x, x), jnp.ones(1))
    zero = jnp.zeros(())

    def add(sums, draw):
        return average.add(sums, Info(zero, jnp.zeros((), jnp.int32), zero, draw[1]), draw[0], None), None

    sums = jax.lax.scan(add, average.init(), (jnp.asarray(values, jnp.float32), jnp.asarray(log_weights)))[0]
    expected = average.finish(jax.tree.map(lambda leaf: leaf[None], sums))
    assert ensemble.tempering == expected.tempering < 1
    assert ensemble.effective_models == pytest.approx(float(expected.effective_models[0]), rel=1e-3)
    assert 30 <= ensemble.effective_models < 60
    assert float(found) == pytest.approx(float(expected.mean[0]), abs=1e-5)
    assert f"power of {ensemble.tempering:.2g})" in repr(ensemble)
    np.testing.assert_allclose(ensemble.log_weights, log_weights)  # as they are
    settings = dict(inputs=x if running else None)
    as_they_are = collect(Ensemble(model, tempering=1.0, **settings), model, values, log_weights.tolist())
    heaviest = float(values[np.argmax(log_weights)])
    assert float(as_they_are.predict() if running else as_they_are.predict(x)) == pytest.approx(heaviest, abs=0.05)
    asked = collect(Ensemble(model, effective=0.9, **settings), model, values, log_weights.tolist())
    asked.predict() if running else asked.predict(x)  # no warning, which would be an error
    assert asked.effective_models >= 54


def test_draws_are_copies_and_the_model_is_left_alone():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    ensemble = Ensemble(model, device="cpu")
    outputs, x = [], torch.randn(6, 3)
    for _ in range(3):
        with torch.no_grad():
            model[0].weight.add_(1.0)
        model.train()
        model(torch.randn(20, 3) + 2)  # changes the statistics of batch norm
        ensemble.add()
        model.eval()
        outputs.append(model(x).detach())
    model[2].train()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    torch.testing.assert_close(ensemble.predict(x), torch.stack(outputs).mean(0))
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert model[2].training
    assert not model[1].training
    means = [state["1.running_mean"] for state in ensemble.states]
    assert not torch.equal(means[0], means[1])


class Tied(torch.nn.Module):
    """As GPT-2: the weights of the first layer are those of the last, one tensor with two names."""

    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(self.words(x))


@pytest.mark.parametrize("running", [False, True])
def test_tied_weights_predict(running, tmp_path):
    model, x = Tied(), torch.tensor([1, 4])
    optimiser = SGLD(model.parameters(), lr=0.5, data_size=10)
    ensemble, outputs = Ensemble(model, inputs=x if running else None), []
    for _ in range(3):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        ensemble.add(optimiser, loss)
        outputs.append(model(x).detach())
        optimiser.step(loss)
    torch.save(ensemble.state_dict(), tmp_path / "ensemble.pt")
    loaded = Ensemble(model, inputs=x if running else None)
    loaded.load_state_dict(torch.load(tmp_path / "ensemble.pt", weights_only=True))
    for each in (ensemble, loaded):
        torch.testing.assert_close(each.predict() if running else each.predict(x), torch.stack(outputs).mean(0))
    for state in ensemble.states:
        assert state["words.weight"] is state["head.weight"]  # kept once
        model.load_state_dict(state)


@pytest.mark.parametrize("running", [False, True])
def test_an_ensemble_is_saved_and_loaded(running, tmp_path):
    model, x = linear(0.0), torch.ones(2, 1)
    make = lambda: Ensemble(model, inputs=x if running else None)  # noqa: E731
    ensemble = collect(make(), model, [1.0, 2.0], [0.0, 1.0])
    torch.save(ensemble.state_dict(), tmp_path / "ensemble.pt")
    loaded = make()
    loaded.load_state_dict(torch.load(tmp_path / "ensemble.pt", weights_only=True))
    for each in (ensemble, loaded):
        collect(each, model, [5.0], [2.0])
    given = () if running else (x,)
    assert torch.equal(ensemble.predict(*given), loaded.predict(*given))
    if running:
        with pytest.raises(ValueError, match="its means are tempered in another way"):
            Ensemble(model, inputs=x, tempering=1.0).load_state_dict(ensemble.state_dict())


def test_the_weight_is_that_of_the_point_where_the_loss_was_computed():
    """What `add` finds before a step is what the step then reports."""
    model = linear(2.0)
    partition = cm.Partition(low=1.0, width=1.0, bins=10)
    optimiser = CSGLD(model.parameters(), lr=0.5, data_size=10, partition=partition, weight_decay=0.1)
    ensemble, reported = Ensemble(model), []
    for _ in range(30):
        optimiser.zero_grad()
        loss = (model(torch.ones(1, 1)) - 1).square().mean()
        loss.backward()
        ensemble.add(optimiser, loss)
        optimiser.step(loss)
        reported.append(float(optimiser.log_weight))
    np.testing.assert_array_equal(ensemble.log_weights, reported)
    assert len(set(reported)) > 10


@pytest.mark.parametrize("closure", [False, True])
def test_a_draw_after_the_step_is_refused(closure):
    """Its loss belongs to where the step began: the weight would be that of another point."""
    model = linear(2.0)
    settings = dict(lr=0.5, data_size=10, partition=cm.Partition(low=1.0, width=1.0, bins=10))
    optimiser, ensemble = CSGLD(model.parameters(), **settings), Ensemble(model)

    def backward():
        optimiser.zero_grad()
        loss = (model(torch.ones(1, 1)) - 1).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        loss = optimiser.step(backward if closure else backward())
        with pytest.raises(ValueError, match=r"^loss=.*parameters have moved.*before opt\.step"):
            ensemble.add(optimiser, loss)
        ensemble.add(optimiser, backward())
        ensemble.add(log_weight=optimiser.weigh(loss))  # as somebody who knows the weight may say
    assert len(ensemble) == 4


def test_what_cannot_be():
    model = linear(1.0)
    with pytest.raises(ValueError, match="add draws before predicting"):
        Ensemble(model).predict(torch.ones(1, 1))
    with pytest.raises(ValueError, match=r"tempering=2\.0 is not possible"):
        Ensemble(model, tempering=2.0)
    with pytest.raises(ValueError, match=r"effective=0\.0 is not possible"):
        Ensemble(model, effective=0.0)
    with pytest.raises(ValueError, match="leave one of the two out"):
        Ensemble(model, tempering=0.5, effective=0.5)
    with pytest.raises(ValueError, match=r"torch\.nn\.Module that is sampled"):
        Ensemble(lambda x: x)
    with pytest.raises(ValueError, match="log_weight=nan is not possible"):
        Ensemble(model).add(log_weight=float("nan"))
    with pytest.raises(ValueError, match="an optimiser of contourmc"):
        Ensemble(model).add(torch.optim.SGD(model.parameters(), lr=0.1), torch.tensor(1.0))
    with pytest.raises(ValueError, match="the loss at the present parameters"):
        Ensemble(model).add(SGLD(model.parameters(), lr=0.1, data_size=10))
    another = linear(2.0)
    optimiser, loss = SGLD(another.parameters(), lr=0.1, data_size=10), another(torch.ones(1, 1)).square().mean()
    loss.backward()
    with pytest.raises(ValueError, match="sampler='SGLD' is not possible: it samples no parameter of this ensemble"):
        Ensemble(model).add(optimiser, loss)
    ensemble = collect(Ensemble(model, inputs=torch.ones(1, 1)), model, [1.0], [0.0])
    with pytest.raises(ValueError, match="only at the inputs it was made for"):
        ensemble.predict(torch.ones(2, 1))


@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning"])
def test_lightning_collects_before_every_step(package, monkeypatch):
    """With a stand-in for Lightning, which calls its hooks in this order."""
    stub = ModuleType(package)
    stub.__spec__ = SimpleNamespace(name=package)
    holder = ModuleType("lightning.pytorch") if package == "lightning" else stub
    holder.Callback = type("Callback", (), {})
    for each in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    monkeypatch.setitem(sys.modules, package, stub)
    monkeypatch.setitem(sys.modules, holder.__name__, holder)
    monkeypatch.setattr("contourmc.torch.lightning.find_spec", lambda name: stub if name == package else None)

    model = linear(1.0)
    optimiser, ensemble = SGLD(model.parameters(), lr=0.1, data_size=10), Ensemble(model)
    callback = ensemble_callback(ensemble, begin=2, every=3)
    trainer, seen = SimpleNamespace(accumulate_grad_batches=1), []
    for step in range(10):

        def closure(step=step):
            optimiser.zero_grad()
            loss = model(torch.ones(1, 1)).square().mean()
            callback.on_before_backward(trainer, model, loss)
            loss.backward()
            if step in (2, 5, 8):
                seen.append(model.weight.detach().clone())
            callback.on_before_optimizer_step(trainer, model, optimiser)
            return loss

        optimiser.step(closure=closure)
    assert len(ensemble) == 3
    for state, weight in zip(ensemble.states, seen, strict=True):
        assert torch.equal(state["weight"], weight)
    again = ensemble_callback(Ensemble(model))
    again.load_state_dict(callback.state_dict())
    assert len(again.ensemble) == 3


def test_without_lightning_the_callback_says_so(monkeypatch):
    monkeypatch.setattr("contourmc.torch.lightning.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install lightning"):
        ensemble_callback(Ensemble(linear(1.0)))


def test_the_example_classifies_digits(capsys):
    """Nine in ten would be poor: the test of Optax's loop on the same digits asks for 0.96."""
    pytest.importorskip("sklearn")
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    names = runpy.run_path(str(EXAMPLE))
    assert names["accuracy"] > 0.95
    assert names["ensemble"].effective_models > 20
    assert names["opt"].theta.max() / names["opt"].theta.min() > 2
    assert "equally weighted" in capsys.readouterr().out
