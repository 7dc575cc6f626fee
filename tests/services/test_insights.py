"""The measures against rows counted by hand, on both databases; their cost does not grow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestration.models import (
    Agent,
    Assessment,
    Assignment,
    Blueprint,
    Conversation,
    Decision,
    Defect,
    Deviation,
    Handshake,
    Mail,
    Output,
    Plan,
    Project,
    Task,
    Verification,
)
from orchestration.selectors.insights import Rate, read_insights
from tests.factories import new_agent, new_project, new_sir

PROVEN = {"claim": "it runs", "proof": {"ok": True, "grade": "rerun"}}
TOLD = {"claim": "it is fast", "proof": {"ok": None, "grade": "self_reported"}}


@pytest.fixture
def project(db: None) -> Project:
    return new_project("measured")


@pytest.fixture
def agent(db: None) -> Agent:
    return new_agent("coder")


def task_of(project: Project, **rest: Any) -> Task:
    """One root that has ended done."""
    number = Task.objects.filter(project=project).count() + 1
    return Task.objects.create(
        project=project, number=number, title=f"task {number}", **{"status": "done", **rest}
    )


def worked(project: Project, agent: Agent, **rest: Any) -> Task:
    """A task that an agent ended, with its assignment."""
    task = task_of(project, **rest)
    now = timezone.now()
    Assignment.objects.create(
        project=project, task=task, seat="executor", backend="external", status="done",
        agent=agent, leased_at=now, finished_at=now,
    )  # fmt: skip
    return task


def shake(task: Task, status: str = "confirmed") -> None:
    """Give a task an intent that was answered."""
    now = timezone.now()
    talk = Conversation.objects.create(project=task.project, task=task, created_at=now)
    mail = Mail.objects.create(
        project=task.project, task=task, conversation=talk, message_id=f"m-{task.pk}",
        digest="0" * 64, sender="agent:coder", created_at=now,
    )  # fmt: skip
    Handshake.objects.create(
        task=task, assignment=task.assignments.get(), token=1, mail=mail, status=status,
        created_at=now,
    )  # fmt: skip


def fault(task: Task, *, severity: str = "medium", status: str = "verified", **rest: Any) -> Defect:
    """Find a defect on a task."""
    return Defect.objects.create(
        task=task, severity=severity, status=status, title="wrong", raised_by="system", **rest
    )


def test_rework_is_told_apart_by_handshake(project: Project, agent: Agent) -> None:
    for at in range(12):
        task = worked(project, agent, failure_count=int(at == 0), tries=int(at == 1))
        shake(task)
    for at in range(4):
        task = worked(project, agent)
        if at < 2:
            fault(task, status="void" if at else "fixed")
    shake(worked(project, agent), status="rejected")
    worked(project, agent, status="working")
    task_of(project, failure_count=3)
    held = read_insights(project.pk)
    assert held.rework_with == Rate(2, 12)
    assert held.rework_with.share == pytest.approx(2 / 12)
    assert held.rework_without == Rate(1, 5)
    assert held.rework_without.share is None, "below ten cases nothing is a fact"


def hand_in(task: Task, *assertions: dict[str, Any], **rest: Any) -> None:
    Output.objects.create(task=task, title="x", assertions=list(assertions), **rest)


def test_trust_is_held_against_what_came_later(project: Project) -> None:
    for _ in range(3):
        hand_in(task_of(project), PROVEN, PROVEN)
    wrong = task_of(project)
    hand_in(wrong, PROVEN)
    fault(wrong)
    low = task_of(project)
    hand_in(low, TOLD)
    fault(low, severity="low")
    hand_in(task_of(project, status="failed"), TOLD)
    hand_in(task_of(project), PROVEN, TOLD)
    earlier = task_of(project)
    Defect.objects.filter(pk=fault(earlier).pk).update(
        created_at=timezone.now() - timedelta(hours=1)
    )
    hand_in(earlier, PROVEN)
    hand_in(task_of(project), PROVEN, is_orphan=True)
    hand_in(task_of(project, status="working"), PROVEN)
    hand_in(task_of(project))
    held = read_insights(project.pk)
    assert held.trust == {"low": Rate(1, 2), "partial": Rate(1, 1), "high": Rate(4, 5)}
    assert not held.trust_is_cut


def blueprint_of(task: Task, *changes: str) -> None:
    plan = Plan.objects.create(task=task, backend="rules")
    blueprint = Blueprint.objects.create(
        task=task, plan=plan, number=1, canonical="{}", sha256="0" * 64
    )
    for change in changes:
        Deviation.objects.create(blueprint=blueprint, change=change, reason="so", actor="human:sir")


def test_deviations_are_counted_by_category_and_by_plan(project: Project) -> None:
    blueprint_of(task_of(project), "added", "added", "skipped")
    blueprint_of(task_of(project))
    blueprint_of(task_of(new_project("other")), "changed")
    held = read_insights(project.pk)
    assert held.deviations == {"added": 2, "skipped": 1, "changed": 0}
    assert held.deviating == Rate(1, 2)


def test_findings_are_told_apart_by_category(project: Project) -> None:
    task = task_of(project)
    for category, status, count in (
        ("defect", "verified", 4), ("scope", "verified", 3), ("granularity", "fixing", 2),
        ("assumption", "accepted_as_is", 1), ("scope", "void", 5), ("assumption", "rejected", 5),
    ):  # fmt: skip
        for _ in range(count):
            fault(task, status=status, category=category)
    fault(task_of(new_project("other")), category="scope")
    held = read_insights(project.pk).findings
    assert held == {
        "defect": Rate(4, 10), "scope": Rate(3, 10), "granularity": Rate(2, 10),
        "assumption": Rate(1, 10),
    }  # fmt: skip
    assert held["scope"].share == pytest.approx(0.3)


def test_failed_anchors_are_told_apart_by_kind(project: Project) -> None:
    task = task_of(project)
    for name, outcome, layer in (
        ("pytest -q", "passed", "L3"), ("pytest -q", "failed", "L3"),
        ("claim:file:a.py: wrote it", "failed", "L3"), ("claim:test:py: passed", "passed", "L3"),
        ("claim:build:: it builds", "not_possible", "L3"), ("", "passed", "L3"),
        ("x", "failed", "L1"),
    ):  # fmt: skip
        Verification.objects.create(task=task, layer=layer, name=name, outcome=outcome)
    assert read_insights(project.pk).anchors == {
        "command": Rate(1, 2), "file": Rate(1, 1), "build": Rate(), "test": Rate(0, 1),
    }  # fmt: skip


def test_retries_of_steps_and_of_roots(project: Project) -> None:
    root = task_of(project, is_planned=True, attempt=2)
    task_of(project, is_planned=True)
    task_of(project, parent=root, root=root, tries=1)
    task_of(project, parent=root, root=root, fix_round=2)
    task_of(project, parent=root, root=root)
    task_of(project, parent=root, root=root, status="pending", tries=1)
    task_of(project, kind="message")
    held = read_insights(project.pk)
    assert (held.retried, held.replanned) == (Rate(2, 3), Rate(1, 2))


def asked(project: Project, kind: str, seconds: float | None, sir: User | None) -> None:
    """Ask Sir something that he decided after some seconds, or that is open."""
    task = task_of(project)
    row = Decision.objects.create(
        project=project, task=task, kind=kind, priority=2, digest="0" * 64, title="x", question="y",
        status="open" if seconds is None else "decided",
        decided_at=None if seconds is None else timezone.now(), decided_by=sir,
        decided_by_policy="" if sir or seconds is None else "reject-1h",
    )  # fmt: skip
    if seconds is not None:
        row.refresh_from_db()
        assert row.decided_at is not None
        Decision.objects.filter(pk=row.pk).update(
            created_at=row.decided_at - timedelta(seconds=seconds)
        )


def test_median_of_sirs_time_by_kind_and_none_below_ten(project: Project) -> None:
    sir = new_sir()
    for seconds in (10, 20, 30, 40, 50, 60, 70, 80, 90, 1000):
        asked(project, "medium_defect", seconds, sir)
    asked(project, "medium_defect", 5, None)
    asked(project, "medium_defect", None, None)
    for seconds in (1, 2, 300):
        asked(project, "clarification", seconds, sir)
    held = read_insights(project.pk)
    told = {one.kind: (one.asked, one.decided, one.seconds) for one in held.delays}
    assert told["clarification"] == (3, 3, None)
    assert told["medium_defect"][:2] == (12, 10)
    assert told["medium_defect"][2] == pytest.approx(55.0)
    assert (held.decisions.total, held.decisions.cases) == (15, 15)
    asked(project, "medium_defect", 61, sir)
    (odd,) = [one for one in read_insights(project.pk).delays if one.kind == "medium_defect"]
    assert odd.seconds == pytest.approx(60.0)


def spend(project: Project, seat: str, backend: str, **usage: Any) -> None:
    Assignment.objects.create(
        project=project, task=task_of(project), seat=seat, backend=backend, status="done",
        usage=usage, leased_at=timezone.now(), transient_count=1,
    )  # fmt: skip


def test_cost_by_seat_keeps_reported_own_and_unknown_apart(project: Project) -> None:
    spend(project, "executor", "command")
    spend(project, "executor", "external", cost_usd=0.5, input_tokens=100, output_tokens=20)
    spend(project, "executor", "external", cost_usd=0.25)
    spend(project, "executor", "external", turns=3)
    spend(project, "qa", "rules")
    held = read_insights(project.pk)
    executor, qa = held.costs
    assert (executor.seat, executor.assignments, executor.own) == ("executor", 4, 1)
    assert (executor.told, executor.unknown) == (2, 1)
    assert executor.cost_usd == pytest.approx(0.75)
    assert (executor.tokens, executor.tokens_unknown) == (120, 2)
    assert (qa.seat, qa.own, qa.told, qa.unknown) == ("qa", 1, 0, 0)
    assert held.transient == 5


def test_traffic_and_the_tokens_of_scoring(project: Project) -> None:
    for at in range(10):
        task = task_of(project)
        looks = [("S0", "direct")] if at < 6 else [("S0", "assess"), ("S1", "light_plan")]
        for stage, outcome in looks:
            Assessment.objects.create(
                task=task, traffic_of=project, stage=stage, outcome=outcome, total=11
            )
    spend(project, "scorer", "external", input_tokens=400, output_tokens=50)
    held = read_insights(project.pk)
    assert (held.traffic.messages, held.traffic.direct_by_rule, held.traffic.light) == (10, 6, 4)
    assert held.overhead.per_message == pytest.approx(45.0)
    spend(project, "scorer", "external")
    assert read_insights(project.pk).overhead.per_message is None, "an unknown is never zero"


def test_measures_cost_the_same_queries_for_one_row_and_for_many(
    project: Project, agent: Agent
) -> None:
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            read_insights(project.pk)
        counts.append(len(queries))
        for _one in range(30):
            task = worked(project, agent)
            hand_in(task, PROVEN)
            blueprint_of(task, "added")
            asked(project, "medium_defect", 9, new_sir())
    assert counts[0] == counts[1] == 12
    assert read_insights(None).retried.cases == 120
