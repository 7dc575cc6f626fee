"""The audit trail as the API shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestration.api.shapes.base import Shape


class EventShape(Shape):
    """A sealed event. `position` has no gaps over all projects; page over it."""

    position: int
    id: str
    at: datetime
    project: str | None
    task: str | None
    kind: str
    actor: str
    subject: str
    before: Any
    after: Any
    why: str
    request_id: str
    hash: str


class EventFeed(Shape):
    """Events after a position, in order. Ask again with `after` = `position`."""

    results: list[EventShape]
    next: str | None
    previous: str | None
    position: int


class EventPage(Shape):
    """One page of the trail, newest first."""

    results: list[EventShape]
    next: str | None
    previous: str | None


class ChainFaultShape(Shape):
    """The first thing wrong with the chain."""

    position: int
    event: str | None
    problem: str


class VerifyShape(Shape):
    """What recomputing the whole chain found. `checked` counts the links that hold."""

    valid: bool
    checked: int
    unsealed: int
    fault: ChainFaultShape | None
