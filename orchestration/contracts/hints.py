"""The hint a socket carries: which topic changed, never what it changed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class HintMessage(TypedDict):
    """A hint on the wire."""

    topic: str
    project: int | None
    version: int


@dataclass(frozen=True, slots=True)
class Hint:
    """One changed topic: `task:12`, `project:3`, `log:3`, `audit:3` or `inbox`."""

    topic: str
    project_id: int | None
    version: int = 0

    def as_message(self) -> HintMessage:
        """Shape the hint for the wire."""
        return {"topic": self.topic, "project": self.project_id, "version": self.version}
