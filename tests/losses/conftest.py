"""What may get lost: messages of the broker, the broker, a worker, the process that decides."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.db import connection, connections

from config.celery import app, make_app
from config.workers import WorkerGroup
from orchestration.enqueue import slots
from orchestration.models import Task
from orchestration.services.worker_link import stopping
from orchestration.states import TaskStatus
from tests.deployment.processes import ROOT, wait_until
from tests.services_up import free_port

GRACE_SECONDS = 20
Program = Callable[..., AbstractContextManager[subprocess.Popen[str]]]
PROLOGUE = """
import os, signal, sys
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
import django
django.setup()
"""


def lose_messages() -> int:
    """Empty the broker, as a crash of it would. Return how many messages were lost."""
    return int(app.control.purge() or 0)


@contextmanager
def workers() -> Iterator[WorkerGroup]:
    """Both workers in threads of this process, without a scheduler: nothing sweeps by itself."""
    group = WorkerGroup(concurrency=3)
    group.start()
    try:
        assert group.wait_until_ready()
        yield group
    finally:
        group.ask_to_stop()
        assert group.wait_until_stopped(GRACE_SECONDS)
        # Said to this whole process; the next test works in it again.
        stopping.clear()
        connections.close_all()


@pytest.fixture(autouse=True)
def no_error_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which something was logged as an error: a sweep goes on after one."""
    yield
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors] == []


@pytest.fixture(autouse=True)
def empty_broker() -> Iterator[None]:
    """Start without messages of an earlier test and leave none behind."""
    lose_messages()
    slots.forget()
    yield
    lose_messages()
    slots.forget()


@pytest.fixture
def dead_broker() -> Iterator[Callable[[], None]]:
    """A broker that nobody answers for. Yield what brings the real one back."""
    dead = make_app()
    dead.conf.broker_transport_options = {"max_retries": 0}
    dead.conf.broker_url = f"redis://127.0.0.1:{free_port()}/0"
    dead.set_current()
    yield app.set_current
    app.set_current()


def has_ended(root: Task) -> bool:
    """Whether a root is done, read afresh."""
    return Task.objects.get(pk=root.pk).status == TaskStatus.DONE


def wait_for_end(root: Task) -> None:
    """Wait until a root is done."""
    assert wait_until(lambda: has_ended(root), seconds=GRACE_SECONDS)


@contextmanager
def _program(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    name = str(connection.settings_dict["NAME"])
    process = subprocess.Popen(  # noqa: S603  # our own test program
        [sys.executable, "-c", PROLOGUE + code, name, *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(GRACE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def program(transactional_db: None) -> Program:
    """Start a program of ours on this test's database: a process that can be killed."""
    return _program


def killed(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a process that kills itself. Return what it said."""
    said, _ = process.communicate(timeout=GRACE_SECONDS)
    assert process.returncode == -signal.SIGKILL, said
    return said
