"""`contourmc doctor`: what is here, and a problem with a known answer."""

import re

import jax
import pytest
from typer.testing import CliRunner

import contourmc as cm
from contourmc._core.versions import versions
from contourmc.cli.doctor import described
from contourmc.cli.main import app


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # or paths are cut into lines

    def doctor():
        result = CliRunner().invoke(app, ["doctor"])
        return result.exit_code, " ".join(result.output.split())

    return doctor


def test_it_says_what_is_here_and_that_the_answer_is_right(call):
    code, output = call()
    assert code == 0, output
    for name, version in versions().items():
        assert f"{name} {version}" in output.replace("│ ", "")
    assert f"contourmc {cm.__version__}" in output.replace("│ ", "")
    assert jax.devices()[0].device_kind in output
    mass = re.search(r"Self-test passed: a mass of (\S+)", output)
    assert mass is not None
    assert float(mass[1]) == pytest.approx(0.6, abs=0.05)


def test_a_wrong_answer_is_told_and_ends_with_status_1(call, monkeypatch):
    """As if the sampler kept to one mode."""
    sample = cm.sample
    monkeypatch.setattr(cm, "sample", lambda energy, **settings: sample(energy, **settings, kernel=cm.sgld(0.1)))
    code, output = call()
    assert code == 1
    assert "Self-test failed." in output
    assert "in a mode where it is 0.6" in output


def test_an_error_is_told_and_ends_with_status_1(call, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no device")

    monkeypatch.setattr(cm, "sample", fail)
    code, output = call()
    assert code == 1
    assert "RuntimeError: no device" in output


def test_precision_and_cache(tmp_path, double_precision):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "program").write_bytes(bytes(2**20))
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        found = described()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert found["precision"] == "float64"
    assert found["compilation cache"] == f"{tmp_path} (1 files, 1.0 MiB)"
