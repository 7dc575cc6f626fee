"""The page of a task that failed too often: attempts side by side, and what changed between."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.models import Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import Actor
from tests.factories import (
    agent_step,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)
from tests.services.test_planning import hand_in_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project(policy={"commands": {"allow": ["ls", "true"]}})


def shown(client: Client, project: Project, language: str = "en") -> str:
    """The page of the open escalation of a project."""
    address = reverse("dashboard:decision", args=[open_decision_of(project, "max_retries").pk])
    answer = client.get(address, headers={"Accept-Language": language})
    return html.unescape(answer.content.decode())


def cells(page: str, row: str) -> list[str]:
    """The cells of a row of the comparison, without their marks."""
    found = re.search(rf'<tr><th scope="row">{row}</th>(.*?)</tr>', page, re.DOTALL)
    assert found is not None
    texts = re.findall(r"<td[^>]*>(.*?)</td>", found[1], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in texts]


def planned_thrice(project: Project) -> Task:
    """A root whose every plan failed; the second one has a step more."""
    new = NewTask(text="把散落的配置收拢起来", route="three_step")
    root = create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))
    bad = step("bad", run=["ls nowhere"])
    for extra in ([], [agent_step("more", after=["bad"])], []):
        document = {"summary": f"plan of {len(extra)}", "steps": [bad, *extra]}
        hand_in_plan(root, new_agent(), document)
        drive(project)
    return fresh(root)


def test_attempts_stand_side_by_side_with_what_repeats(
    sir_client: Client, project: Project
) -> None:
    root = planned_thrice(project)
    assert root.status == "fatal"
    page = shown(sir_client, project)
    assert "FATAL_ERROR: MAX_RETRIES_EXCEEDED" in page
    assert cells(page, "Package") == ["NO-GO"] * 3
    assert cells(page, "Class") == ["a check failed"] * 3
    assert all("ls nowhere: exit 2" in one for one in cells(page, "Root cause"))
    assert "failed in attempts 1, 2, 3." in page
    assert len(set(cells(page, "Plan"))) >= 2
    assert "What changed between plans" in page
    assert "3 of 3" in page
    chinese = shown(sir_client, project, "zh-hans")
    assert "在第 1、2、3 次尝试中失败" in chinese
    assert cells(chinese, "类别") == ["检查未通过"] * 3


def test_one_attempt_has_nothing_to_compare(sir_client: Client) -> None:
    project = new_project(policy={"thresholds": {"max_retries": 1}})
    submit_plan(project, step("1", run=["ls nowhere"]))
    drive(project)
    page = shown(sir_client, project)
    assert cells(page, "Package") == ["NO-GO"]
    assert "failed in attempts" not in page
    assert "What changed between plans" not in page


def test_earlier_guidance_is_repeated(sir_client: Client) -> None:
    project = new_project(policy={"thresholds": {"max_retries": 1}})
    submit_plan(project, step("1", run=["ls nowhere"]))
    drive(project)
    decide(open_decision_of(project), "retry", reason="look in the other place")
    drive(project)
    page = shown(sir_client, project)
    assert "Your earlier guidance" in page
    assert "look in the other place" in page
    assert cells(page, "Package") == ["NO-GO", "NO-GO"]


def test_each_field_stands_with_the_verdict_that_reads_it(sir_client: Client) -> None:
    project = new_project(policy={"thresholds": {"max_retries": 1}})
    submit_plan(project, step("1", run=["ls nowhere"]))
    drive(project)
    page = shown(sir_client, project)
    columns = {
        part.partition('value="')[2].partition('"')[0]: part
        for part in page.split('<div class="dock-verdict">')[1:]
    }
    assert [name for name, part in columns.items() if 'name="text"' in part] == ["amend"]
    assert [name for name, part in columns.items() if 'name="release_dependents"' in part] == [
        "waive"
    ]
