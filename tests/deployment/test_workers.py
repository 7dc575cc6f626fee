"""The workers of one process: prompt, apart by queue, told when the process stops."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import shared_task, signals

from config.celery import app
from config.workers import AGENTS_QUEUE, CONTROL_QUEUE, WorkerGroup

WAIT_SECONDS = 20
BURST = 40


class Seen:
    """What the test jobs did, and the gate they wait at."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.all_done = threading.Event()
        self.is_held = threading.Event()
        self.gate = threading.Event()


seen = Seen()


@pytest.fixture
def workers(running_workers: WorkerGroup) -> Iterator[WorkerGroup]:
    """Start with nothing seen; open the gate before the workers are stopped."""
    seen.__init__()  # type: ignore[misc]  # the jobs hold this object
    yield running_workers
    seen.gate.set()


@shared_task(name="tests.note_job", acks_late=True, ignore_result=True)
def note_job(number: int) -> None:
    """Note one number."""
    seen.numbers.append(number)
    if len(seen.numbers) == BURST:
        seen.all_done.set()


@shared_task(name="tests.hold_job", acks_late=True, ignore_result=True)
def hold_job() -> None:
    """Wait at the gate."""
    seen.is_held.set()
    seen.gate.wait(WAIT_SECONDS)


def send(name: str, queue: str, *arguments: Any) -> None:
    app.send_task(name, args=arguments, queue=queue, retry=False)


def test_burst_larger_than_the_prefetch_window_is_worked_off(workers: WorkerGroup) -> None:
    for number in range(BURST):
        send("tests.note_job", AGENTS_QUEUE, number)
    assert seen.all_done.wait(WAIT_SECONDS)
    assert sorted(seen.numbers) == list(range(BURST))


def test_control_queue_is_served_while_every_agents_thread_is_busy(workers: WorkerGroup) -> None:
    for _ in range(workers.workers[1].concurrency + 1):
        send("tests.hold_job", AGENTS_QUEUE)
    assert seen.is_held.wait(WAIT_SECONDS)
    for number in range(BURST):
        send("tests.note_job", CONTROL_QUEUE, number)
    assert seen.all_done.wait(WAIT_SECONDS)


def test_stop_is_announced_to_running_jobs_and_waits_for_them(workers: WorkerGroup) -> None:
    def open_gate(**_: object) -> None:
        seen.gate.set()

    send("tests.hold_job", AGENTS_QUEUE)
    assert seen.is_held.wait(WAIT_SECONDS)
    signals.worker_shutting_down.connect(open_gate)
    workers.ask_to_stop()
    assert workers.wait_until_stopped(grace_seconds=WAIT_SECONDS)
    assert seen.gate.is_set()


def test_job_that_outlasts_the_grace_is_reported(workers: WorkerGroup) -> None:
    send("tests.hold_job", AGENTS_QUEUE)
    assert seen.is_held.wait(WAIT_SECONDS)
    workers.ask_to_stop()
    assert not workers.wait_until_stopped(grace_seconds=0.2)
