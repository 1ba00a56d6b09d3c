"""The passes over the parameters in a step, for the parameters of one group and type."""

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.operations import Library
from contourmc._core.straight_line import Symbol
from contourmc.torch.layout import Part, foreach
from contourmc.torch.translation import Translation, used
from contourmc.torch.vectors import Apply, Vector


class Motion:
    """Moves the parameters of a part, and updates the vectors of the state in place.

    The position and the gradients are lists of tensors that belong to the user; all else is flat, with views. Numbers
    that are known on the host go along with the call; those on the device multiply flat copies, so that nobody waits.
    """

    def __init__(self, translation: Translation, part: Part, buffers: dict[str, Any], library: Library):
        """buffers: those of the noise and of the state's vectors.  library: computes what is not linear."""
        self.part, self._translation, self._library = part, translation, library
        sources = translation.sources
        self._flat = {sources[name]: part.slice(buffer) for name, buffer in buffers.items()}
        self._views = {sources[name]: part.views(buffer) for name, buffer in buffers.items()}
        self._position, self._gradient = sources["position"], sources["gradient"]
        self._copies: dict[Any, tuple[Any, list[Any]]] = {}
        self._state = [(sources[name], vector) for name, vector in translation.vectors.items()]
        # A step that adds a vector of the state, such as the velocity, first makes that vector.
        self._mover = next((symbol for symbol, vector in self._state if vector == translation.added), None)
        later = [{each for _, other in self._state[i + 1 :] for each in used(other)} for i in range(len(self._state))]
        self._in_place = [symbol not in read for (symbol, _), read in zip(self._state, later, strict=True)]
        # What the present step has made or copied besides, and the lists of the user's tensors.
        self._made: dict[Symbol, Any] = {}
        self._lists: dict[Symbol, Sequence[Any]] = {self._position: part.positions}
        self._decayed = False

    def views(self, name: str) -> list[Any]:
        """A vector of the state, as tensors like the parameters."""
        return self._views[self._translation.sources[name]]

    def __call__(self, numbers: Sequence[Any], decayed: bool) -> None:
        """One step, with the numbers that `Translation.group` gave.

        decayed: whether there is any weight decay, the only thing that depends on the position; if not, its number is 0
            but may lie on the device, where nobody looks.
        """
        self._decayed = decayed
        self._lists[self._gradient] = [each.grad for each in self.part.parameters]
        for step in self._translation.vector_steps:
            self._made[step.output] = (
                self._apply(step, numbers) if isinstance(step, Apply) else self._sum(None, step.vector, numbers)
            )
        if self._mover is None:
            if decayed and any(self._position in used(vector) for _, vector in self._state):
                self._read(self._position)  # a copy, from before it moves
            self._move(self._translation.added, numbers)
        new = [
            self._sum(symbol if in_place else None, vector, numbers)
            for (symbol, vector), in_place in zip(self._state, self._in_place, strict=True)
        ]
        for (symbol, _), in_place, value in zip(self._state, self._in_place, new, strict=True):
            if not in_place:
                self._flat[symbol].copy_(value)
        if self._mover is not None:
            foreach._foreach_add_(self.part.positions, self._views[self._mover])
        self.part.publish()
        self._made.clear()

    def _move(self, added: Vector, numbers: Sequence[Any]) -> None:
        """Add to the position: directly where all numbers are known on the host, else by way of a sum on the device."""
        terms = self._counted(added)
        known = [numbers[self._translation.numbers[number]] for _, number in terms]
        lists = [self._lists.get(symbol) or self._views.get(symbol) for symbol, _ in terms]
        if all(lists) and all(isinstance(number, float) for number in known):
            for (symbol, _), number in zip(terms, known, strict=True):
                if number and symbol is self._position:  # before anything is added to it
                    foreach._foreach_mul_(self.part.positions, 1 + number)
            for (symbol, _), tensors, number in zip(terms, lists, known, strict=True):
                if number and symbol is not self._position:
                    foreach._foreach_add_(self.part.positions, tensors, alpha=number)
        else:
            total, views = self._copy("moved")
            total.copy_(self._sum(None, added, numbers))
            foreach._foreach_add_(self.part.positions, views)

    def _counted(self, vector: Vector) -> list[tuple[Symbol, Any]]:
        """The terms of a sum, without weight decay if there is none."""
        return [term for term in vector.terms if self._decayed or term[0] is not self._position]

    def _sum(self, target: Symbol | None, vector: Vector, numbers: Sequence[Any]) -> Any:
        """The sum: in place of the target, which may be one of its vectors, or in a new tensor."""
        places, own, views = self._translation.numbers, None, None
        if target is None:
            total = self._zeros(self.part.end - self.part.begin)
        else:
            total, views = self._flat[target], self._views[target]
            own = next((numbers[places[number]] for symbol, number in vector.terms if symbol is target), 0.0)
            if not (isinstance(own, float) and own == 1):
                total.mul_(own)
        for symbol, place in self._counted(vector):
            number = numbers[places[place]]
            if symbol is target:
                continue
            if not isinstance(number, float):
                total.addcmul_(self._read(symbol), number)
            elif number and views is not None and symbol in self._lists and symbol not in self._made:
                foreach._foreach_add_(views, self._lists[symbol], alpha=number)
            elif number:
                total.add_(self._read(symbol), alpha=number)
        return total

    def _apply(self, step: Apply, numbers: Sequence[Any]) -> Any:
        places = self._translation.numbers
        given = [numbers[places[each]] if each in places else self._read(each) for each in step.inputs]
        return self._library.compute(step.template, step.settings, given, ())

    def _read(self, symbol: Symbol) -> Any:
        """A vector as a flat tensor."""
        if symbol in self._flat:
            return self._flat[symbol]
        if symbol not in self._made:
            flat, views = self._copy(symbol)
            foreach._foreach_copy_(views, self._lists[symbol])
            self._made[symbol] = flat
        return self._made[symbol]

    def _copy(self, key: Any) -> tuple[Any, list[Any]]:
        """A flat buffer with views, made when it is first needed."""
        if key not in self._copies:
            whole = self._zeros(self.part.end)
            self._copies[key] = self.part.slice(whole), self.part.views(whole)
        return self._copies[key]

    def _zeros(self, size: int) -> Any:
        return torch.zeros(size, dtype=self.part.kind, device=self.part.parameters[0].device)
