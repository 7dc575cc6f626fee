"""Archived projects: what has not ended is cancelled, and nothing goes on."""

from __future__ import annotations

import pytest

from orchestration.errors import Conflict, DecisionClosed, IllegalTransition, LeaseLost
from orchestration.models import Artifact, Assignment, AuditEvent, Decision, Project, Task
from orchestration.services.agent_results import Hold, heartbeat_assignment
from orchestration.services.integrity import check_project
from orchestration.services.locked_defects import report_defect
from orchestration.services.projects import archive_project
from orchestration.services.sweeping import sweep
from orchestration.services.work import SYSTEM, Actor
from orchestration.states import ASSIGNMENT_LIVE, ProjectStatus, TaskStatus
from tests.factories import (
    actor_of,
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

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")


@pytest.fixture
def project() -> Project:
    return new_project()


def test_an_archived_project_ends_its_work_and_takes_no_more(project: Project) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    agent = new_agent(project=project)
    held = claim(child(root, "1"), agent)
    asker = new_agent(project=project)
    claim(child(root, "2"), asker)
    set_status(child(root, "2"), asker, "working")
    set_status(child(root, "2"), asker, "waiting_human", detail="Which colour?")
    question = open_decision_of(project)
    token = Assignment.objects.get(pk=held.pk).lease_token
    archive_project(project_id=project.pk, actor=SIR, reason="over")
    assert Project.objects.get(pk=project.pk).status == ProjectStatus.ARCHIVED
    question.refresh_from_db()
    assert question.status == "withdrawn"
    with pytest.raises(DecisionClosed):
        decide(question, "answer", reason="red")
    with pytest.raises(LeaseLost):
        heartbeat_assignment(hold=Hold(held.pk, agent, token), actor=actor_of(agent))
    with pytest.raises(Conflict):
        submit_plan(project, step("1"))
    with pytest.raises(IllegalTransition):
        archive_project(project_id=project.pk, actor=SIR)


def test_archiving_cancels_what_has_not_ended_with_sirs_reason(project: Project) -> None:
    done = submit_plan(project, step("1"))
    drive(project)
    locked = Artifact.objects.filter(task__root=done).latest("pk")
    report_defect(
        artifact_id=locked.pk, document={"severity": "medium", "title": "a gap"}, actor=SIR
    )
    running = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    queued = submit_plan(project, agent_step("1"))
    drive(project)
    claim(child(running, "1"), new_agent(project=project))
    archive_project(project_id=project.pk, actor=SIR, reason="the budget is gone")
    drive(project)
    sweep()
    assert fresh(done).status == TaskStatus.DONE
    rest = Task.objects.filter(project=project).exclude(pk=done.pk).exclude(parent=done)
    assert {one.status for one in rest} == {TaskStatus.CANCELLED}
    assert {fresh(one).cancel_reason for one in (running, queued)} == {"cancelled_by_sir"}
    assert locked.defects.get().status == "void"
    assert not Decision.objects.filter(project=project, status="open").exists()
    live = [state.value for state in ASSIGNMENT_LIVE]
    assert not Assignment.objects.filter(project=project, status__in=live).exists()
    event = AuditEvent.objects.get(kind="task.cancelled", task_id=queued.pk)
    assert event.why == "the project is archived: the budget is gone"
    assert check_project(project_id=project.pk, actor=SYSTEM, source="test").faults == ()


def test_archiving_in_safe_stop_leaves_the_tasks_as_they_were_found(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    Project.objects.filter(pk=project.pk).update(status=ProjectStatus.SAFE_STOP.value)
    archive_project(project_id=project.pk, actor=SIR)
    assert (fresh(root).status, child(root, "1").status) == ("working", "pending")
    assert not child(root, "1").assignments.filter(status="queued").exists()
