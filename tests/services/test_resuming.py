"""What a resumed project does with the verdicts that came in while it stood still."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Assignment, AuditEvent, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.work import Actor
from orchestration.states import ProjectStatus, Seat, TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    drive,
    fresh,
    new_agent,
    new_project,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
POLICY = {
    "seats": {"validator": ["external"]},
    "thresholds": {"max_retries": 1},
    "limits": {"concurrent_roots": 2},
}
GO = {"verdict": "GO", "basis": "read it all"}
NO_GO = {"verdict": "NO-GO", "root_cause": "it does not hold"}


def roots_in_review(project: Project, count: int) -> list[Task]:
    """Bring some roots to where each waits for its validator."""
    roots = [submit_plan(project, step("1"), external_key=f"root-{n}") for n in range(count)]
    drive(project)
    return roots


def judge_in_a_pause(project: Project, *packages: dict[str, Any]) -> None:
    """Let validators hand in their packages, in the order of the roots, in a paused project."""
    agents = [new_agent(project=project) for _ in packages]
    wish = Wish([Seat.VALIDATOR])
    held = [claim_for_agent(agent=one, wish=wish, actor=actor_of(one)) for one in agents]
    pause_project(project_id=project.pk, actor=SIR)
    for agent, row, package in zip(agents, held, packages, strict=True):
        assert row is not None
        hold = Hold(row.pk, agent, row.lease_token)
        submit_result(hold=hold, document=package, actor=actor_of(agent))


def kinds(project: Project) -> list[str]:
    """List how the project itself moved."""
    rows = AuditEvent.objects.filter(subject=f"project:{project.pk}", after__has_key="status")
    return list(rows.order_by("pk").values_list("kind", flat=True))


def test_a_verdict_that_stops_the_project_leaves_what_waits_behind_it_alone() -> None:
    project = new_project(policy=POLICY)
    first, second = roots_in_review(project, 2)
    third = submit_plan(project, agent_step("1"), external_key="third")
    judge_in_a_pause(project, NO_GO, GO)
    resumed = resume_project(project_id=project.pk, actor=SIR)
    assert resumed.status == ProjectStatus.SUSPENDED
    assert resumed.version == Project.objects.get(pk=project.pk).version
    assert fresh(first).status == TaskStatus.FATAL
    assert (fresh(second).status, fresh(second).awaits_verdict) == (TaskStatus.REVIEW, True)
    assert fresh(third).status == TaskStatus.PENDING
    assert not Assignment.objects.filter(task=third).exists()


def test_a_verdict_that_completes_the_project_completes_it_once() -> None:
    project = new_project(policy=POLICY)
    roots_in_review(project, 1)
    judge_in_a_pause(project, GO)
    resumed = resume_project(project_id=project.pk, actor=SIR)
    assert resumed.status == ProjectStatus.COMPLETED
    assert resumed.version == Project.objects.get(pk=project.pk).version
    assert kinds(project) == ["project.suspended", "project.active", "project.completed"]
