"""Reminders: at growing intervals while an item waits, once before its deadline, never after."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import time_machine

from orchestration.errors import PolicyInvalid
from orchestration.models import AuditEvent, Decision, Notice
from orchestration.notification_policy import Notifications
from orchestration.policy import Policy
from orchestration.rules.reminders import reminder_interval
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.reminding import remind
from orchestration.services.work import SYSTEM
from tests.factories import decide, new_project
from tests.races.contest import asking_task, question_of

HOUR = 3600
POLICY = {
    "notifications": {
        "reminder_seconds": HOUR, "reminder_growth": 3, "reminder_longest_seconds": 5 * HOUR,
    }
}  # fmt: skip
EXPIRY = {
    "expiry": {
        "waiting_human": {"policy_id": "day", "after_seconds": 24 * HOUR, "outcome": "reject"}
    }
}


def asked(policy: dict[str, Any]) -> Decision:
    """An open question under a policy."""
    return question_of(asking_task(new_project(policy=policy)))


def events(decision: Decision) -> list[tuple[str, int]]:
    """What people are told of an item, in order."""
    return list(Notice.objects.filter(decision=decision).values_list("event", "round"))


def remind_at(moment: datetime) -> int:
    """Look for what is due at a moment."""
    with time_machine.travel(moment, tick=False):
        return remind()


@pytest.mark.django_db
def test_reminders_come_at_growing_intervals_up_to_the_longest() -> None:
    decision = asked(POLICY)
    moments = []
    for _ in range(4):
        decision.refresh_from_db()
        assert decision.remind_at is not None
        moments.append(decision.remind_at)
        assert remind_at(decision.remind_at - timedelta(seconds=1)) == 0
        assert remind_at(decision.remind_at) == 1
        assert remind_at(decision.remind_at) == 0
    hours = [round((later - sooner).total_seconds() / HOUR) for sooner, later in pairwise(moments)]
    assert hours == [3, 5, 5]
    assert events(decision)[1:] == [("reminder", n) for n in range(1, 5)]
    assert AuditEvent.objects.filter(kind="decision.reminded").count() == 4


@pytest.mark.django_db
def test_deadline_is_told_once_and_reminders_go_on() -> None:
    decision = asked(EXPIRY)
    assert decision.deadline is not None
    near = decision.deadline - timedelta(hours=1)
    assert decision.remind_at == near
    assert remind_at(near + timedelta(seconds=1)) == 1
    assert events(decision) == [("opened", 0), ("deadline", 0)]
    decision.refresh_from_db()
    assert decision.remind_at is not None
    assert decision.remind_at > decision.deadline


@pytest.mark.django_db
def test_deadline_that_stood_still_is_told_before_its_new_end() -> None:
    decision = asked(EXPIRY)
    project = decision.project
    pause_project(project_id=project.pk, actor=SYSTEM)
    with time_machine.travel(decision.created_at + timedelta(days=3), tick=False):
        resume_project(project_id=project.pk, actor=SYSTEM)
        assert remind() == 1
    decision.refresh_from_db()
    assert events(decision)[1:] == [("reminder", 1)]
    assert decision.deadline is not None
    assert decision.remind_at == decision.deadline - timedelta(hours=1)


@pytest.mark.django_db
def test_decided_item_is_not_reminded_of() -> None:
    decision = asked(POLICY)
    decide(decision, "answer", reason="b")
    assert remind_at(decision.created_at + timedelta(days=9)) == 0
    assert events(decision) == [("opened", 0), ("decided", 0)]


@pytest.mark.django_db
def test_item_of_a_stopped_project_is_reminded_of() -> None:
    decision = asked(POLICY)
    pause_project(project_id=decision.project_id, actor=SYSTEM)
    assert remind_at(decision.created_at + timedelta(hours=2)) == 1


@pytest.mark.django_db
def test_reminding_leaves_what_is_signed_as_it_is() -> None:
    decision = asked(POLICY)
    remind_at(decision.created_at + timedelta(hours=2))
    after = Decision.objects.get(pk=decision.pk)
    assert (after.version, after.digest) == (decision.version, decision.digest)


def test_interval_never_overflows() -> None:
    policy = Notifications(reminder_growth=10)
    assert reminder_interval(policy, 100_000) == timedelta(seconds=604_800)
    slow = Notifications(reminder_seconds=864_000)
    assert reminder_interval(slow, 1) == timedelta(days=10)


@pytest.mark.parametrize(
    "section",
    [
        {"reminder_growth": 0.5}, {"reminder_seconds": 0}, {"delay_seconds": -1}, {"unknown": 1},
        {"digest_at": "24:00"}, {"digest_at": "8:00"}, {"time_zone": "Mars/Olympus"},
        {"time_zone": "../../etc/passwd"}, {"time_zone": ""},
    ],
)  # fmt: skip
def test_faulty_settings_are_refused(section: dict[str, Any]) -> None:
    with pytest.raises(PolicyInvalid):
        Policy.parse({"notifications": section})


def test_settings_of_a_policy_survive_being_stored() -> None:
    policy = Policy.parse({"notifications": {"reminder_growth": 3, "time_zone": "Asia/Shanghai"}})
    assert Policy.parse(policy.document()) == policy
