"""The README's example runs as typed and prints what it says, its commands run, and every file it names is there."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
PROGRAMS = "make contourmc pip source git python python3 conda uv curl docker"
COMMANDS = {
    re.sub(r"\s+#.*", "", command).strip()
    for command in [
        *"".join(block for language, block in BLOCKS if language == "sh").splitlines(),
        *(code for code in re.findall(r"`([^`\n]+)`", README) if code.split()[0] in PROGRAMS.split() and " " in code),
    ]
}
# Which command is run where. All are, as they stand in the README: here; by .ci/run, which calls what takes minutes and
# could not call itself; or before a release, by `make docs-check`, which opens what it has built in a browser.
# `make stranger` runs those that set up a fresh clone, with a clock.
OF_CONTOURMC = sorted(command for command in COMMANDS if command.startswith("contourmc "))
BY_CI, DOCS = ("make test", "make test-doors"), "make docs"
ACTIVATE, DEMO, INSTALL = "source .venv/bin/activate", "make demo", "pip install -e '.[all]'"
ENVIRONMENT = Path(sys.prefix)


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


def test_every_command_is_run_somewhere():
    """One that is new in the README needs a test below, or a line in .ci/run."""
    assert {*OF_CONTOURMC, *BY_CI, DOCS, ACTIVATE, DEMO, INSTALL} == COMMANDS


def done(command: str, place: Path, **environment: str) -> str:
    """What a command prints, run in a folder by the shell that README.md is written for."""
    result = subprocess.run(
        ["bash", "-c", command], cwd=place, capture_output=True, text=True, env=os.environ | environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("command", OF_CONTOURMC)
def test_commands_of_contourmc_run_as_typed(command, tmp_path):
    """In an environment that was activated as the README says, with the files that it asks its reader to write."""
    if not (ENVIRONMENT / "bin" / "activate").exists():
        pytest.skip("the tests do not run in a virtual environment")
    (tmp_path / ".venv").symlink_to(ENVIRONMENT)
    for block, name in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", README, re.DOTALL):
        (tmp_path / name).write_text(block)
    shown = done(f"{ACTIVATE} && {command} && command -v contourmc", tmp_path)
    assert Path(shown.splitlines()[-1]).resolve() == (ENVIRONMENT / "bin" / "contourmc").resolve()
    if command.startswith("contourmc sample"):
        assert list(tmp_path.glob("results/energy/report.*"))


def test_the_demo_is_made(tmp_path):
    """By the environment of the tests, which is not set up again."""
    here = f"BIN={Path(sys.executable).parent} OUT={tmp_path} --old-file=.venv/.ready"
    assert "Nothing wrong was found" in done(f"{DEMO} {here}", ROOT)
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_pip_installs_it_into_an_environment_of_ones_own(tmp_path):
    """What it depends on is taken from the environment of the tests, and need not be loaded again."""
    venv.create(tmp_path, with_pip=True)
    (packages,) = tmp_path.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib"))
    own = dict(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", PYTHONPATH="")
    try:
        done(INSTALL, ROOT, **own)
    except AssertionError as error:
        if "No matching distribution found for hatchling" in str(error):
            pytest.skip("pip cannot load what builds the package: there is no package index")
        raise
    shown = done("command -v contourmc && python -c 'import contourmc; print(contourmc.__file__)'", tmp_path, **own)
    assert shown.splitlines() == [str(tmp_path / "bin" / "contourmc"), str(ROOT / "src" / "contourmc" / "__init__.py")]


@pytest.mark.parametrize("command", BY_CI)
def test_what_takes_minutes_is_run_by_ci(command):
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()
    assert done(f"{command} --dry-run", ROOT)


def test_the_site_is_built_before_it_is_checked():
    assert "sphinx" in done("make docs-check --dry-run", ROOT)
    assert "docs-check" in (ROOT / "CONTRIBUTING.md").read_text().split("## Releasing")[1]


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_table_is_that_of_the_records():
    """Median and worst error of the mode masses over the problems, and the medians of both times."""
    row = r"^\| ([\w ]+) \| ([\d.]+), ([\d.]+) \| ([\d.]+, [\d.]+|–) \| ([\d.]+) \| ([\d.]+) \|"
    rows = re.findall(row, README, re.MULTILINE)
    if not rows:
        pytest.skip("the README has no table of the gallery")
    errors = defaultdict(list)
    run, first = defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list))
    for line in (ROOT / "results" / "gallery" / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        if (cell["steps"], cell["chains"]) == (30_000, 10):
            high = re.search("50d|100d", cell["problem"]) is not None
            errors[cell["method"], high, cell["problem"]].append(1.0 if cell["error"] is None else cell["error"])
            if cell["seconds"] is not None:
                run[cell["method"]][cell["problem"]].append(cell["seconds"])
                first[cell["method"]][cell["problem"]].append(cell["seconds"] + cell["compile_seconds"])
    calls = [json.loads(line) for line in (ROOT / "results/gallery/first_calls.jsonl").read_text().splitlines()]
    for method in {call["method"] for call in calls}:
        first[method] = {call["problem"]: [call["seconds"]] for call in calls if call["method"] == method}
    for method, median, worst, high, *seconds in rows:
        for shown, is_high in ((f"{median}, {worst}", False), (high, True)):
            found = [np.mean(each) for (name, h, _), each in errors.items() if (name, h) == (method, is_high)]
            assert shown == (f"{np.median(found):.3f}, {max(found):.3f}" if found else "–"), (method, is_high)
        for shown, times in zip(seconds, (run[method], first[method]), strict=True):
            second = np.median([np.mean(each) for each in times.values()])
            assert float(shown) == float(f"{second:.2g}" if second < 100 else f"{second:.0f}"), method
