"""A worker that dies between claim and result: taken back once its old command is surely dead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Assignment, Decision, Project, Task
from orchestration.runner.processes import group_alive, process_token
from orchestration.services.lease_sweeps import reclaim_from_dead
from orchestration.services.leases import WORKER_LEASE_SECONDS
from orchestration.services.sweeping import sweep
from orchestration.services.work import Slot
from orchestration.services.worker_link import WorkerLink
from orchestration.services.working import (
    Shift,
    claim_one,
    perform,
    perform_and_record,
    work_until_idle,
)
from orchestration.states import AssignmentStatus, Seat, TaskStatus
from tests.deployment.processes import wait_until
from tests.effects import append, effect_lines, effects
from tests.factories import (
    child,
    decide,
    drive,
    fresh,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)
from tests.losses.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)
LEASE_IS_OVER = timedelta(seconds=WORKER_LEASE_SECONDS + 5)
CUT = (
    "sh -c 'echo began >> effects; test -e cut || { touch cut; sleep 600; }; echo ended >> effects'"
)
WORK = """
from orchestration.services.work import Slot
from orchestration.services.working import work_until_idle
work_until_idle(Slot("doomed:1"), slice_seconds=60)
"""


@pytest.fixture
def project() -> Project:
    return new_project()


def executor_of(task: Task) -> Assignment:
    """Read the executor's assignment of a task."""
    return Assignment.objects.get(task=task, seat=Seat.EXECUTOR.value)


def cut_off(program: Program, project: Project) -> None:
    """Kill a worker in the middle of a step, with no chance to say anything."""
    with program(WORK) as worker:
        assert wait_until(lambda: effect_lines(project)[-1:] == ["began"], seconds=20)
        worker.kill()


def test_c_58_step_of_a_killed_worker_runs_again_and_ends(
    program: Program, project: Project
) -> None:
    root = submit_for_later(project, step("1", run=[CUT]), step("2", run=append("2"), phase=2))
    cut_off(program, project)
    held = executor_of(child(root, "1"))
    pgid, _, token = held.process_group.partition(" ")
    assert (held.status, held.worker) == (AssignmentStatus.LEASED, "doomed:1")
    assert sweep()["expired_leases"] == 0
    with time_machine.travel(timezone.now() + LEASE_IS_OVER, tick=True):
        assert sweep()["expired_leases"] == 1
        assert not group_alive(int(pgid), token)
        drive(project)
    assert effect_lines(project) == ["began", "began", "ended", "2"]
    held.refresh_from_db()
    # Two leases and the way back between them: each took a token.
    assert (held.status, held.token, held.transient_count) == (AssignmentStatus.DONE, 3, 1)
    assert child(root, "1").tries == 0
    assert fresh(root).status == TaskStatus.DONE


def submit_for_later(project: Project, *steps: dict[str, object]) -> Task:
    """Submit a plan and bring it to where its executors are queued, none of them run."""
    root = submit_plan(project, *steps)
    held = claim_one(Slot("auditor"))
    assert held is not None
    assert perform_and_record(held, Shift(Slot("auditor"), ends=0.0)) is None
    return root


def test_restart_of_the_one_process_takes_its_own_steps_back_at_once(
    program: Program, project: Project
) -> None:
    root = submit_for_later(project, step("1", run=[CUT]))
    cut_off(program, project)
    assert reclaim_from_dead("doomed:", alive="living:") == 1
    drive(project)
    assert effect_lines(project) == ["began", "began", "ended"]
    assert fresh(root).status == TaskStatus.DONE


def test_irreversible_step_that_was_cut_off_asks_sir_and_does_not_run_again(
    program: Program, project: Project
) -> None:
    root = submit_for_later(
        project, step("1", run=[CUT], irreversible=True, risks=["cannot be undone"])
    )
    cut_off(program, project)
    with time_machine.travel(timezone.now() + LEASE_IS_OVER, tick=True):
        sweep()
        assert drive(project) == 0
        assert child(root, "1").status == TaskStatus.WAITING_HUMAN
        assert effect_lines(project) == ["began"]
        decide(open_decision_of(project, "waiting_human"), "approve")
        drive(project)
    assert effect_lines(project) == ["began", "began", "ended"]
    assert Decision.objects.count() == 1


@pytest.fixture
def survivor() -> Iterator[subprocess.Popen[bytes]]:
    """A command that outlived the worker which started it, in a process group of its own."""
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    with subprocess.Popen(command, start_new_session=True) as process:  # noqa: S603  # our own
        try:
            yield process
        finally:
            process.kill()


def test_step_goes_back_in_the_queue_only_after_its_old_group_is_dead(
    project: Project, survivor: subprocess.Popen[bytes]
) -> None:
    root = submit_for_later(project, step("1", run=append("1")))
    held = claim_one(Slot("gone:1"))
    assert held is not None
    WorkerLink(held).process_started(f"{survivor.pid} {process_token(survivor.pid)}")
    assert sweep()["expired_leases"] == 0
    assert survivor.poll() is None
    with time_machine.travel(timezone.now() + LEASE_IS_OVER, tick=True):
        assert sweep()["expired_leases"] == 1
        assert survivor.wait(5) == -9
        assert executor_of(child(root, "1")).status == AssignmentStatus.QUEUED
        drive(project)
    assert effects(project) == {"1": 1}


def test_worker_that_slept_through_its_lease_starts_no_command(project: Project) -> None:
    root = submit_for_later(project, step("1", run=append("1")))
    slept = claim_one(Slot("slept:1"))
    assert slept is not None
    with time_machine.travel(timezone.now() + LEASE_IS_OVER, tick=True):
        sweep()
        held = claim_one(Slot("next:1"))
        assert held is not None
        link = WorkerLink(slept)
        result = perform(slept, link)
        assert result is not None
        assert result.hand_in is not None
        assert result.hand_in.status == "failed"
        assert effect_lines(project) == []
        assert executor_of(child(root, "1")).worker == "next:1"
    assert fresh(child(root, "1")).status == TaskStatus.WORKING


def test_result_under_an_old_token_changes_nothing(project: Project) -> None:
    root = submit_for_later(project, step("1", run=append("1")))
    slept = claim_one(Slot("slept:1"))
    assert slept is not None
    with time_machine.travel(timezone.now() + LEASE_IS_OVER, tick=True):
        sweep()
        assert work_until_idle(Slot("next:1"), slice_seconds=60) == 1
    assert fresh(root).status == TaskStatus.DONE
    before = Path(project.workspace, "effects").read_text()
    assert perform_and_record(slept, Shift(Slot("slept:1"), ends=0.0)) is None
    assert Path(project.workspace, "effects").read_text() == before
    assert child(root, "1").artifacts.count() == 1
    assert executor_of(child(root, "1")).worker == "next:1"
