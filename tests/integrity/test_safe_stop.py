"""Faults planted by force: each stops its project, raises the P0 item, and changes nothing else."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from orchestration.errors import Conflict
from orchestration.models import (
    AuditEvent,
    Decision,
    Project,
    Task,
    TaskDependency,
)
from orchestration.services.audit import seal_events
from orchestration.services.integrity import (
    LOST,
    check_project,
    require_intact,
)
from orchestration.services.projects import pause_project
from orchestration.services.work import SYSTEM
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)
from tests.integrity.planted import (
    KINDS,
    PLANTED,
    changed_status,
    everything_else,
)
from tests.integrity.planting import (
    TASK,
    force,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def root() -> Task:
    """A plan whose first step is done and locked; the second waits for an agent."""
    project = new_project("demo")
    made = submit_plan(
        project,
        step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
        agent_step("2", after=["1"]),
        agent_step("3", after=["2"]),
    )
    drive(project)
    seal_events()
    return made


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_stops_the_project_and_sir_resumes_it_after_repair(
    root: Task, name: str
) -> None:
    repair = PLANTED[name](root)
    before, trail = everything_else(), AuditEvent.objects.count()
    found = check_project(project_id=root.project_id, actor=SYSTEM, source="test")
    assert KINDS.get(name, name) in {one.kind for one in found.faults}
    assert found.is_stopped
    assert everything_else() == before
    told = AuditEvent.objects.order_by("pk").values_list("kind", flat=True)[trail:]
    assert list(told) == ["project.safe_stop", "decision.opened"]
    assert Project.objects.get(pk=root.project_id).status == "safe_stop"
    item = open_decision_of(found.project)
    assert (item.kind, item.is_p0, item.priority, item.task_id) == ("safe_stop", True, 1, None)
    assert item.title == LOST == "关键状态丢失，无法继续执行。"
    assert item.question.startswith(LOST)
    assert "Critical state is lost" in item.question
    assert item.content["faults"][0]["detail"]
    with pytest.raises(Conflict) as refused:
        decide(item, "resume", reason="I think it is fine")
    assert refused.value.code == "integrity_faults"
    assert refused.value.extra["faults"]
    item.refresh_from_db()
    assert item.status == "open"
    repair()
    decide(item, "resume", reason="restored from the backup")
    assert Project.objects.get(pk=root.project_id).status == "active"
    assert fresh(root).status == "working"


@pytest.mark.parametrize(
    ("noun", "forced"),
    [
        ("assignment", "failed"),
        ("plan", "auditing"),
        ("defect", "open"),
        ("decision", "expired"),
        ("project", "active"),
    ],
)
def test_a_row_of_each_machine_is_held_against_its_history(noun: str, forced: str) -> None:
    project = new_project("demo")
    failing = step("1", run=["false"], on_failure={"severity": "medium"})
    submit_plan(project, failing, agent_step("2"))
    drive(project)
    decide(open_decision_of(project, "medium_defect"), "accept_as_is", reason="harmless")
    pause_project(project_id=project.pk, actor=SYSTEM)
    table = f"orchestration_{noun}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, status FROM {table} ORDER BY id")
        pk, stood = cursor.fetchall()[0]
    assert stood != forced
    force(f"UPDATE {table} SET status = %s WHERE id = %s", forced, pk)
    found = check_project(project_id=project.pk, actor=SYSTEM, source="test")
    assert [(one.kind, one.subject) for one in found.faults] == [
        ("unexplained_row", f"{noun}:{pk}")
    ]
    assert found.is_stopped


def test_a_project_that_sir_paused_before_its_stop_stays_paused(root: Task) -> None:
    pause_project(project_id=root.project_id, actor=SYSTEM)
    repair = changed_status(root)
    assert check_project(project_id=root.project_id, actor=SYSTEM, source="test").is_stopped
    repair()
    decide(open_decision_of(root.project), "resume", reason="restored from the backup")
    project = Project.objects.get(pk=root.project_id)
    assert (project.status, project.is_paused_by_sir) == ("suspended", True)


def test_sir_waives_nothing_that_is_broken(root: Task) -> None:
    Project.objects.filter(pk=root.project_id).update(
        policy_json='{"thresholds": {"max_retries": 1, "step_attempts": 1}}'
    )
    agent = new_agent(project=root.project)
    claim(child(root, "2"), agent)
    set_status(child(root, "2"), agent, "failed", detail="no")
    assert fresh(root).status == "fatal"
    item = open_decision_of(root.project, "max_retries")
    pk = child(root, "3").pk
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", pk)
    with pytest.raises(Conflict) as refused:
        decide(item, "waive", reason="good enough")
    assert (refused.value.code, fresh(root).status) == ("integrity_faults", "fatal")
    item.refresh_from_db()
    assert item.status == "open"
    stop = open_decision_of(root.project, "safe_stop")
    assert stop.content["source"] == "decision"
    assert Project.objects.get(pk=root.project_id).status == "safe_stop"
    force(f"UPDATE {TASK} SET status = 'pending' WHERE id = %s", pk)
    decide(stop, "resume", reason="restored from the backup")
    decide(item, "waive", reason="good enough")
    assert fresh(root).status == "done"


def test_a_second_check_asks_no_second_time(root: Task) -> None:
    changed_status(root)
    for _ in range(3):
        check_project(project_id=root.project_id, actor=SYSTEM, source="test")
    assert Decision.objects.filter(kind="safe_stop").count() == 1


def test_two_stopped_projects_have_an_item_each(root: Task) -> None:
    changed_status(root)
    other = new_project("second")
    two = submit_plan(other, agent_step("1"), agent_step("2", after=["1"]))
    drive(other)
    changed_status(two)
    call = StringIO()
    with pytest.raises(CommandError, match="2 faults in 2 of 2 projects"):
        call_command("check_integrity", stdout=call)
    assert Decision.objects.filter(kind="safe_stop", status="open").count() == 2
    assert "demo stands in safe stop." in call.getvalue()
    assert f"task:{child(root, '2').pk} is review; its history left it pending" in call.getvalue()


def test_the_command_says_when_nothing_is_wrong(root: Task) -> None:
    out = StringIO()
    call_command("check_integrity", "demo", stdout=out)
    assert out.getvalue() == "Nothing is wrong in 1 projects.\n"


def test_the_loop_looks_before_it_starts_a_root(root: Task) -> None:
    second = submit_plan(root.project, agent_step("1"), text="second")
    third = submit_plan(root.project, agent_step("1"), text="third")
    for one, two in ((second, third), (third, second)):
        TaskDependency.objects.create(task=one, requires=two)
    force(f"UPDATE {TASK} SET remaining_dependencies = 0 WHERE id IN (%s, %s)", second.pk, third.pk)
    from_now = submit_plan(root.project, agent_step("1"), text="fourth", rank=-5)
    assert fresh(from_now).status == "pending"
    project = Project.objects.get(slug="demo")
    project.policy_json = '{"limits": {"concurrent_roots": 5}}'
    project.save()
    submit_plan(root.project, agent_step("1"), text="fifth")
    assert Project.objects.get(slug="demo").status == "safe_stop"
    assert fresh(second).status == "pending"
    assert open_decision_of(root.project, "safe_stop").content["source"] == "loop"


def test_work_that_goes_on_meanwhile_is_no_fault(root: Task) -> None:
    require_intact(root.project)
    drive(root.project)
    require_intact(root.project)


def test_an_ended_project_is_told_of_but_not_moved() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"))
    drive(project)
    assert Project.objects.get(slug="demo").status == "completed"
    force(f"UPDATE {TASK} SET status = 'review' WHERE id = %s", child(root, "1").pk)
    found = check_project(project_id=project.pk, actor=SYSTEM, source="test")
    assert found.faults
    assert not found.is_stopped
    assert Project.objects.get(slug="demo").status == "completed"
