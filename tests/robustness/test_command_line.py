"""The command line under Ctrl-C, in a locale that has no Greek letters, and with files of users that misbehave."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module

import pytest
from typer.testing import CliRunner

from contourmc.cli import interruption, runs
from contourmc.cli.main import app
from contourmc.engine.kernel_run import KernelRun
from contourmc.studies import algorithm_one
from contourmc.studies.catalogue import SIMULATIONS

COMMAND = [sys.executable, "-c", "from contourmc.cli import main; main()"]
# Prints a line, again after each interrupt, and goes on.
STUBBORN = f"""
import runpy, time
runpy.run_path({interruption.__file__!r})["end_at_second_interrupt"]()
while True:
    try:
        print("ready", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        pass
"""


# The command line with a study that has nothing to compute.
TINY = r"""
import sys, types
from contourmc.studies import base, catalogue
tiny = sys.modules["tiny"] = types.ModuleType("tiny")
tiny.measure = lambda options, record: record.update(theta=1.0)
tiny.conclude = lambda record: base.Outcome([base.Claim("key", "\u03b8", "\u03b8 = 1 \u00b1 0.1", None)])
catalogue.SIMULATIONS = (base.Study("tiny", "\u03b8", "\u03b8", "tiny", base.Size(1, 1), base.Size(1, 1)),)
from contourmc.cli import main
main()
"""


# The command line with a run that is there at once.
AT_ONCE = """
from types import SimpleNamespace
import numpy as np
import contourmc
from contourmc.cli import results
run = SimpleNamespace(energies=np.zeros((1, 1)), summary=lambda: None, interrupted=False)
contourmc.sample = lambda *_, **__: run
results.write_results = lambda samples, found, folder, *_: [folder / "report.html"]
results.digest = lambda *_: "what was found"
from contourmc.cli import main
main()
"""

TIMEOUT = 120  # seconds; of a process that does not end


@contextmanager
def started(*words):
    """A process, which does not outlive the test."""
    # A job in the background of a shell ignores Ctrl-C, and so would all that it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def call(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture
def interrupt_call(monkeypatch):
    """Ctrl-C at the start of the n-th call that advances a run; the reference algorithm counts for the first alone."""

    def interrupt(number):
        advance, calls = KernelRun.advance_to, []

        def interrupted(self, *arguments):
            calls.append(arguments)
            if len(calls) >= number:
                raise KeyboardInterrupt
            advance(self, *arguments)

        monkeypatch.setattr(KernelRun, "advance_to", interrupted)
        if number == 1:
            monkeypatch.setattr(algorithm_one, "_program", interrupted)

    return interrupt


def test_one_interrupt_ends_a_command_that_would_go_on_for_hours(tmp_path):
    with started(*COMMAND, "demo", "--steps", "1000000000", "--out", str(tmp_path / "out")) as process:
        assert "contourmc" in process.stdout.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert out == ""
    assert not (tmp_path / "out").exists()


# The command, with something that happens when it begins to import JAX.
IMPORTING = """
import os, signal, sys
import contourmc_command

class Importing:
    def find_spec(self, name, *_):
        if name == "jax":
            {}

sys.meta_path.insert(0, Importing())
contourmc_command.main()
"""


def test_an_interrupt_during_the_imports_ends_the_command():
    """Some of them would turn it into another error."""
    code = IMPORTING.format(
        "\n            ".join(["try:", "    signal.raise_signal(signal.SIGINT)", "except BaseException:", "    pass"])
    )
    with started(sys.executable, "-c", code, "--help") as process:
        out, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, errors) == (130, "", "interrupted: nothing was done\n")


def test_an_interrupt_before_the_work_ends_the_command(monkeypatch):
    """Typer tells it from other errors by its status alone."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "_place_of", interrupted)
    told, ended, main = [], [], import_module("contourmc.cli.main")
    monkeypatch.setattr(main, "end_at_second_interrupt", lambda: None)
    monkeypatch.setattr(main, "tell_interrupted", told.append)
    monkeypatch.setattr(main, "end_at_once", ended.append)
    monkeypatch.setattr(sys, "argv", ["contourmc", "show", "folder"])
    with pytest.raises(SystemExit):
        main.main()
    assert (told, ended) == (["nothing was written"], [130])


def test_without_standard_streams_no_file_takes_their_place():
    """Else what is printed would go into it."""
    code = IMPORTING.format("os._exit(100 + os.open(os.devnull, os.O_RDONLY))")
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code], check=False)
    assert done.returncode > 102


def test_a_thread_of_the_users_file_does_not_keep_the_command_alive(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\nx = 1 / 0")
    with started(*COMMAND, "sample", f"{file}:energy", "--init", "0.0", "--out", str(tmp_path / "out")) as process:
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 2
    assert "ZeroDivisionError" in errors


def test_a_second_interrupt_ends_the_process():
    with started(sys.executable, "-c", STUBBORN) as process:
        for _ in range(2):
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=TIMEOUT) == 130


@pytest.mark.parametrize("name", [study.name for study in SIMULATIONS])
def test_a_study_does_not_take_a_run_that_was_cut_for_a_whole_one(name, interrupt_call, tmp_path):
    """The first run of the study is interrupted before its first step."""
    interrupt_call(1)
    result = call("reproduce", name, "--quick", "--steps", 1000, "--seeds", 2, "--out", tmp_path / "out")
    assert result.exit_code == 130, result.output
    assert "interrupted" in result.output
    assert "agrees" not in result.output
    assert not list((tmp_path / "out").glob("*.png"))


def test_an_interrupted_study_leaves_what_it_has_measured(interrupt_call, tmp_path):
    """Nothing is judged, and there is no report."""
    interrupt_call(2)
    result = call("reproduce", "multimodal-2d", "--steps", 1000, "--seeds", 2, "--out", tmp_path)
    assert result.exit_code == 130, result.output
    assert "our measurement" not in result.output
    numbers = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert numbers["about"]["interrupted"] is True
    assert numbers.keys() == {"about", "papers_settings"}
    assert numbers["papers_settings"].keys() == {"SGLD"}
    assert not (tmp_path / "report.md").exists()


def test_an_interrupted_demo_leaves_the_run_that_was_finished(interrupt_call, tmp_path):
    interrupt_call(2)
    result = call("demo", "--steps", 1000, "--chains", 2, "--out", tmp_path)
    assert result.exit_code == 130, result.output
    assert "seconds" not in result.output  # no table
    numbers = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert numbers["interrupted"] is True
    assert "sgld" in numbers
    assert "csgld" not in numbers


def test_a_locale_without_greek_letters_loses_nothing(tmp_path):
    """They are printed as question marks, and stand in the report."""
    environment = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    words = ["reproduce", "tiny", "--out", str(tmp_path)]
    shown = subprocess.run([sys.executable, "-c", TINY, *words], env=environment, capture_output=True, check=False)
    assert shown.returncode == 0, shown.stderr.decode("ascii")
    assert b"? = 1 ? 0.1" in shown.stdout
    assert "θ = 1 ± 0.1" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; sys.exit('enough')", "sys.exit('enough')"),
        ("def energy(x):\n raise SystemExit", "sys.exit(None)"),
        ("raise ValueError('[bold] :x:')", "[bold] :x:"),
    ],
)
def test_files_that_misbehave_are_named_as_they_are(text, words, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    file = tmp_path / ":x:.py"
    file.write_text(text)
    result = call("sample", f"{file}:energy", "--init", "0.0", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.output
    assert f"{file}:energy" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_standard_output_that_is_full_ends_a_command_with_a_message(tmp_path):
    file, out = tmp_path / "mine.py", tmp_path / "out"
    file.write_text("energy = abs")
    words = [sys.executable, "-c", AT_ONCE, "sample", f"{file}:energy", "--init", "0.0", "--out", str(out)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    message = "standard output cannot be written: No space left on device. The results are in"
    assert done.stderr.split() == ["error:", *message.split(), str(out / "report.html")]
