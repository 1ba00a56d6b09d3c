"""Output folders and error messages."""

import pytest
import typer

from contourmc.cli.output import prepare_folder, stop


def test_messages_are_shown_as_they_are(capsys):
    """Square brackets are no markup: they name an extra to install, or belong to a path."""
    with pytest.raises(typer.Exit):
        stop("install contourmc[networks], see [/home]")
    assert "contourmc[networks], see [/home]" in capsys.readouterr().err


def test_folders_are_created_and_results_are_not_overwritten_by_accident(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert prepare_folder(out, "results.json", force=False) == out
    assert list(out.iterdir()) == []
    (out / "results.json").touch()
    with pytest.raises(typer.Exit):
        prepare_folder(out, "results.json", force=False)
    assert "--force" in capsys.readouterr().err
    assert prepare_folder(out, "results.json", force=True) == out
    assert (out / "results.json").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(typer.Exit):
        prepare_folder(tmp_path / "file" / "below", "results.json", force=False)
    assert "cannot be written" in capsys.readouterr().err
