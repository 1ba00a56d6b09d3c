"""Output folders and messages."""

import io
import sys

import pytest
import typer

from contourmc.cli import output
from contourmc.cli.output import output_folder, replace_what_cannot_be_shown, stop, tell_written


def test_messages_are_shown_as_they_are(capsys):
    """Square brackets and colons are no markup: they name an extra to install, or belong to a path."""
    with pytest.raises(typer.Exit):
        stop("install contourmc[networks], see [/home] :x:")
    assert "contourmc[networks], see [/home] :x:" in capsys.readouterr().err


def test_paths_are_shown_as_they_are(tmp_path, capsys):
    tell_written([tmp_path / "a[1]" / ":x:", tmp_path / ("b" * 100)])
    assert capsys.readouterr().out == f"Written: {tmp_path}/a[1]/:x:, {tmp_path}/{'b' * 100}\n"


def test_characters_that_a_terminal_does_not_have_are_replaced(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    replace_what_cannot_be_shown()
    output.console.print("θ ± 1")
    terminal.seek(0)
    assert terminal.read() == "? ? 1\n"


def test_folders_are_created_and_results_are_not_overwritten_by_accident(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    with output_folder(out, "results.json", force=False) as folder:
        assert folder == out
        assert list(out.iterdir()) == []
        (out / "results.json").touch()
    with pytest.raises(typer.Exit), output_folder(out, "results.json", force=False):
        pass
    assert "--force" in capsys.readouterr().err
    with output_folder(out, "results.json", force=True):
        pass
    assert (out / "results.json").exists()


def test_a_folder_that_stays_empty_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    with pytest.raises(typer.Exit), output_folder(tmp_path / "old" / "new" / "folder", "results.json", force=False):
        stop("there are no data")
    assert list(tmp_path.iterdir()) == [tmp_path / "old"]
    assert list((tmp_path / "old").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(typer.Exit), output_folder(tmp_path / "file" / "below", "results.json", force=False):
        pass
    assert "cannot be written" in capsys.readouterr().err


def test_an_interruption_ends_a_command_with_its_own_status(tmp_path, capsys):
    with pytest.raises(typer.Exit) as ended, output_folder(tmp_path / "out", "results.json", force=False):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert "interrupted" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
