"""The state of a user's loader, where it has one: where it is in the data, and in its shuffling."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

EVERY = 32  # batches between two looks at the state, which may cost time


class LoaderState(NamedTuple):
    """batches: how many batches had been read.  state: of the loader then."""

    batches: int
    state: Any


def state_of(loader: Iterable[Any], iterator: Iterator[Any]) -> Any:
    """The state of an iterator as Grain's, or of a loader as torchdata's; None for one that has none."""
    if hasattr(iterator, "get_state") and hasattr(iterator, "set_state"):
        return iterator.get_state()  # type: ignore[attr-defined]
    if hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict"):
        return loader.state_dict()  # type: ignore[attr-defined]
    return None


def iterate_from(loader: Iterable[Any], state: Any) -> Iterator[Any]:
    """An iterator that goes on where the loader was when it had this state; from the beginning if it is None."""
    if state is not None and hasattr(loader, "load_state_dict"):
        loader.load_state_dict(state)  # type: ignore[attr-defined]
    iterator = iter(loader)
    if state is not None and hasattr(iterator, "set_state"):
        iterator.set_state(state)  # type: ignore[attr-defined]
    return iterator
