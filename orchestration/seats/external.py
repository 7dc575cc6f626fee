"""The `external` backend: the assignment waits for an agent that claims it over REST."""

from __future__ import annotations

from orchestration.errors import Conflict
from orchestration.seats.base import Document, SeatJob, SeatLink


class ExternalSeat:
    """Fill any seat by waiting for an agent."""

    name = "external"
    is_system = False

    def can_fill(self, job: SeatJob) -> bool:
        """Return true: an agent may come for any seat."""
        return True

    def is_instant(self, job: SeatJob) -> bool:
        """Return false: the work happens elsewhere."""
        return False

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Refuse: nothing here does an agent's work.

        Errors: Conflict, always.
        """
        raise Conflict("an external assignment is claimed over REST, not run by a worker")
