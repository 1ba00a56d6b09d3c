"""What a diagnosis consists of: findings, each with its figure and what to do."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing to know: how bad it is, what it is, its figure, and the remedy."""

    severity: Severity
    check: str
    figure: float
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.message} {self.advice}".rstrip()


@dataclass(frozen=True)
class Diagnosis:
    """All findings about a run, the worst first; `ok` if there are only notes."""

    findings: tuple[Finding, ...]
    summary: str

    @property
    def ok(self) -> bool:
        return all(finding.severity == "note" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """In a few words."""
        return "Nothing wrong was found" if self.ok else "Do not trust this run yet"

    @property
    def caution(self) -> str:
        """What a good verdict cannot see."""
        return "A mode that was never visited cannot be seen." if self.ok else ""

    def __str__(self) -> str:
        head = f"{self.verdict}: {self.summary} {self.caution}".rstrip()
        return "\n".join([head, *(f"- {finding}" for finding in self.findings)])

    __repr__ = __str__


def graded(figure: float, warning: float, problem: float) -> Severity | None:
    """How bad a figure is that should be small; None if it is below both limits."""
    return "problem" if figure > problem else "warning" if figure > warning else None
