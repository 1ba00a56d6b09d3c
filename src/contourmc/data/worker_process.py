"""What evaluates an external energy: a loop that a process or a thread runs until its connection is closed.

As a process this file is run by its path and imports NumPy and the standard library alone: a worker that does not need
JAX must not wait for it. A position is an array of its numbers here, and a template says what the function gets: a
nest of dictionaries, lists and tuples, in which whole numbers stand for the leaves.
"""

import math
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple


class Work(NamedTuple):
    """function: from a position, and perhaps a random generator, to its energy and gradient, or to its energy.
    template: of a position.  shapes: of its leaves.
    gradient: whether the function gives the gradient too.
    """

    function: Callable[..., Any]
    template: Any
    shapes: tuple[tuple[int, ...], ...]
    gradient: bool


def serve(connection: Any, work: Work) -> None:
    """Answer requests, each an array of positions and one of seeds or None.

    An answer is an array with the energy of each position, followed by its gradient, and the seconds that this took;
    or, if the function fails, the number of the position and the traceback.
    """
    while True:
        try:
            positions, seeds = connection.recv()
        except (EOFError, OSError):
            return
        answer = _answer(work, positions, seeds)
        try:
            connection.send(answer)
        except OSError:  # nobody waits for it any more
            return


def _answer(work: Work, positions: Any, seeds: Any) -> tuple[Any, float] | tuple[int, str]:
    import numpy as np

    began, answers, number = time.perf_counter(), [], 0
    ends = list(accumulate((math.prod(shape) for shape in work.shapes), initial=0))
    try:
        for number, vector in enumerate(positions):
            random = () if seeds is None else (np.random.default_rng(seeds[number]),)
            leaves = [vector[ends[i] : ends[i + 1]].reshape(shape)[()] for i, shape in enumerate(work.shapes)]
            answers.append(_numbers(work, work.function(_filled(work.template, leaves), *random)))
        return np.stack(answers), time.perf_counter() - began
    except BaseException:  # also sys.exit()
        return number, traceback.format_exc()


def _numbers(work: Work, returned: Any) -> Any:
    """What the function returned, as one array: the energy, followed by the gradient if it gives that."""
    import numpy as np

    if not work.gradient:
        return _energy(returned)
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise ValueError(f"the function must return (energy, gradient), and it returned {_shown(returned)}")
    energy, gradient = returned
    return np.concatenate([_energy(energy), *map(np.ravel, _matched(work, work.template, gradient, ""))])


def _filled(template: Any, leaves: list[Any]) -> Any:
    """The template with its leaves."""
    if isinstance(template, int):
        return leaves[template]
    if isinstance(template, dict):
        return {name: _filled(part, leaves) for name, part in template.items()}
    if template is None:
        return None
    parts = [_filled(part, leaves) for part in template]
    return type(template)(*parts) if hasattr(template, "_fields") else type(template)(parts)


def _energy(value: Any) -> Any:
    import numpy as np

    energy = np.asarray(value, np.float64)
    if energy.shape != ():
        raise ValueError(f"an energy must be one float, and the function returned {_shown(value)}")
    return energy.reshape(1)


def _matched(work: Work, template: Any, gradient: Any, path: str) -> list[Any]:
    """The leaves of a gradient, in the order of the template's; raises unless it is made like the position."""
    import numpy as np

    if isinstance(template, int):
        leaf, shape = np.asarray(gradient, np.float64), work.shapes[template]
        if leaf.shape != shape:
            raise ValueError(f"gradient{path} has the shape {leaf.shape}, and the position there {shape}")
        return [leaf]
    if template is None:
        return []
    if isinstance(template, dict):
        fits = isinstance(gradient, Mapping) and set(gradient) == set(template)
        names = sorted(template, key=lambda name: _first(template[name]))
    else:
        fits = isinstance(gradient, (tuple, list)) and len(gradient) == len(template)
        names = range(len(template))
    if not fits:
        raise ValueError(f"gradient{path} must be made like the position there, and it is {_shown(gradient)}")
    return [leaf for name in names for leaf in _matched(work, template[name], gradient[name], f"{path}[{name!r}]")]


def _first(template: Any) -> int:
    """The number of the first leaf; parts without any come first."""
    if template is None or isinstance(template, int):
        return -1 if template is None else template
    parts = template.values() if isinstance(template, dict) else template
    return min((_first(part) for part in parts), default=-1)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text[:200]}…" if len(text) > 200 else text


def main() -> None:
    """Serve as a process, with the number of the inherited connection as its argument."""
    from multiprocessing.connection import Connection

    for number in (signal.SIGINT, signal.SIGTERM):  # the run decides when its workers end
        signal.signal(number, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    connection = Connection(descriptor)
    sys.path[:], content = connection.recv()
    try:
        function, *others = pickle.loads(content)
        work = Work(pickle.loads(function), *others)
    except BaseException:
        connection.send((-1, traceback.format_exc()))
        return
    serve(connection, work)


if __name__ == "__main__":
    main()
