"""The README's example runs as typed and prints what it says, and every file it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_typed_and_prints_what_is_shown(capsys):
    """But for digits, which depend on the machine."""
    example, shown = re.findall(r"```python\n(.*?)```.*?```\n(.*?)```", README, re.DOTALL)[0]
    exec(compile(example, "README.md", "exec"), {})
    for text in (shown, capsys.readouterr().out):
        numbers, diagnosis = text.splitlines()
        mean, error, below = map(float, numbers.split())
        assert abs(mean) < 5 * error
        assert below == pytest.approx(0.4, abs=0.05)
        assert diagnosis.startswith("Nothing wrong was found: 8 chains, 80,000 draws")


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
