"""An open card stays what it is while work goes on; a question asked again takes today's policy."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.contracts.results import CommentInput
from orchestration.models import Decision, Project, Task
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.tasks import add_task_comment
from orchestration.services.work import Actor
from orchestration.states import DecisionKind
from tests.dashboard.conftest import Waiting
from tests.dashboard.kinds import ask
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    new_agent,
    new_project,
    set_status,
    submit_plan,
)

SIR = Actor("human:sir")
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]+"')
QUICK = {"policy_id": "quick", "after_seconds": 60, "outcome": "rejected"}


def dock_of(client: Client, decision: Decision) -> str:
    """The dock as it is fetched, without the token of the form."""
    url = reverse("dashboard:decision_dock", args=[decision.pk])
    return TOKEN.sub("", client.get(url).content.decode())


def test_work_beside_an_open_card_changes_nothing_of_it(sir: User, sir_client: Client) -> None:
    project, agent = new_project("beside"), new_agent("coder")
    root = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    asking, other = child(root, "1"), child(root, "2")
    claim(asking, agent)
    set_status(asking, agent, "working")
    set_status(asking, agent, "waiting_human", detail="Which rate?")
    asked = Decision.objects.get(project=project)
    before = dock_of(sir_client, asked)
    claim(other, agent)
    set_status(other, agent, "working")
    for task in (asking, other):
        note = CommentInput(body="still reading")
        add_task_comment(task_id=task.pk, document=note, agent=agent, actor=actor_of(agent))
    assert 'name="verdict"' in before
    assert dock_of(sir_client, asked) == before
    assert child(root, "1").status == "waiting_human"


def test_question_asked_again_takes_todays_policy_and_leaves_the_old_row(sir: User) -> None:
    project = new_project("again")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    old = ask(DecisionKind.CLARIFICATION, project, child(root, "1"))
    change = ProjectChange(policy={"expiry": {"clarification": QUICK}})
    update_project(project_id=project.pk, change=change, actor=SIR)
    project = Project.objects.get(pk=project.pk)
    new = ask(DecisionKind.CLARIFICATION, project, child(root, "1"))
    old.refresh_from_db()
    assert (old.status, old.deadline, old.on_expiry) == ("withdrawn", None, None)
    assert new.pk != old.pk
    assert new.on_expiry is not None
    assert new.on_expiry["policy_id"] == "quick"
    assert new.deadline is not None


def test_icon_says_whether_something_waits(waiting: Waiting, sir_client: Client) -> None:
    icon = re.compile(r'<link rel="icon" href="[^"]*/(favicon[\w-]*)[.\w]*svg"')
    before = icon.search(sir_client.get("/audit/").content.decode())
    decide(waiting.decision, "accept_as_is", reason="for now")
    drive(waiting.project)
    after = icon.search(sir_client.get("/audit/").content.decode())
    assert before is not None
    assert after is not None
    assert (before[1], after[1]) == ("favicon-waiting", "favicon")


def test_workflow_is_started_from_the_form_of_new_work(sir: User, sir_client: Client) -> None:
    new_project("flows")
    text = "/strict-plan Add a calculator for the shop"
    answer = sir_client.post("/new/", {"project": "flows", "text": text})
    root = Task.objects.get(project__slug="flows", parent=None)
    assert answer.status_code == 303
    assert answer["Location"] == f"/projects/flows/tasks/{root.pk}/"
    assert root.route == "workflow"
    assert "Add a calculator for the shop" in sir_client.get(answer["Location"]).content.decode()
