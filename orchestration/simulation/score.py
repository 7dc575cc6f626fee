"""The source's own score: 50 % right control commands, 30 % list consistency, 20 % contexts.

Source: seed 002 ("EVALUATION").
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Part:
    """One dimension. Shape: `wrong` says what was off, in words."""

    title: str
    weight: int
    checked: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, problem: str) -> None:
        """Count one check; a problem in words means that it failed."""
        self.checked += 1
        if problem:
            self.wrong.append(problem)

    @property
    def share(self) -> float:
        """The share of checks that held; nothing checked is nothing shown."""
        return 1 - len(self.wrong) / self.checked if self.checked else 0.0


@dataclass(slots=True)
class Score:
    """The three dimensions."""

    commands: Part = field(default_factory=lambda: Part("control commands", 50))
    states: Part = field(default_factory=lambda: Part("master list", 30))
    contexts: Part = field(default_factory=lambda: Part("contexts", 20))

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """All three, in the order of the source."""
        return (self.commands, self.states, self.contexts)

    @property
    def total(self) -> float:
        """Points of 100. What was never put to the test gives none, except where none was due."""
        due = [part for part in self.parts if part.checked]
        weights = sum(part.weight for part in due)
        return 100 * sum(part.weight * part.share for part in due) / weights if weights else 0.0

    def lines(self) -> list[str]:
        """Say each part and the sum."""
        lines = [
            f"{part.title:<17} {part.weight:>3} %  {100 * part.share:6.2f} of 100"
            f"  ({part.checked - len(part.wrong)} of {part.checked})"
            for part in self.parts
        ]
        return [*lines, f"{'score':<17} {self.total:>13.2f} of 100"]
