"""How many steps a call of the compiled program makes.

It follows the clock, of several processes that of the first, but no result depends on it.
"""

import time

import jax
import numpy as np

from contourmc._core.processes import from_first, several
from contourmc.engine.plan import Plan

# How often the progress bar moves and Ctrl-C takes effect. A GPU, which idles meanwhile, and several processes, which
# wait for one another, are given 5 times as long; processes that are slow to reach even more, up to the most.
SEGMENT_SECONDS = 0.1
MOST_SECONDS = 5.0


class Pace:
    """The length of the next segment, from how long the segments before it took."""

    def __init__(self, plan: Plan):
        self._plan, self._count = plan, least_steps(plan)
        self._exchange = 0.0  # seconds that an exchange between processes takes

    def segment_end(self, step: int, until: int) -> int:
        """The last step of the segment that begins after `step`, at most `until`."""
        plan, block, count = self._plan, self._plan.build.block, self._count
        last = step + min(count, plan.segment_steps)
        if count >= block:
            last = last // block * block  # whole blocks: no noise is drawn twice
        mark = (step // plan.stretch + 1) * plan.stretch
        last = min(last, mark, until)
        whole = last // block * block
        return whole if whole > step else last  # a part of a block is a separate segment

    def measured(self, steps: int, seconds: float) -> None:
        """Take note of a segment of so many steps.

        The next one has fewer steps only if this one took five times as long as it should: a part of a block may be
        slow because it draws the noise of the whole block, and then more steps cost hardly more.
        """
        wanted = SEGMENT_SECONDS if jax.default_backend() == "cpu" and not several() else 5 * SEGMENT_SECONDS
        wanted = min(max(wanted, 100 * self._exchange), MOST_SECONDS)
        count = int(wanted * steps / seconds)
        if seconds < 5 * wanted:
            count = max(count, 2 * self._count)
        began = time.perf_counter()
        self._count = from_first(lambda: int(np.clip(count, least_steps(self._plan), 8 * self._count)))
        self._exchange = time.perf_counter() - began


def least_steps(plan: Plan) -> int:
    """The fewest steps worth a segment: a whole block where steps are cheap, or its noise would be drawn again."""
    return plan.build.block if plan.build.fuse else 1
