"""Lines on pages that the build of the site does not execute: each page's run in order, after what they assume."""

import re
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import contourmc as cm

DOCS = Path(__file__).parent.parent.parent / "docs"
MOST_STEPS = 10_000  # of a run: what is tested is that the lines can be called

COMMON = """
import jax, jax.numpy as jnp, numpy as np, contourmc as cm

def energy(x):
    return jnp.sum(8 * (x**2 - 1) ** 2 + x)
"""
RUN = "run = cm.sample(energy, init=jnp.ones(2), steps=10_000)"
NETWORK = """
images, test_images = np.random.default_rng(0).normal(size=(2, 1000, 3)).astype(np.float32)
labels, test_labels = np.argmax(images, -1), np.argmax(test_images, -1)
params = {"weight": 0.1 * jnp.ones((3, 10)), "bias": jnp.zeros(10)}

def apply(params, x):
    return x @ params["weight"] + params["bias"]

def mean_loss(params, batch):
    x, y = batch
    return -jnp.mean(jax.nn.log_softmax(apply(params, x))[jnp.arange(len(y)), y])
"""
# What the lines of a page take for granted.
ASSUMED = {
    "blackjax": "key, x0 = jax.random.key(0), jnp.ones(2)\ndef log_density(x):\n    return -energy(x)",
    "checkpoints": "",
    "external": "energy = lambda x: float(np.sum(x**2) / 2)",
    "models": """
import numpyro, numpyro.distributions as dist
data = np.array([0.1, 0.3])

def model(data, flag):
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(0.0, scale), obs=data)

def energy(x):
    return x["scale"] + jnp.sum(x["weights"] ** 2) + jnp.cos(x["angle"]) + x["rate"] + jnp.sum(x["cuts"] ** 2)
""",
    "networks": NETWORK,
    "optax": f"{NETWORK}\nimport optax\ntrain = images\nbatch = images, labels",
    "pytorch": """
import torch
from torch.nn.functional import cross_entropy
model, train, test_x = torch.nn.Linear(3, 10), range(1000), torch.zeros(5, 3)
batches = [(torch.randn(50, 3), torch.randint(10, (50,))) for _ in range(3)]
""",
    "report": RUN,
    "scaling": "start = jnp.ones(2)",
    "temperatures": "",
    "tuning": RUN,
}
GAP, FILLING = "    ...\n", "    energy, gradient = np.sum(x**2) / 2, x\n"  # in the function of docs/external.md
NEEDS = {"pytorch": "torch"}
ELSEWHERE = ("pm.Model", "state.replace")  # PyMC and Flax's TrainState: tests/pymc, tests/doors


def snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_every_page_with_lines_is_tested():
    assert {page.stem for page in DOCS.glob("**/*.md") if snippets(page)} == {*ASSUMED}


@pytest.mark.parametrize("page", ASSUMED)
def test_the_lines_of_a_page_run(page, tmp_path, monkeypatch):
    if page in NEEDS and find_spec(NEEDS[page]) is None:
        pytest.skip(f"{NEEDS[page]} is not installed")
    monkeypatch.chdir(tmp_path)
    sample, last = cm.sample, {}

    def shorter(target, *rest, **given):
        """`...` on a page stands for what an earlier run was given."""
        given = last | given if rest == (...,) else given
        last.update({name: given[name] for name in ("init", "steps", "learning_rate") if name in given})
        return sample(target, **given | {"steps": min(given["steps"], MOST_STEPS)})

    monkeypatch.setattr(cm, "sample", shorter)
    monkeypatch.setattr(cm, "distributed", lambda: None)  # it would have to come first in the process
    names = {"__name__": "__main__"}
    exec(COMMON + ASSUMED[page], names)
    for lines in snippets(DOCS / f"{page}.md"):
        if not any(word in lines for word in ELSEWHERE):
            exec(compile(lines.replace(GAP, FILLING), f"docs/{page}.md", "exec"), names)
    plt.close("all")
