"""Plan revisions side by side with their audits: what changed, what was found, what was locked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import Agent, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.intake import NewTask, create_task
from orchestration.services.tasks import replan_task
from orchestration.services.work import Actor
from orchestration.states import Seat
from tests.dashboard.conftest import Waiting
from tests.factories import (
    actor_of,
    agent_step,
    drive,
    fresh,
    new_agent,
    new_project,
    set_status,
    submit_plan,
)
from tests.factories import claim as claim_task

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
EXTERNAL = {"seats": {"planner": ["external"], "auditor": ["external"]}}
FIRST = [
    {"id": "1", "action": "Take stock", "expected_artifacts": ["states.md"]},
    {"id": "2a", "action": "Write the machine", "depends_on": ["1"], "verify": ["make build"]},
    {"id": "2b", "action": "Export the view", "writes": ["machine.py"]},
]
SECOND = [
    FIRST[0],
    {**FIRST[1], "verify": ["make build", "make test"], "risks": ["a reader is left"]},
    {"id": "2c", "action": "Rehearse the rollback", "depends_on": ["2a"]},
]
FOUND = {"name": "dependencies", "ok": False, "finding": "2a and 2b write machine.py side by side"}


class Team:
    """A planner and an auditor that answer what they are told."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.planner = new_agent("plan-1", project=project)
        self.auditor = new_agent("audit-1", project=project)

    def answer(self, agent: Agent, seat: Seat, document: dict[str, Any]) -> None:
        """Claim a seat and hand in its result."""
        taken = claim_for_agent(agent=agent, wish=Wish(seats=(seat,)), actor=actor_of(agent))
        assert taken is not None
        hold = Hold(taken.pk, agent, taken.lease_token)
        submit_result(hold=hold, document=document, actor=actor_of(agent))
        drive(self.project)

    def plan(self, summary: str, steps: Sequence[dict[str, Any]]) -> None:
        """Send a revision."""
        plan = {"summary": summary, "assumptions": ["one table"], "steps": list(steps)}
        self.answer(self.planner, Seat.PLANNER, plan)

    def audit(self, verdict: str, *checks: dict[str, Any], suggestions: Sequence[str] = ()) -> None:
        """Judge the newest revision."""
        report = {"verdict": verdict, "checks": list(checks), "suggestions": list(suggestions)}
        self.answer(self.auditor, Seat.AUDITOR, report)


@pytest.fixture
def revised(sir: User) -> Task:
    """A task whose first plan was sent back and whose second was locked."""
    project = new_project("revised", policy=EXTERNAL)
    new = NewTask(text="One state machine", route="three_step")
    root = create_task(project_id=project.pk, new=new, actor=SIR)
    drive(project)
    team = Team(project)
    team.plan("first thoughts", FIRST)
    team.audit("NEEDS_REVISION", FOUND)
    team.plan("with a rollback", SECOND)
    passed = {"name": "dependencies", "ok": True, "finding": ""}
    team.audit("APPROVED_WITH_SUGGESTIONS", passed, suggestions=["rehearse on a copy"])
    return fresh(root)


def page_of(client: Client, task: Task, query: str = "") -> str:
    """Read the page of a task's plans."""
    url = reverse("dashboard:plans", args=[task.project.slug, task.pk])
    return client.get(url + query).content.decode()


def row_of(page: str, key: str) -> str:
    """The row of a step."""
    found = re.search(rf'<th scope="row" class="mono">{key}</th>.*?</tr>', page, re.DOTALL)
    assert found is not None
    return found.group()


def test_revisions_stand_side_by_side_with_their_audits(revised: Task, sir_client: Client) -> None:
    page = page_of(sir_client, revised)
    assert page.index("rev 1") < page.index("rev 2")
    for text in (
        "first thoughts", "with a rollback", "one table", "by audit-1", FOUND["finding"],
        "rehearse on a copy", "nothing found", "Needs revision", "Blueprint locked",
    ):  # fmt: skip
        assert str(text) in page, text
    assert f'title="{revised.blueprints.get().sha256}"' in page


def test_what_changed_from_one_revision_to_the_next_is_marked(
    revised: Task, sir_client: Client
) -> None:
    page = page_of(sir_client, revised)
    kept, changed = row_of(page, "1"), row_of(page, "2a")
    assert "<mark>" not in kept
    assert "changed" not in kept
    assert re.findall(r"<mark>(.*?)</mark>", changed) == [
        "make build", "make test", "a reader is left",
    ]  # fmt: skip
    assert ">changed<" in changed
    assert ">gone<" in row_of(page, "2b")
    assert ">new<" in row_of(page, "2c")


def test_task_page_leads_there_and_counts_what_was_locked(
    revised: Task, sir_client: Client
) -> None:
    url = reverse("dashboard:task", args=["revised", revised.pk])
    page = sir_client.get(url).content.decode()
    assert f'href="{url}plans/">Compare revisions</a>' in page
    assert "3 steps, 1 phase" in page


def test_each_attempt_is_read_by_itself(revised: Task, sir_client: Client) -> None:
    replan_task(task_id=revised.pk, actor=SIR, reason="another way")
    drive(revised.project)
    team = Team.__new__(Team)
    team.project, team.planner = revised.project, Agent.objects.get(name="plan-1")
    team.plan("third thoughts", FIRST)
    newest = page_of(sir_client, revised)
    assert "third thoughts" in newest
    assert "first thoughts" not in newest
    assert 'href="?attempt=1"' in newest
    assert "first thoughts" in page_of(sir_client, revised, "?attempt=1")
    url = reverse("dashboard:plans", args=["revised", revised.pk])
    assert sir_client.get(f"{url}?attempt=9").status_code == 404


def test_malformed_plan_names_its_faults(sir: User, sir_client: Client) -> None:
    project = new_project("revised", policy=EXTERNAL)
    new = NewTask(text="One state machine", route="three_step")
    root = create_task(project_id=project.pk, new=new, actor=SIR)
    drive(project)
    Team(project).plan("round and round", [{"id": "1", "action": "a", "depends_on": ["1"]}])
    page = page_of(sir_client, fresh(root))
    assert "Malformed" in page
    assert "steps.0" in page


def test_light_plan_is_read_there_too(sir: User, sir_client: Client) -> None:
    project, agent = new_project("light"), new_agent("coder")
    root = create_task(
        project_id=project.pk, new=NewTask(text="Tidy it", route="direct"), actor=SIR
    )
    drive(project)
    claim_task(root, agent)
    set_status(root, agent, "working", light_plan=("measure it", "mend it"))
    page = page_of(sir_client, fresh(root))
    assert "Light plan, not audited" in page
    assert "measure it" in page
    assert "mend it" in page


def test_long_plans_show_what_changed_first_and_say_how_many_there_are(
    sir: User, sir_client: Client
) -> None:
    project = new_project("long")
    root = submit_plan(project, *[agent_step(f"s{n}") for n in range(230)])
    drive(project)
    page = page_of(sir_client, fresh(root))
    assert "200 of 230 steps" in page
    assert page.count('<th scope="row" class="mono">') == 200


def test_task_without_a_plan_says_so(waiting: Waiting, sir_client: Client) -> None:
    assert "No plan yet." in page_of(sir_client, fresh(waiting.step))
