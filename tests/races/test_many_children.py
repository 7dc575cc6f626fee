"""A thousand children of one task: never more than ten of them at work at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from orchestration.models import Task
from orchestration.seats import registry
from orchestration.seats.base import Document, SeatJob, SeatLink
from orchestration.seats.command import CommandSeat
from orchestration.services.intake import NewTask, create_task
from orchestration.services.spawning import NewChild, spawn_within
from orchestration.services.work import Slot, unit_of_work
from orchestration.services.working import work_until_idle
from orchestration.states import Seat
from tests.factories import actor_of, claim, hand_in, new_agent, new_project, set_status
from tests.races.contest import SIR, on_both, rivals

pytestmark = on_both
CHILDREN = 1000
AT_ONCE, SLOTS = 10, 14
GATHER_SECONDS, INTRUDER_SECONDS = 30.0, 0.3


class CountingSeat(CommandSeat):
    """Does children at once, and counts how many of them are being done together."""

    lock = threading.Condition()
    running = most = done = 0

    def can_fill(self, job: SeatJob) -> bool:
        """Fill the executor's seat of children."""
        return job.seat is Seat.EXECUTOR and job.task.parent_id is not None

    def is_instant(self, job: SeatJob) -> bool:
        """It waits for others to come, so it is never done inside a transaction."""
        return False

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """The first wait for as many as may come, and a moment for one too many; then hand in."""
        counted = type(self)
        with self.lock:
            counted.running += 1
            counted.most = max(counted.most, counted.running)
            if counted.most >= AT_ONCE:
                self.lock.notify_all()
            if counted.done == 0:
                is_full = self.lock.wait_for(lambda: counted.most >= AT_ONCE, GATHER_SECONDS)
                assert is_full, f"only {counted.most} came"
                self.lock.notify_all()
                self.lock.wait(INTRUDER_SECONDS)
            counted.running -= 1
            counted.done += 1
        content = f"{job.task.step_key} is done"
        output = {"type": "document", "title": "page", "content": content}
        return {"status": "review", "outputs": [output], "handoff": "Nothing is open."}


@pytest.fixture
def counted(settings: Any) -> Iterator[type[CountingSeat]]:
    """Let the counting seat stand in for the executor of children."""
    settings.COUNTERSIGN_EXTRA_SEATS = ("tests.races.test_many_children.CountingSeat",)
    registry.backends.cache_clear()
    yield CountingSeat
    registry.backends.cache_clear()


def test_thousand_children_run_ten_at_a_time(counted: type[CountingSeat]) -> None:
    project = new_project(policy={"limits": {"children": CHILDREN}})
    task = create_task(
        project_id=project.pk, new=NewTask(text="打开全书", route="direct"), actor=SIR
    )
    agent = new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    with unit_of_work(actor_of(agent)) as work:
        for number in range(CHILDREN):
            spawn_within(work, task.pk, NewChild(text=f"打开第 {number} 页"), agent)
    slots = [Slot(f"test:1:{number}") for number in range(SLOTS)]
    with rivals(SLOTS) as fire:
        counts = fire(*[partial(work_until_idle, slot, slice_seconds=300) for slot in slots])
    children = Task.objects.filter(parent=task)
    assert set(children.values_list("status", flat=True)) == {"done"}
    assert (sum(counts), counted.done) == (CHILDREN, CHILDREN)
    assert counted.most == AT_ONCE
    hand_in(task, agent)
    set_status(task, agent, "review")
    assert Task.objects.get(pk=task.pk).status == "done"
