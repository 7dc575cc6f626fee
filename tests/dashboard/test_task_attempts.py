"""What a task's page folds of earlier attempts, and what its log counts."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.models import Task
from orchestration.services.audit import seal_events
from orchestration.states import TaskStatus
from tests.dashboard.conftest import Waiting
from tests.dashboard.test_task_pages import page_of
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    fresh,
    new_agent,
    new_project,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db


def folded(page: str, section: str) -> dict[str, str]:
    """The folded attempts of a section: their line, and what they hold."""
    found: dict[str, str] = {}
    for part in page.split(f'id="{section}-attempt-')[1:]:
        line, _end, held = part.partition("</summary>")
        words = " ".join(re.sub(r"<[^>]+>", " ", line.partition("<summary>")[2]).split())
        found[words] = held.partition("</details>")[0]
    return found


def test_earlier_attempts_are_folded_with_their_class(sir_client: Client) -> None:
    project = new_project()
    root = submit_plan(project, step("1", run=["ls nowhere"]))
    drive(project)
    page = page_of(sir_client, root, project)
    plans = folded(page, "plan")
    assert list(plans) == ["Attempt 2 a check failed 2", "Attempt 1 a check failed 2"]
    assert "Blueprint locked" in plans["Attempt 1 a check failed 2"]
    assert "attempt 3, rev 1" in page.partition('id="plan-attempt-')[0]
    work = folded(page, "assignments")
    assert len(work) == 2
    assert all("executor" in held for held in work.values())
    failed = Task.objects.filter(parent=root).latest("pk")
    assert folded(page_of(sir_client, failed, project), "plan") == {}


def test_first_attempt_stands_open(waiting: Waiting, sir_client: Client) -> None:
    page = page_of(sir_client, waiting.root, waiting.project)
    assert "attempt-fold" not in page


def test_earlier_try_of_a_step_is_folded(sir_client: Client) -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    one = child(root, "1")
    agent = new_agent(project=project)
    claim(one, agent)
    set_status(fresh(one), agent, TaskStatus.FAILED, detail="the tool is gone")
    drive(project)
    claim(fresh(one), agent)
    page = page_of(sir_client, fresh(one), project)
    assert [line.split()[:2] for line in folded(page, "assignments")] == [["Attempt", "1"]]


def test_log_counts_one_step_and_several(sir_client: Client) -> None:
    project = new_project()
    submit_plan(project, step("1", run=["true"]))
    submit_plan(project, step("1", run=["true"]), step("2", run=["true"]))
    drive(project)
    seal_events()
    log = sir_client.get(reverse("dashboard:log", args=[project.slug])).content.decode()
    assert "locked, 1 step<" in log
    assert "locked, 2 steps<" in log
