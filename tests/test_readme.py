"""The README's example runs as typed, and every file it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_typed(capsys):
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    exec(compile(example, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    mean, error, below = (float(word) for word in shown.splitlines()[0].split())
    assert abs(mean) < 5 * error
    assert below == pytest.approx(0.4, abs=0.05)
    assert "looks good" in shown


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
