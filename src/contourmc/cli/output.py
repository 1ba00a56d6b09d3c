"""The output folder of a command, and its error messages."""

from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape


def prepare_folder(out: Path, marker: str, force: bool) -> Path:
    """The output folder, created if necessary; an error if it already holds results and --force was not given."""
    if (out / marker).exists() and not force:
        stop(f"{out} already holds results ({marker}); choose another --out, or add --force to replace them")
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".contourmc-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        stop(f"--out {out} cannot be written: {error.strerror or error}")
    return out


def stop(message: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    Console(stderr=True).print(f"[bold red]error:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(2)
