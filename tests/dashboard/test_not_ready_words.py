"""Why a task does not start, as its row, its page and the command line say it."""

from __future__ import annotations

import html

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.management.following import Follower
from orchestration.models import Project, Task
from orchestration.services.projects import pause_project
from orchestration.services.work import Actor
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


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def first(project: Project) -> Task:
    """A root whose only step waits for an agent."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    return root


def board(client: Client, project: Project) -> str:
    return html.unescape(
        client.get(reverse("dashboard:board", args=[project.slug])).content.decode()
    )


def page(client: Client, task: Task) -> str:
    address = reverse("dashboard:task", args=[task.project.slug, task.pk])
    return html.unescape(client.get(address).content.decode())


def test_a_root_behind_one_without_an_agent_says_so(
    sir_client: Client, project: Project, first: Task
) -> None:
    second, third = submit_plan(project, step("1")), submit_plan(project, step("1"))
    shown = board(sir_client, project)
    assert f"queued, place 1, behind {first}, which waits for an agent" in shown
    assert f"queued, place 2, behind {first}, which waits for an agent" in shown
    assert f"queued, place 1, behind {first}, which waits for an agent" in page(sir_client, second)
    assert f"queued, place 2, behind {first}, which waits for an agent" in page(sir_client, third)


def test_a_rank_is_no_place_in_the_queue(sir_client: Client, project: Project, first: Task) -> None:
    second = submit_plan(project, step("1"))
    Task.objects.filter(pk=second.pk).update(rank=70)
    assert "queued, place 1," in board(sir_client, project)


def test_a_root_that_was_begun_before_is_next(
    sir_client: Client, project: Project, first: Task
) -> None:
    second, third = submit_plan(project, step("1")), submit_plan(project, step("1"))
    Task.objects.filter(pk=third.pk).update(attempt=2)
    assert "queued, place 1," in page(sir_client, fresh(third))
    assert "queued, place 2," in page(sir_client, fresh(second))


def test_a_root_behind_a_question_says_that_it_waits_for_you(
    sir_client: Client, project: Project, first: Task
) -> None:
    second = submit_plan(project, step("1"))
    agent = new_agent()
    claim(child(first, "1"), agent)
    assert f"queued, place 1, behind {first}<" in board(sir_client, project)
    set_status(child(first, "1"), agent, "waiting_human", detail="Which?")
    assert f"behind {first}, which waits for you" in page(sir_client, second)


def test_steps_and_roots_name_what_they_need(sir_client: Client, project: Project) -> None:
    root = submit_plan(
        project, agent_step("a"), agent_step("b", after=["a"]), agent_step("c", phase=2)
    )
    later = submit_plan(project, step("1"), depends_on=(str(root),))
    drive(project)
    assert "needs a<" in page(sir_client, child(root, "b"))
    assert "phase 1 open" in page(sir_client, child(root, "c"))
    assert f"needs {root}<" in page(sir_client, later)
    assert "needs earlier tasks" in board(sir_client, project)
    pause_project(project_id=project.pk, actor=Actor("human:sir"))
    assert "project suspended" in page(sir_client, later)


def test_the_command_line_says_the_same(project: Project, first: Task) -> None:
    lines: list[str] = []
    second = submit_plan(project, step("1"))
    Follower(fresh(second), lines.append, str).poll()
    said = f"{second} cannot start yet: queued, place 1, behind {first}, which waits for an agent"
    assert said in lines
