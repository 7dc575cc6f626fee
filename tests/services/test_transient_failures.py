"""A backend that fails for a passing cause: it backs off on the same assignment, up to a cap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from orchestration.models import Assignment
from orchestration.seats import registry
from orchestration.seats.base import Document, SeatJob, SeatLink
from orchestration.seats.command import CommandSeat
from orchestration.states import Seat
from tests.factories import child, drive, fresh, new_project, step, submit_plan

pytestmark = pytest.mark.django_db


class DownSeat(CommandSeat):
    """Would fill the executor's seat, but what it needs is down."""

    def can_fill(self, job: SeatJob) -> bool:
        """Fill the executor's seat."""
        return job.seat is Seat.EXECUTOR

    def is_instant(self, job: SeatJob) -> bool:
        """It asks somebody outside."""
        return False

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Ask, and hear nothing."""
        raise ConnectionError("the provider is down")


@pytest.fixture
def _down(settings: Any) -> Iterator[None]:
    settings.COUNTERSIGN_EXTRA_SEATS = ("tests.services.test_transient_failures.DownSeat",)
    registry.backends.cache_clear()
    yield
    registry.backends.cache_clear()


@pytest.mark.usefixtures("_down")
def test_an_outage_burns_no_attempt_up_to_its_cap_and_one_beyond() -> None:
    project = new_project()
    root = submit_plan(project, step("1"))
    waits = []
    drive(project)
    task = child(root, "1")
    for number in range(1, 11):
        held = Assignment.objects.get(task=task, seat="executor")
        assert (held.status, held.transient_count, task.tries) == ("queued", number, 0)
        assert held.not_before is not None
        waits.append(round((held.not_before - timezone.now()).total_seconds()))
        assert drive(project) == 0
        Assignment.objects.filter(pk=held.pk).update(not_before=timezone.now())
        drive(project)
        task = child(root, "1")
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (2, 300)
    held.refresh_from_db()
    assert (held.status, held.result) == ("failed", {"stopped": "environment"})
    assert (task.tries, task.status, fresh(root).failure_count) == (1, "pending", 0)
    assert task.failure_context[-1]["class"] == "environment"
    assert "the provider is down (10 times)" in task.failure_context[-1]["root_cause"]
