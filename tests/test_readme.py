"""The README's example runs as typed and prints what it says, its commands work, and every file it names is there."""

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = [block for language, block in BLOCKS.findall(README) if language in ("", "sh")]
COMMANDS = sorted({
    re.sub(r"\s+#.*", "", command).strip()
    for command in [*"\n".join(SHELL).splitlines(), *re.findall(r"`([^`\n]+)`", README)]
    if re.match(r"(make|contourmc|pip|source) ", command)
})  # fmt: skip


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


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith("contourmc ")])
def test_commands_of_contourmc_run_as_typed(command, tmp_path):
    """In a folder with the examples, and with the files that the README asks its reader to write. A command that the
    README only names, such as `contourmc resume`, has to exist.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block, name in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", README, re.DOTALL):
        (tmp_path / name).write_text(block)
    if re.fullmatch(r"contourmc [a-z]+", command):
        command += " --help"
    program = Path(sys.executable).parent / "contourmc"
    done = subprocess.run(
        ["bash", "-c", command.replace("contourmc", str(program), 1)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if command.startswith("contourmc sample"):
        assert list(tmp_path.glob("results/energy/report.*"))


@pytest.mark.parametrize("command", [each for each in COMMANDS if not each.startswith("contourmc ")])
def test_other_commands_can_be_run(command):
    """`make stranger` does run those that install: here, what they ask for has to be there."""
    if command.startswith("make "):
        assert subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True).returncode == 0
    elif command.startswith("pip install"):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(re.findall(r"\w+", (re.search(r"\[(.*?)\]", command) or " ")[0])) <= set(extras)
    else:
        assert command == "source .venv/bin/activate"


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_table_is_that_of_the_records():
    """Median and worst error of the mode masses over the problems, and the median of the seconds, as in the gallery."""
    rows = re.findall(r"^\| ([\w ]+) \| ([\d.]+), ([\d.]+) \| ([\d.]+, [\d.]+|–) \| ([\d.]+) \|", README, re.MULTILINE)
    if not rows:
        pytest.skip("the README has no table of the gallery")
    errors, seconds = defaultdict(list), defaultdict(list)
    for line in (ROOT / "results" / "gallery" / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        if (cell["steps"], cell["chains"]) == (30_000, 10):
            high = re.search("50d|100d", cell["problem"]) is not None
            errors[cell["method"], high, cell["problem"]].append(1.0 if cell["error"] is None else cell["error"])
            if cell["seconds"] is not None:
                seconds[cell["method"]].append(cell["seconds"] + (cell["compile_seconds"] or 0.0))
    for method, median, worst, high, second in rows:
        for shown, is_high in ((f"{median}, {worst}", False), (high, True)):
            found = [np.mean(each) for (name, h, _), each in errors.items() if (name, h) == (method, is_high)]
            assert shown == (f"{np.median(found):.3f}, {max(found):.3f}" if found else "–"), (method, is_high)
        assert second == f"{np.median(seconds[method]):.1f}", method
