"""Instant work is done in the transaction that claims it; what breaks there ends as a state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.errors import Invalid
from orchestration.models import AuditEvent, Project
from orchestration.seats import registry
from orchestration.seats.base import Document, SeatJob, SeatLink
from orchestration.services.working import work_until_idle
from tests.bench.instant import InstantSeat
from tests.factories import SLOT, child, drive, new_project, step, submit_plan

pytestmark = pytest.mark.django_db


class BrokenSeat(InstantSeat):
    """Execute no step: raise what nobody expects."""

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Break."""
        raise RuntimeError("the backend broke")


class WordySeat(InstantSeat):
    """Hand in what cannot be recorded: a hand-off beyond its 500 characters."""

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Say too much."""
        return {**super().perform(job, link), "handoff": "y" * 600}


@pytest.fixture
def seats(settings: Any) -> Iterator[Any]:
    registry.backends.cache_clear()
    yield settings
    registry.backends.cache_clear()


@pytest.fixture
def project() -> Project:
    return new_project("demo")


def test_a_rules_seat_is_claimed_and_done_in_one_transaction(project: Project) -> None:
    root = submit_plan(project, step("1"))
    with CaptureQueriesContext(connection) as seen:
        work_until_idle(SLOT, slice_seconds=0, project_id=project.pk)
    told = list(AuditEvent.objects.filter(kind__startswith="assignment.").values_list("kind"))
    assert ("assignment.done",) in told
    root.refresh_from_db()
    assert root.blueprints.count() == 1
    units = [one for one in seen if one["sql"].startswith("SAVEPOINT")]
    assert len(units) == 1


def test_an_instant_step_that_breaks_goes_back_with_its_reason(
    seats: Any, project: Project
) -> None:
    seats.COUNTERSIGN_EXTRA_SEATS = ("tests.services.test_chains.BrokenSeat",)
    root = submit_plan(project, step("1", run=()))
    drive(project)
    row = child(root, "1").assignments.get()
    assert row.status == "queued"
    assert row.not_before is not None
    told = AuditEvent.objects.filter(subject=f"assignment:{row.pk}").order_by("pk").last()
    assert told is not None
    assert "the backend broke" in told.why


def test_what_cannot_be_recorded_is_held_by_its_slot_and_not_queued_for_ever(
    seats: Any, project: Project
) -> None:
    seats.COUNTERSIGN_EXTRA_SEATS = ("tests.services.test_chains.WordySeat",)
    root = submit_plan(project, step("1", run=()))
    work_until_idle(SLOT, slice_seconds=0, project_id=project.pk)
    assert child(root, "1").assignments.get().status == "queued"
    with pytest.raises(Invalid, match="600 characters"):
        drive(project)
    # Its lease runs out like that of a worker that died, and counts.
    assert child(root, "1").assignments.get().status == "leased"
