"""Where commands and studies print to."""

from rich.console import Console


def make_console(*, stderr: bool = False) -> Console:
    """A console that shows text as it is: paths and messages may hold [brackets] and :words: that Rich would change."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
