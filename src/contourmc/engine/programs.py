"""The compiled programs of a run: one for each group of chains, with what they take besides these."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from contourmc._core import mesh
from contourmc._core.processes import largest
from contourmc._core.pytrees import as_arguments
from contourmc.data.data_error import ElsewhereError, HostError
from contourmc.engine.loop import Segment, Span, compile_segment
from contourmc.engine.plan import Plan
from contourmc.engine.state import Chain, RunState
from contourmc.kernels.base import Kernel
from contourmc.predictions.average import Average
from contourmc.targets.base import Target


class Programs:
    """Compiled when they are first needed."""

    def __init__(self, target: Target, kernel: Kernel, average: Average | None, plan: Plan):
        self.target, self.average = target, average
        self.kernel = mesh.copy(plan.build.mesh, as_arguments(kernel))
        self._compiled: list[Any] | None = None
        self._on_devices: Any = None

    @property
    def ready(self) -> bool:
        return self._compiled is not None

    def compile(self, plan: Plan, state: RunState) -> tuple[Plan, RunState]:
        """With the plan and the state that the programs are for; groups of the same size share one.

        If the compiler refuses to make a single kernel of a block, all chains become a vector.
        """
        if self._compiled is None:
            programs = [self._compile(plan, group) for group in state.groups]
            if programs[0] is None:
                plan = replace(plan, build=replace(plan.build, fuse=False))
                state = state._replace(groups=(state.chains,))
                programs = [self._compile(plan, state.chains)]
            self._compiled = programs
        return plan, state

    def _compile(self, plan: Plan, group: Chain) -> Any:
        target, average = self._dealt(plan)
        return compile_segment(target, self.kernel, plan, group, average)

    def call(self, pool: ThreadPoolExecutor, plan: Plan, groups: tuple[Chain, ...], span: Span) -> list[Segment]:
        """The steps of a span, of each group of chains."""
        assert self._compiled is not None
        target, average = self._dealt(plan)

        def call(program: Any, group: Chain) -> Segment:
            return jax.block_until_ready(program(target, self.kernel, group, span, average))

        parts = list(pool.map(call, self._compiled, groups))
        self._raise_together((int(span.first) - 1) // plan.build.block * plan.build.block)
        return parts

    def _raise_together(self, step: int) -> None:
        """Raise the error if the host could not give what a step needs, in all processes, with the first such step."""
        failure = None
        try:
            self.target.after(step)
        except HostError as error:
            failure = error
        never = 2**31 - 1
        first = -largest(-(never if failure is None else failure.step))
        if first < never:
            failure = failure or ElsewhereError("another process of the run could not get its data or energies")
            failure.step = first
            raise failure

    def _dealt(self, plan: Plan) -> tuple[Target, Average | None]:
        """Target and average, on the devices that need them."""
        if self._on_devices is None:
            # Here, since threads do not share this one's JAX configuration, by which arrays of NumPy are converted.
            given = jax.tree.map(jnp.asarray, (self.target, self.average))
            self._on_devices = (mesh.deal if plan.build.per_chain else mesh.copy)(plan.build.mesh, given)
        return self._on_devices
