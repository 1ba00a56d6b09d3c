"""What must be the same when a run is resumed, as plain data, and what differs, in words."""

import re
from typing import Any

import jax

Identity = dict[str, Any]


def plain(thing: Any) -> Any:
    """An identity as JSON gives it back, and without addresses in memory, which differ between processes."""
    if isinstance(thing, dict):
        return {str(name): plain(value) for name, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [*map(plain, thing)]
    return re.sub(r" at 0x[0-9a-fA-F]+", "", thing) if isinstance(thing, str) else thing


def differences(before: Identity, now: Identity) -> list[str]:
    """In words, by names such as `kernel.step_size`; empty if both are the same."""
    old, new = _flat(before), _flat(now)
    return [
        f"{name} was {_shown(old.get(name))} and is {_shown(new.get(name))} now"
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _flat(identity: Identity) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(identity, is_leaf=lambda node: node is None)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
