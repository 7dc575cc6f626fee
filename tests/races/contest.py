"""Let sessions race: hold one transaction open until another waits for it, or fire all at once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import connection, connections, transaction

from config.sqlite.base import DatabaseWrapper
from orchestration.errors import CountersignError
from orchestration.models import Decision, Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import Actor
from orchestration.states import DecisionStatus
from tests.factories import claim, drive, new_agent, set_status, submit_plan

T = TypeVar("T")
Act = Callable[[], Any]
Fire = Callable[..., list[Any]]
WAIT_SECONDS = 10.0
POLL_SECONDS = 0.005
SIR = Actor("human:sir")

on_both = [pytest.mark.races, pytest.mark.django_db(transaction=True)]
"""Marks of a module whose tests let threads wait for each other, on SQLite too."""


def in_own_connection(act: Callable[[], T]) -> T:
    """Call `act` in this thread with a database session that ends with it."""
    try:
        return act()
    finally:
        connections.close_all()


def _waits_for_a_row() -> bool:
    """Whether a session of PostgreSQL waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone() != (0,))


def _waits_for_the_writer() -> bool:
    """Whether a thread stands at the writer lock of SQLite, which this one holds."""
    waiting = DatabaseWrapper.take_writer_lock.__code__
    assert connection.has_writer_lock  # type: ignore[attr-defined]
    return any(frame.f_code is waiting for frame in sys._current_frames().values())


WAITS: Mapping[str, Callable[[], bool]] = {
    "postgresql": _waits_for_a_row,
    "sqlite": _waits_for_the_writer,
}


def wait_for_blocked_session(rival: Future[Any]) -> None:
    """Wait until some session waits for a lock that this one holds.

    Errors: AssertionError when the rival ended without waiting, or nobody waits in time.
    """
    ends = time.monotonic() + WAIT_SECONDS
    pause = threading.Event()
    while time.monotonic() < ends:
        if rival.done():
            raise AssertionError(f"the rival did not wait: {rival.exception() or rival.result()!r}")
        if WAITS[connection.vendor]():
            return
        pause.wait(POLL_SECONDS)
    raise AssertionError("no session waits for a lock of this one")


def race(first: Callable[[], T], second: Act) -> tuple[T, Future[Any]]:
    """Do `first` and keep its transaction open until `second` waits for it; then commit.

    Return what `first` gave and the ended future of `second`.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            won = first()
            rival = pool.submit(in_own_connection, second)
            wait_for_blocked_session(rival)
        rival.exception(WAIT_SECONDS)
        return won, rival


@contextmanager
def rivals(count: int) -> Iterator[Fire]:
    """Yield a function that fires `count` acts at once, each in a session of its own, again and
    again. It returns what each gave, or the refusal (a CountersignError) that it met.
    """
    barrier = threading.Barrier(count)

    def start(act: Act) -> Any:
        connection.ensure_connection()
        barrier.wait(WAIT_SECONDS)
        try:
            return act()
        except CountersignError as refusal:
            return refusal

    def fire(*acts: Act) -> list[Any]:
        assert len(acts) == count
        return [one.result() for one in [pool.submit(start, act) for act in acts]]

    with ThreadPoolExecutor(count) as pool:
        try:
            yield fire
        finally:
            # One each: the barrier keeps a thread from taking two.
            fire(*[connections.close_all] * count)


def refusals(outcomes: Sequence[Any]) -> list[CountersignError]:
    """Pick the refusals among outcomes of `fire`."""
    return [one for one in outcomes if isinstance(one, CountersignError)]


def direct_task(project: Project, text: str = "打开首页") -> Task:
    """Create a direct root, which an agent may claim at once."""
    return create_task(project_id=project.pk, new=NewTask(text=text, route="direct"), actor=SIR)


def asking_task(project: Project, question: str = "Which one?") -> Task:
    """Create a direct root whose agent has asked Sir."""
    task, agent = direct_task(project), new_agent()
    claim(task, agent)
    set_status(task, agent, "waiting_human", detail=question)
    return task


def question_of(task: Task) -> Decision:
    """Read the open decision of a task."""
    return Decision.objects.get(task=task, status=DecisionStatus.OPEN.value)


def started_plan(project: Project, *steps: dict[str, Any], is_trusted: bool = True) -> Task:
    """Submit a plan and let our own workers bring it to where agents are needed."""
    root = submit_plan(project, *steps, is_trusted=is_trusted)
    drive(project)
    return root
