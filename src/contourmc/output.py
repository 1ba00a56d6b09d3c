"""Where a command writes, and how it ends when it cannot."""

from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape


def prepare_folder(out: Path, marker: str, force: bool) -> Path:
    """The output folder, made if need be; an error if it holds results and --force was not given."""
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
    """End the command with a message."""
    Console(stderr=True).print(f"[bold red]error:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(2)
