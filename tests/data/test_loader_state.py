"""Where a loader was: by its own state if it has one, else by skipping."""

import numpy as np
import pytest

from contourmc.data.batch_stream import BatchStream
from contourmc.data.loader_state import EVERY

LENGTH = 50  # batches in an epoch


class Counting:
    """Batches 0, 1, …, 49; counts those that are read."""

    def __init__(self):
        self.read = 0

    def __iter__(self):
        for number in range(LENGTH):
            self.read += 1
            yield np.full(2, number, np.float32)


class Dictionary(Counting):
    """With a state as torchdata's loaders have it."""

    place = 0

    def __iter__(self):
        while self.place < LENGTH:
            self.read += 1
            self.place += 1
            yield np.full(2, self.place - 1, np.float32)
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class GrainLike(Counting):
    """With a state of its iterators, as Grain's have it."""

    def __iter__(self):
        return GrainIterator(self)


class GrainIterator:
    def __init__(self, loader):
        self.loader, self.place = loader, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.place == LENGTH:
            raise StopIteration
        self.place += 1
        self.loader.read += 1
        return np.full(2, self.place - 1, np.float32)

    def get_state(self):
        return {"place": self.place}

    def set_state(self, state):
        self.place = state["place"]


@pytest.mark.parametrize("kind", [Counting, Dictionary, GrainLike])
@pytest.mark.parametrize("step", [1, 31, 32, 33, 49, 50, 51, 120])
def test_a_stream_goes_on_after_any_step(kind, step):
    """Beyond an epoch, too."""
    first = BatchStream(kind, 2, lambda batch: None)
    with first.session():
        for number in range(1, step + 1):
            assert first.get(np.array(number))[0] == (number - 1) % LENGTH
        state = first.state(step)
    loaders = []

    def make():
        loaders.append(kind())
        return loaders[-1]

    second = BatchStream(make, 2, lambda batch: None)
    with second.session():
        before = sum(loader.read for loader in loaders)
        second.seek(step, state)
        for number in range(step + 1, step + 60):
            assert second.get(np.array(number))[0] == (number - 1) % LENGTH
        read = sum(loader.read for loader in loaders) - before
    skipped = step if kind is Counting else step % EVERY
    assert read <= 59 + skipped + 4  # a few are read ahead
