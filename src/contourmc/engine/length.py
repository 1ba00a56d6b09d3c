"""How long a run is, and which of its steps it keeps."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Length:
    """steps: of each chain.
    burn_in: steps at the start that no draw or estimate uses.
    thin: steps for each kept draw.
    steps_before: steps made before this run, which count in the step numbers that it reports.
    """

    steps: int
    burn_in: int
    thin: int
    steps_before: int = 0

    def draws_after(self, step: int) -> int:
        """How many draws have been kept after a step."""
        return max(step - self.burn_in, 0) // self.thin

    def longer(self, steps: int) -> "Length":
        """With so many more steps."""
        return replace(self, steps=self.steps + steps)
