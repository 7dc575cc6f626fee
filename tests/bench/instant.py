"""A seat backend that does nothing, at once: what is left is the engine's own cost.

Named by `COUNTERSIGN_EXTRA_SEATS`, it takes the place of the `command` backend, so that the policy
and every rule stay as they are. Each step's output tells when it began and ended.
"""

from __future__ import annotations

import json
import time

from orchestration.seats.base import Document, SeatJob, SeatLink
from orchestration.seats.command import CommandSeat
from orchestration.states import Seat


class InstantSeat(CommandSeat):
    """Execute steps without a command instantly; everything else as the command seat does."""

    def can_fill(self, job: SeatJob) -> bool:
        """Fill every executor seat of a step that has no commands."""
        return (job.seat is Seat.EXECUTOR and not job.task.run) or super().can_fill(job)

    def is_instant(self, job: SeatJob) -> bool:
        """Say what it is: nothing but the engine's own cost."""
        return job.seat is Seat.EXECUTOR and not job.task.run

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Hand in one small output and a hand-off. Units: monotonic nanoseconds of this machine."""
        began = time.monotonic_ns()
        if job.seat is not Seat.EXECUTOR or job.task.run:
            return super().perform(job, link)
        content = json.dumps({"began": began, "ended": time.monotonic_ns()})
        return {
            "status": "review",
            "detail": "",
            "runs": [],
            "outputs": [{"type": "data", "title": "result", "content": content}],
            "handoff": "done at once",
        }
