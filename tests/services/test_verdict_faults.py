"""What a verdict sets in motion runs to its end: after a retry, an abort, a seat filled again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from orchestration.models import Assignment, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.sweeping import sweep
from orchestration.states import Seat, TaskStatus
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


def live_seats(task: Task) -> list[str]:
    """The seats of a task that are queued or leased."""
    rows = task.assignments.filter(status__in=["queued", "leased"]).order_by("pk")
    return list(rows.values_list("seat", flat=True))


def let_a_seat_expire(project: Project, seat: Seat, *, times: int = 3) -> None:
    """Let a seat's holders fall silent, one after the other."""
    for _ in range(times):
        agent = new_agent(project=project)
        held = claim_for_agent(agent=agent, wish=Wish([seat]), actor=actor_of(agent))
        assert held is not None
        past = timezone.now() - timedelta(minutes=5)
        Assignment.objects.filter(pk=held.pk).update(lease_expires_at=past)
        sweep()


@pytest.mark.parametrize("verdict", ["retry", "amend"])
def test_a_retried_root_is_planned_once_and_runs_to_its_end(verdict: str) -> None:
    project = new_project()
    root = submit_plan(project, step("1", run=["test -e ok"]))
    drive(project)
    (Path(project.workspace) / "ok").write_text("1")
    payload = {"text": "the amended text"} if verdict == "amend" else None
    decide(open_decision_of(project, "max_retries"), verdict, reason="again", payload=payload)
    assert live_seats(root) == ["planner"]
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert root.plans.filter(attempt=fresh(root).attempt).count() == 1


def test_an_abort_starts_the_next_root_once() -> None:
    project = new_project()
    bad = submit_plan(project, step("1", run=["false"]))
    second, third = submit_plan(project, step("1")), submit_plan(project, step("1"))
    drive(project)
    decide(open_decision_of(project, "max_retries"), "abort", reason="not worth it")
    assert fresh(bad).status == TaskStatus.CANCELLED
    assert len(live_seats(second)) == 1
    assert live_seats(third) == []
    drive(project)
    assert [fresh(one).status for one in (second, third)] == [TaskStatus.DONE] * 2
    assert second.blueprints.count() == 1


def test_a_qa_seat_that_failed_three_times_is_filled_again() -> None:
    project = new_project(policy={"seats": {"qa": ["external"]}})
    root = submit_plan(project, step("1"))
    drive(project)
    let_a_seat_expire(project, Seat.QA)
    decide(open_decision_of(project, "waiting_human"), "approve")
    assert child(root, "1").status == TaskStatus.REVIEW
    assert live_seats(child(root, "1")) == ["qa"]
    qa = new_agent(project=project)
    held = claim_for_agent(agent=qa, wish=Wish([Seat.QA]), actor=actor_of(qa))
    assert held is not None
    digests = [one.sha256 for one in child(root, "1").outputs.all()]
    submit_result(
        hold=Hold(held.pk, qa, held.lease_token),
        document={"verdict": "pass", "artifact_digests": digests, "defects": []},
        actor=actor_of(qa),
    )
    assert child(root, "1").status == TaskStatus.DONE


def test_a_fixer_seat_that_failed_three_times_is_filled_again() -> None:
    project = new_project()
    root = submit_plan(project, step("1", run=["false"], on_failure={"severity": "high"}))
    drive(project)
    let_a_seat_expire(project, Seat.FIXER)
    assert child(root, "1").status == TaskStatus.WAITING_HUMAN
    decide(open_decision_of(project, "waiting_human"), "approve")
    assert child(root, "1").status == TaskStatus.REVIEW
    assert live_seats(child(root, "1")) == ["fixer"]
