"""What commands leave: an output folder, and messages."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

import typer
from rich.text import Text

from contourmc._core.console import make_console
from contourmc.cli.interruption import STATUS

console = make_console()


def replace_what_cannot_be_shown() -> None:
    """Print a question mark for a character that the terminal does not have, instead of failing after the work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def output_folder(out: Path, marker: str, force: bool) -> Iterator[Path]:
    """The output folder of a command, created if necessary, and removed again if the command leaves it empty.

    An error if it already holds results and --force was not given. Ctrl-C, unless the work deals with it, ends the
    command.
    """
    if (out / marker).exists() and not force:
        stop(f"{out} already holds results ({marker}); choose another --out, or add --force to replace them")
    created = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        _make(out)
        yield out
    except KeyboardInterrupt:
        stop_interrupted("not everything was written")
    finally:
        for folder in created:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".contourmc-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        stop(f"--out {out} cannot be written: {error.strerror or error}")


def tell_written(files: Sequence[Path]) -> None:
    """Name the files that a command has written."""
    console.print(f"Written: {', '.join(map(str, files))}", soft_wrap=True)


@contextmanager
def printing(remark: str = "") -> Iterator[None]:
    """A context that prints to standard output; if that cannot be written, such as to a full disk, the command ends.

    remark: what else the message is to say.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError), open(os.devnull, "wb") as nowhere:  # or Python fails once more at its end
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        stop(f"standard output cannot be written: {error.strerror or error}.{remark}")


def stop(message: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    make_console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    raise typer.Exit(2)


def stop_interrupted(message: str) -> NoReturn:
    """Say what came of a command that Ctrl-C ended, and exit."""
    tell_interrupted(message)
    raise typer.Exit(STATUS)


def tell_interrupted(message: str) -> None:
    """Say what came of a command that Ctrl-C ended."""
    make_console(stderr=True).print(Text.assemble(("interrupted: ", "bold yellow"), message), soft_wrap=True)
