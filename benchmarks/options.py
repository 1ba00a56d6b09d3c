"""Options of commands that name some of a table."""

from collections.abc import Iterable

import typer


def choose(option: str, given: str | None, known: Iterable[str]) -> tuple[str, ...]:
    """The names in `given`, with commas between, in the order of those that are known; all of them if None."""
    known = tuple(known)
    names = known if given is None else tuple(name.strip() for name in given.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(known)}", param_hint=f"--{option}")
    return tuple(name for name in known if name in names)
