"""The `contourmc` command."""

from contourmc.cli.main import main

__all__ = ["main"]
