"""What the second question says that cancelling ends: only what really needs the task."""

from __future__ import annotations

import html

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.models import Decision, Project, Task
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
ONCE = {"thresholds": {"max_retries": 1}}


def words_of(client: Client, decision: Decision) -> str:
    """The whole page of a decision as a reader sees it."""
    answer = client.get(reverse("dashboard:decision", args=[decision.pk]))
    return html.unescape(answer.content.decode())


def fatal(project: Project) -> Task:
    """A root whose only attempt failed."""
    root = submit_plan(project, step("1", run=["ls wanted"]))
    drive(project)
    return root


def test_abort_names_nothing_that_only_waits_for_the_project(sir_client: Client) -> None:
    project = new_project(policy=ONCE)
    root = fatal(project)
    submit_plan(project, step("1"))
    submit_plan(project, step("1"))
    shown = words_of(sir_client, open_decision_of(project))
    assert f"Cancels {root} and its steps. No other task needs it." in shown
    assert "stay blocked" not in shown


def test_abort_counts_what_needs_the_task_however_far_away(sir_client: Client) -> None:
    project = new_project(policy=ONCE)
    root = fatal(project)
    submit_plan(project, step("1"))
    second = submit_plan(project, step("1"), depends_on=(str(root),))
    shown = words_of(sir_client, open_decision_of(project))
    assert f"Cancels {root} and its steps. 1 task that needs it stays blocked." in shown
    submit_plan(project, step("1"), depends_on=(str(second),))
    shown = words_of(sir_client, open_decision_of(project))
    assert f"Cancels {root} and its steps. 2 tasks that need it stay blocked." in shown


def test_abort_of_a_step_says_that_its_task_plans_again(sir_client: Client) -> None:
    project = new_project()
    root = submit_plan(project, agent_step("one"))
    drive(project)
    agent = new_agent()
    claim(child(root, "one"), agent)
    set_status(child(root, "one"), agent, "waiting_human", detail="Which?")
    shown = words_of(sir_client, open_decision_of(project))
    assert f"Cancels step “one” and what needs it. {root} plans again" in shown
    assert f"Cancels {root}" not in shown


def test_commands_are_struck_out_only_where_they_can_be_amended(sir_client: Client) -> None:
    project = new_project()
    submit_plan(project, step("1", run=["rm -r olddata"]))
    drive(project)
    shown = words_of(sir_client, open_decision_of(project, "waiting_human"))
    assert "$ rm -r olddata" in shown
    assert 'name="remove"' not in shown
    assert "Tick what to strike out" not in shown
    other = new_project()
    submit_plan(other, step("1", run=["touch a"]), is_trusted=False)
    drive(other)
    shown = words_of(sir_client, open_decision_of(other, "command_approval"))
    assert 'name="remove"' in shown
    assert "Tick what to strike out" in shown
