"""S2: revisions, audit, rejection to Sir and his three verdicts, the lock and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import DatabaseError

from orchestration.models import Agent, Artifact, Blueprint, Project, Task
from orchestration.services.assignments import lease
from orchestration.services.intake import NewTask, create_task
from orchestration.services.lookups import lock_for_result
from orchestration.services.results import record_agent_result
from orchestration.services.work import Actor, unit_of_work
from orchestration.states import TaskStatus
from tests.factories import (
    actor_of,
    child,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
GOOD = {"steps": [{"id": 1, "action": "think about it", "delegate": False}]}
CLASH = {
    "steps": [
        {"id": 1, "action": "write one", "writes": ["same.txt"]},
        {"id": 2, "action": "write two", "writes": ["same.txt"]},
    ]
}
MALFORMED = {"steps": [{"id": 1, "action": "loop", "depends_on": [1, "ghost"]}]}


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def root(project: Project) -> Task:
    """A task that lists no steps, so that it waits for an external planner."""
    text = "把散落的配置收拢起来"
    return create_task(project_id=project.pk, new=NewTask(text=text, route="three_step"), actor=SIR)


def hand_in_plan(task: Task, agent: Agent, document: dict[str, Any]) -> None:
    """Answer the queued planner assignment as an agent, then let the auditor run."""
    with unit_of_work(actor_of(agent)) as work:
        queued = task.assignments.select_related("task__project").get(
            seat="planner", status="queued"
        )
        queued = lock_for_result(queued)
        lease(work, queued, queued.project.policy, worker=agent.name, agent=agent)
        record_agent_result(work, queued, None, document)
    drive(task.project)


def test_a_task_without_listed_steps_waits_for_an_external_planner(
    project: Project, root: Task
) -> None:
    assert fresh(root).status == TaskStatus.WORKING
    assert drive(project) == 0
    assert root.assignments.get().backend == "external"


def test_a_message_that_lists_its_steps_is_planned_by_rules(project: Project) -> None:
    text = "需要规划：先收集日志，然后分析日志，最后写报告"
    root = create_task(project_id=project.pk, new=NewTask(text=text, route="three_step"), actor=SIR)
    drive(project)
    keys = list(root.children.order_by("pk").values_list("step_key", flat=True))
    assert len(keys) == 3
    assert root.blueprints.get().sha256
    assert child(root, keys[1]).remaining_dependencies == 1


def test_a_plan_that_fails_audit_goes_back_with_findings(project: Project, root: Task) -> None:
    agent = new_agent()
    hand_in_plan(root, agent, CLASH)
    plan = root.plans.get()
    assert plan.status == "needs_revision"
    asked = root.assignments.get(seat="planner", status="queued").input
    assert "same.txt" in " ".join(asked["findings"])
    hand_in_plan(root, agent, GOOD)
    assert root.blueprints.get().number == 1


def test_a_malformed_plan_lists_every_fault_and_uses_up_a_revision(
    project: Project, root: Task
) -> None:
    hand_in_plan(root, new_agent(), MALFORMED)
    plan = root.plans.get()
    assert plan.status == "needs_revision"
    messages = " ".join(fault["message"] for fault in plan.faults)
    assert "itself" in messages
    assert "ghost" in messages
    assert fresh(root).revisions_used == 1


@pytest.fixture
def rejected(project: Project, root: Task) -> Task:
    agent = new_agent()
    for name in ("a", "b", "c"):
        hand_in_plan(root, agent, {**CLASH, "summary": name})
    return root


def test_the_third_refusal_is_rejected_and_asks_sir(project: Project, rejected: Task) -> None:
    assert [plan.status for plan in rejected.plans.order_by("pk")] == [
        "needs_revision",
        "needs_revision",
        "rejected",
    ]
    assert rejected.plans.latest("pk").audits.get().verdict == "REJECTED"
    assert open_decision_of(project).kind == "plan_rejected"
    assert not rejected.blueprints.exists()


def test_accept_locks_it_shown_as_overridden(project: Project, rejected: Task) -> None:
    decide(open_decision_of(project), "accept", reason="I know these two files")
    assert rejected.plans.latest("pk").is_override
    assert rejected.blueprints.get().plan.is_override


def test_guide_starts_the_count_again_and_the_same_plan_counts_as_an_attempt(
    project: Project, rejected: Task
) -> None:
    decide(open_decision_of(project), "guide", reason="write to two files")
    assert fresh(rejected).revisions_used == 0
    agent = new_agent()
    asked = rejected.assignments.get(seat="planner", status="queued").input
    assert asked["guidance"] == "write to two files"
    hand_in_plan(rejected, agent, {**CLASH, "summary": "c"})
    assert rejected.plans.latest("pk").status == "rejected"
    assert fresh(rejected).failure_count == 1
    assert fresh(rejected).failure_context[-1]["class"] == "rejected_by_sir"
    drive(project)
    hand_in_plan(fresh(rejected), agent, GOOD)
    assert rejected.blueprints.exists()


def test_cancel_ends_the_task(project: Project, rejected: Task) -> None:
    decide(open_decision_of(project), "cancel", reason="not worth it")
    assert fresh(rejected).status == TaskStatus.CANCELLED


def test_a_locked_blueprint_refuses_every_change(project: Project) -> None:
    root = submit_plan(project, step("1"))
    drive(project)
    blueprint = root.blueprints.get()
    with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
        Blueprint.objects.filter(pk=blueprint.pk).update(canonical="{}")
    with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
        Artifact.objects.filter(task__parent=root).update(name="other")
    with (
        pytest.raises((IntegrityError, DatabaseError)),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM orchestration_auditevent")


def test_suggestions_of_the_audit_reach_the_blueprint(project: Project) -> None:
    root = submit_plan(project, step("1", run=["no-such-tool-here --help"]))
    drive(project)
    assert root.plans.earliest("pk").audits.get().verdict == "APPROVED_WITH_SUGGESTIONS"
    assert root.blueprints.earliest("pk").suggestions
