"""An item whose deadline has passed is its policy's for whoever looks, before any sweep came by."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.errors import AlreadyDecided
from orchestration.models import AuditEvent, Decision
from orchestration.services.sweeping import expire_decisions
from tests.dashboard.conftest import verdict_form
from tests.factories import decide, drive, new_project, open_decision_of, step, submit_plan

RULE = {"policy_id": "medium-1h", "after_seconds": 3600, "outcome": "reject"}


@pytest.fixture
def asked(sir: User) -> Decision:
    """A Medium defect that a policy rejects after an hour."""
    project = new_project("late", policy={"expiry": {"medium_defect": RULE}})
    submit_plan(project, step("1", run=["false"], on_failure={"severity": "medium"}))
    drive(project)
    return open_decision_of(project)


def late(asked: Decision, seconds: float = 0.5) -> time_machine.travel:
    """A moment after the deadline, at which no sweep has run."""
    assert asked.deadline is not None
    return time_machine.travel(asked.deadline + timedelta(seconds=seconds), tick=False)


def test_late_verdict_is_refused_and_names_the_policy(asked: Decision) -> None:
    with late(asked), pytest.raises(AlreadyDecided) as refused:
        decide(asked, "approve")
    standing = refused.value.extra["standing"]
    assert (standing["verdict"], standing["decided_by"], standing["status"]) == (
        "reject", "medium-1h", "decided",
    )  # fmt: skip
    assert AuditEvent.objects.filter(kind="decision.decided").count() == 1


def test_late_click_answers_409_with_the_closed_card(asked: Decision, sir_client: Client) -> None:
    url = reverse("dashboard:decide", args=[asked.pk])
    with late(asked):
        answer = sir_client.post(url, verdict_form(asked, "approve"), headers={"HX-Request": "1"})
    assert answer.status_code == 409
    assert "“Rejected” by medium-1h" in answer.content.decode()
    assert 'name="verdict"' not in answer.content.decode()


@pytest.mark.parametrize("name", ["decision", "decision_dock", "decision_pane"])
def test_whoever_opens_it_finds_it_closed(name: str, asked: Decision, sir_client: Client) -> None:
    with late(asked):
        page = sir_client.get(reverse(f"dashboard:{name}", args=[asked.pk])).content.decode()
    assert 'name="verdict"' not in page
    asked.refresh_from_db()
    assert (asked.verdict, asked.decided_by_policy) == ("reject", "medium-1h")


def test_api_reads_it_as_decided(asked: Decision, sir_client: Client) -> None:
    with late(asked):
        found = sir_client.get(f"/api/decisions/{asked.pk}/").json()
    assert (found["status"], found["verdict"]) == ("decided", "reject")


def test_head_and_an_earlier_look_decide_nothing(asked: Decision, sir_client: Client) -> None:
    url = reverse("dashboard:decision", args=[asked.pk])
    with late(asked, seconds=-1):
        page = sir_client.get(url).content.decode()
    with late(asked):
        sir_client.head(url)
    asked.refresh_from_db()
    assert asked.status == "open"
    assert 'data-expires-in="1000"' in page
    assert "policy medium-1h: Rejected." in page
    assert "<noscript> This page does not change by itself" in page


def test_sweep_after_a_look_finds_nothing_to_do(asked: Decision, sir_client: Client) -> None:
    with late(asked):
        sir_client.get(reverse("dashboard:decision", args=[asked.pk]))
        assert expire_decisions() == 0


def test_paused_project_keeps_its_questions_open(asked: Decision, sir_client: Client) -> None:
    deadline = asked.deadline
    sir_client.post(reverse("dashboard:pause", args=["late"]))
    asked.refresh_from_db()
    asked.deadline = deadline
    with late(asked):
        sir_client.get(reverse("dashboard:decision", args=[asked.pk]))
    asked.refresh_from_db()
    assert asked.status == "open"
