"""What agents observe shows on the board as risks, before what the plan knew, and is kept fresh."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from orchestration.contracts.results import CommentInput
from orchestration.models import Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.tasks import add_task_comment
from orchestration.states import CommentType
from tests.factories import (
    actor_of,
    agent_step,
    child,
    drive,
    new_agent,
    new_project,
    new_sir,
    submit_plan,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    """A project named demo."""
    return new_project("demo")


@pytest.fixture
def root(project: Project) -> Task:
    """A planned root whose plan declares seven risks."""
    made = submit_plan(project, agent_step("a", risks=[f"declared {n}" for n in range(7)]))
    drive(project)
    return made


@pytest.fixture
def browser() -> Client:
    """Sir's browser."""
    client = Client()
    client.force_login(new_sir())
    return client


def observe(project: Project, task: Task, text: str, kind: CommentType) -> None:
    """Comment on a task as an agent."""
    agent = new_agent(project=project)
    document = CommentInput(comment_type=kind, body=text)
    add_task_comment(task_id=task.pk, document=document, agent=agent, actor=actor_of(agent))


def risks_of(browser: Client, root: Task) -> str:
    """The part of the board with the risks."""
    answer: Any = browser.get(f"/projects/demo/tasks/{root.pk}/risks/")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_observation_is_a_risk_and_comes_first(
    project: Project, root: Task, browser: Client
) -> None:
    observe(project, child(root, "a"), "The cache <b>never</b> ends", CommentType.OBSERVATION)
    observe(project, child(root, "a"), "just talk", CommentType.GENERAL)
    text = risks_of(browser, root)
    assert "The cache &lt;b&gt;never&lt;/b&gt; ends" in text
    assert "just talk" not in text
    assert text.index("The cache") < text.index("declared 0")
    assert text.count("<li>") == 6
    # The observation, seven declared risks, and what the audit suggests.
    suggested = len(root.blueprints.get().suggestions)
    assert f'<span class="head-count beside">{8 + suggested}</span>' in text
    assert "alert-triangle" in text.split("<li>")[1]
    page = browser.get("/projects/demo/").content.decode()
    assert "The cache" in page
    assert f'data-fragment="/projects/demo/tasks/{root.pk}/risks/"' in page


def test_board_without_risks_keeps_the_place_where_the_first_one_will_show(
    project: Project, browser: Client
) -> None:
    made = create_task(
        project_id=project.pk, new=NewTask(text="打开日志"), actor=actor_of(new_agent())
    )
    assert "<section" not in risks_of(browser, made)
    observe(project, made, "Disk is nearly full", CommentType.OBSERVATION)
    assert "Disk is nearly full" in risks_of(browser, made)


def test_self_initiated_work_is_marked_on_board_and_task_page(
    project: Project, browser: Client
) -> None:
    new = NewTask(text="打开日志", route="direct", is_self_initiated=True)
    task = create_task(project_id=project.pk, new=new, actor=actor_of(new_agent()))
    assert "self-initiated" in browser.get("/projects/demo/").content.decode()
    assert "self-initiated" in browser.get(f"/projects/demo/tasks/{task.pk}/").content.decode()
    browser.cookies["django_language"] = "zh-hans"
    assert "自发" in browser.get("/projects/demo/").content.decode()
