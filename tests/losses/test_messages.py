"""Wake-ups lost, doubled or never taken: the rows carry the work, the sweep wakes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.db import transaction

from config.celery import app
from orchestration.enqueue import AGENTS_QUEUE, CONTROL_QUEUE, SWEEP_JOB, WORK_JOB
from orchestration.jobs import sweep_job
from orchestration.models import Assignment, Decision, Task
from orchestration.services.sweeping import sweep
from orchestration.states import AssignmentStatus, DecisionStatus, TaskStatus
from tests.effects import append, effects
from tests.factories import (
    child,
    decide,
    drive,
    fresh,
    new_project,
    new_sir,
    open_decision_of,
    step,
    submit_plan,
)
from tests.losses.conftest import Program, killed, lose_messages, wait_for_end, workers

pytestmark = pytest.mark.django_db(transaction=True)
KEYS = [f"s{n}" for n in range(8)]


def submitted() -> Task:
    """A plan of steps that append, submitted."""
    return submit_plan(new_project(), *[step(key, run=append(key)) for key in KEYS])


def test_lost_wake_up_is_repaired_by_the_sweep() -> None:
    root = submitted()
    assert lose_messages() >= 1
    with workers():
        assert sweep()["woken"] >= 1
        wait_for_end(root)
    assert effects(root.project) == Counter(KEYS)


def test_sweep_that_a_worker_runs_repairs_it_too() -> None:
    root = submitted()
    lose_messages()
    with workers():
        app.send_task(SWEEP_JOB, queue=CONTROL_QUEUE)
        wait_for_end(root)
    assert effects(root.project) == Counter(KEYS)


def test_wake_up_is_sent_after_the_commit_and_never_for_a_rollback() -> None:
    with transaction.atomic():
        root = submitted()
        assert lose_messages() == 0
    assert lose_messages() >= 1
    with transaction.atomic():
        submitted()
        transaction.set_rollback(True)
    assert lose_messages() == 0
    assert list(Task.objects.filter(parent__isnull=True)) == [root]


def test_c_61_broker_that_is_down_at_the_commit_loses_nothing(
    dead_broker: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    root = submitted()
    drive(root.project)
    project = new_project()
    later = submit_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "medium", "fix": FIX})
    )
    drive(project)
    decide(open_decision_of(project), "approve")
    assert "broker did not take a wake-up" in caplog.text
    assert fresh(root).status == TaskStatus.DONE
    dead_broker()
    assert lose_messages() == 0
    with workers():
        sweep()
        wait_for_end(later)


FIX = {"description": "make it", "commands": ["touch there"]}


def test_c_59_messages_that_come_twice_and_late_run_each_step_once() -> None:
    with workers():
        root = submitted()
        for _ in range(20):
            app.send_task(WORK_JOB, queue=AGENTS_QUEUE)
        wait_for_end(root)
        for _ in range(5):
            app.send_task(WORK_JOB, queue=AGENTS_QUEUE)
            app.send_task(SWEEP_JOB, queue=CONTROL_QUEUE)
        second = submitted()
        wait_for_end(second)
    for one in (root, second):
        assert effects(one.project) == Counter(KEYS)
    tokens = Assignment.objects.filter(seat="executor").values_list("token", "status")
    assert set(tokens) == {(1, AssignmentStatus.DONE.value)}


DECIDE_AND_DIE = """
from celery import signals
from config.celery import app
from django.contrib.auth.models import User
from orchestration.models import Decision
from tests.factories import decide

@signals.before_task_publish.connect
def die(**_):
    os.kill(os.getpid(), signal.SIGKILL)

decide(Decision.objects.get(pk=sys.argv[2]), "approve", user=User.objects.get(username="sir"))
print("sent the wake-up")
"""


def test_c_08_decider_killed_between_commit_and_enqueue_is_made_good_by_the_sweep(
    program: Program,
) -> None:
    new_sir()
    project = new_project()
    root = submit_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "medium", "fix": FIX})
    )
    drive(project)
    decision = open_decision_of(project)
    lose_messages()
    with program(DECIDE_AND_DIE, str(decision.pk)) as process:
        assert killed(process) == ""
    assert Decision.objects.get(pk=decision.pk).status == DecisionStatus.DECIDED
    assert child(root, "1").status == TaskStatus.REVIEW
    fixers = Assignment.objects.filter(seat="fixer")
    assert [row.status for row in fixers] == [AssignmentStatus.QUEUED]
    assert lose_messages() == 0
    with workers():
        sweep_job()
        wait_for_end(root)
    assert child(root, "1").defects.get().status == "verified"
    assert fixers.get().token == 1


DECIDE_WITHOUT_COMMIT = """
from django.contrib.auth.models import User
from django.db import transaction
from orchestration.models import Decision
from tests.factories import decide

with transaction.atomic():
    decide(Decision.objects.get(pk=sys.argv[2]), "approve", user=User.objects.get(username="sir"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_decider_killed_before_the_commit_has_decided_nothing(program: Program) -> None:
    new_sir()
    project = new_project()
    root = submit_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "medium", "fix": FIX})
    )
    drive(project)
    decision = open_decision_of(project)
    with program(DECIDE_WITHOUT_COMMIT, str(decision.pk)) as process:
        assert killed(process) == ""
    assert open_decision_of(project).version == decision.version
    assert not Assignment.objects.filter(seat="fixer").exists()
    decide(decision, "approve")
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
