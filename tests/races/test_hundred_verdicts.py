"""C-01: approve and reject fired together, a hundred times, on both databases."""

from __future__ import annotations

from typing import Any

from orchestration.errors import AlreadyDecided
from orchestration.models import Assignment, AuditEvent, Decision
from orchestration.services.decisions import Outcome
from orchestration.states import AssignmentStatus, DecisionStatus, TaskStatus
from tests.factories import decide, fresh, new_project, new_sir
from tests.races.contest import asking_task, on_both, question_of, refusals, rivals

pytestmark = on_both
ROUNDS = 100
LANDS_IN = {"approve": TaskStatus.WORKING, "reject": TaskStatus.PENDING}


def assert_one_won(decision: Decision, outcomes: list[Any]) -> None:
    """One verdict stands, the other was told which; the task resumed once."""
    (winner,) = [one for one in outcomes if isinstance(one, Outcome)]
    (loser,) = refusals(outcomes)
    assert isinstance(loser, AlreadyDecided)
    assert decision.task is not None
    task = decision.task
    stored = Decision.objects.get(task=task)
    assert stored.pk == winner.decision.pk
    assert stored.status == DecisionStatus.DECIDED
    standing = loser.extra["standing"]
    person = stored.decided_by
    assert person is not None
    assert (standing["verdict"], standing["decided_by"]) == (stored.verdict, person.username)
    closed = AuditEvent.objects.filter(subject=f"decision:{stored.pk}", kind="decision.decided")
    assert closed.count() == 1
    moves = AuditEvent.objects.filter(task=task, before__status=TaskStatus.WAITING_HUMAN.value)
    assert moves.count() == 1
    assert fresh(task).status == LANDS_IN[stored.verdict]
    live = [AssignmentStatus.QUEUED.value, AssignmentStatus.LEASED.value]
    assert Assignment.objects.filter(task=task, status__in=live).count() == 1


def test_c_01_one_verdict_wins_every_round() -> None:
    project = new_project(policy={"thresholds": {"max_retries": 3}})
    one, other = new_sir("one"), new_sir("other")
    decisions = [question_of(asking_task(project)) for _ in range(ROUNDS)]
    with rivals(2) as fire:
        for decision in decisions:
            outcomes = fire(
                lambda decision=decision: decide(decision, "approve", user=one),
                lambda decision=decision: decide(decision, "reject", reason="no", user=other),
            )
            assert_one_won(decision, outcomes)
    verdicts = set(Decision.objects.values_list("verdict", flat=True))
    assert verdicts <= {"approve", "reject"}
    assert Decision.objects.count() == ROUNDS
