"""What a backend of a seat is: it turns a job into a result document and writes nothing.

A backend is handed loaded rows to read and a link to report through. The services record what it
answers, in the same way as a result that came over REST.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestration.models import Assignment, Task
from orchestration.states import Seat

Document = dict[str, Any]
MAX_ARTIFACT_BYTES = 50 * 1024 * 1024
"""The largest file that is handed in, verified and locked."""


class SeatLink(Protocol):
    """How a running backend reports: log lines, its process group, and whether to stop."""

    def log(self, text: str) -> None:
        """Append to the assignment's live log."""

    def process_started(self, process_group: str) -> None:
        """Record the process group before the command can do anything."""

    def should_stop(self) -> str | None:
        """Return why the work must stop now, or None."""


@dataclass(frozen=True, slots=True)
class SeatJob:
    """One piece of work for a backend. The rows are for reading only."""

    seat: Seat
    task: Task
    assignment: Assignment | None
    input: Mapping[str, Any]


class SeatBackend(Protocol):
    """Who can fill a seat. `name` is what the policy lists."""

    name: str
    is_system: bool
    """Whether it counts as the system, independent of every agent."""

    def can_fill(self, job: SeatJob) -> bool:
        """Whether this backend can do this job."""

    def is_instant(self, job: SeatJob) -> bool:
        """Whether the job needs no command, file or network."""

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Do the job and return the seat's result document."""
