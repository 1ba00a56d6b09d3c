"""The passes over the parameters in a step, for the parameters of one group and type."""

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.operations import Library
from contourmc._core.straight_line import Symbol
from contourmc.torch.layout import Part
from contourmc.torch.translation import Translation, used
from contourmc.torch.vectors import Apply, Vector

# Reads vectors that are there as flat tensors, and the numbers of the step.
_Values = dict[Symbol, Any]


class Motion:
    """Moves the parameters of a part, and updates the vectors of the state in place.

    The position and the gradients are lists of tensors that belong to the user; all else is flat, with views. Numbers
    that are known on the host go along with the call; those on the device multiply flat copies, so that nobody waits.
    """

    def __init__(
        self, translation: Translation, part: Part, buffers: dict[str, Any], new_buffer: Callable[[], Any], library: Library
    ):
        """buffers: those of the noise and of the state's vectors, of the part's type.  new_buffer: makes one more.
        library: what computes functions that are not linear.
        """
        self.part, self._translation, self._library = part, translation, library
        sources = translation.sources
        self._flat = {sources[name]: part.slice(buffer) for name, buffer in buffers.items()}
        self._views = {sources[name]: part.views(buffer) for name, buffer in buffers.items()}
        self._gradient, self._position = sources["gradient"], sources["position"]
        self._new_buffer, self._copies = new_buffer, {}
        self._state = {sources[name]: vector for name, vector in translation.vectors.items()}
        self._moved_with = next((s for s, vector in self._state.items() if vector == translation.added), None)

    def views(self, name: str) -> list[Any]:
        return self._views[self._translation.sources[name]]

    def __call__(self, gradients: Sequence[Any], numbers: Sequence[Any]) -> None:
        """One step, with the numbers that `Translation.group` gave."""
        lists = {self._gradient: gradients, self._position: self.part.parameters}
        values: _Values = dict(self._flat)
        for step in self._translation.vector_steps:
            values[step.output] = (
                self._apply(step, values, lists, numbers)
                if isinstance(step, Apply)
                else self._sum(None, step.vector, values, lists, numbers)
            )
        if self._moved_with is None:
            self._move(self._translation.added, values, lists, numbers)
        late = {}
        pending = list(self._state.items())
        for i, (symbol, vector) in enumerate(pending):
            read_later = any(symbol in used(other) for _, other in pending[i + 1 :])
            target = None if read_later else symbol
            late[symbol] = self._sum(target, vector, values, lists, numbers)
        for symbol, value in late.items():
            if value is not self._flat[symbol]:
                self._flat[symbol].copy_(value)
        if self._moved_with is not None:
            torch._foreach_add_(self.part.parameters, self._views[self._moved_with])

    def _move(self, added: Vector, values: _Values, lists: dict[Symbol, Any], numbers: Sequence[Any]) -> None:
        """Add to the position: directly where all numbers are known on the host, else by way of a sum on the device."""
        known = [self._number(number, numbers) for _, number in added.terms]
        views = [lists.get(symbol) or self._views.get(symbol) for symbol, _ in added.terms]
        if all(isinstance(number, float) for number in known) and all(views):
            for tensors, number in zip(views, known, strict=True):
                torch._foreach_add_(self.part.parameters, tensors, alpha=number)
            return
        noise = self._translation.sources["noise"]
        spare = noise if any(symbol is noise for symbol, _ in added.terms) and not self._state else None
        total = self._sum(spare, added, values, lists, numbers)
        if spare is None:
            buffer, views = self._copy("moved")
            buffer.copy_(total)
        torch._foreach_add_(self.part.parameters, views if spare is None else self._views[spare])

    def _sum(
        self, target: Symbol | None, vector: Vector, values: _Values, lists: dict[Symbol, Any], numbers: Sequence[Any]
    ) -> Any:
        """The sum, in place of one of its own vectors if a target is given, else in a new one."""
        terms = [(symbol, self._number(number, numbers)) for symbol, number in vector.terms]
        own = [number for symbol, number in terms if symbol is target]
        rest = [(symbol, number) for symbol, number in terms if symbol is not target]
        if target is None:
            first = self.part.parameters[0]
            total, views = torch.zeros(self.part.end - self.part.begin, dtype=first.dtype, device=first.device), None
        else:
            total, views = values[target], self._views[target]
            if not own:
                total.zero_()
            elif not (isinstance(own[0], float) and own[0] == 1):
                total.mul_(own[0])
        for symbol, number in rest:
            host = isinstance(number, float)
            if host and number == 0:
                continue
            if host and symbol in lists and views is not None:
                torch._foreach_add_(views, lists[symbol], alpha=number)
            elif host:
                total.add_(self._read(symbol, values, lists), alpha=number)
            else:
                total.addcmul_(self._read(symbol, values, lists), number)
        return total

    def _apply(self, step: Apply, values: _Values, lists: dict[Symbol, Any], numbers: Sequence[Any]) -> Any:
        places = self._translation.numbers
        given = [
            numbers[places[each]] if each in places else self._read(each, values, lists)
            for each in step.inputs
        ]  # fmt: skip
        return self._library.compute(step.template, step.settings, given, ())

    def _read(self, symbol: Symbol, values: _Values, lists: dict[Symbol, Any]) -> Any:
        """A vector as a flat tensor."""
        if symbol not in lists:
            return values[symbol]
        buffer, views = self._copy(symbol)
        if symbol not in values:
            torch._foreach_copy_(views, lists[symbol])
            values[symbol] = buffer
        return buffer

    def _copy(self, key: Any) -> tuple[Any, list[Any]]:
        """A flat buffer for something that is a list of tensors, made when it is first needed."""
        if key not in self._copies:
            whole = self._new_buffer()
            self._copies[key] = self.part.slice(whole), self.part.views(whole)
        return self._copies[key]

    def _number(self, number: Any, numbers: Sequence[Any]) -> Any:
        return numbers[self._translation.numbers[number]]
