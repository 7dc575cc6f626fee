"""The page of a task that failed too often: attempts side by side, and what changed between."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.models import Plan, Project, Task
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


def stopped() -> Project:
    """A project that one failed attempt stopped."""
    project = new_project(policy={"thresholds": {"max_retries": 1}})
    submit_plan(project, step("1", run=["ls nowhere"]))
    drive(project)
    return project


def cells(page: str, row: str) -> list[str]:
    """The cells of a row of the comparison, without their marks."""
    found = re.search(rf'<tr><th scope="row">{row}</th>(.*?)</tr>', page, re.DOTALL)
    assert found is not None
    texts = re.findall(r"<td[^>]*>(.*?)</td>", found[1], re.DOTALL)
    seen = [re.sub(r'<span class="same-as">.*?</span>', "", one) for one in texts]
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in seen]


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
    assert "Three attempts failed: <span" in page
    assert page.count("same as attempt 1") > 3
    chinese = shown(sir_client, project, "zh-hans")
    assert "在第 1、2、3 次尝试中失败" in chinese
    assert "三次尝试均失败：<span" in chinese
    assert cells(chinese, "类别") == ["检查未通过"] * 3


def test_one_attempt_has_nothing_to_compare(sir_client: Client) -> None:
    project = stopped()
    page = shown(sir_client, project)
    assert cells(page, "Package") == ["NO-GO"]
    assert "failed in attempts" not in page
    assert "What changed between plans" not in page


def test_earlier_guidance_is_repeated(sir_client: Client) -> None:
    project = stopped()
    decide(open_decision_of(project), "retry", reason="look in the other place")
    drive(project)
    page = shown(sir_client, project)
    assert "Your earlier guidance" in page
    assert "look in the other place" in page
    assert cells(page, "Package") == ["NO-GO", "NO-GO"]


def test_each_field_stands_with_the_verdict_that_reads_it(sir_client: Client) -> None:
    project = stopped()
    page = shown(sir_client, project)
    columns = {
        part.partition('value="')[2].partition('"')[0]: part
        for part in page.split('<div class="choice-option">')[1:]
    }
    assert [name for name, part in columns.items() if 'name="text"' in part] == ["amend"]
    assert [name for name, part in columns.items() if 'name="release_dependents"' in part] == [
        "waive"
    ]


def test_choice_has_four_radios_none_ticked_and_one_button(sir_client: Client) -> None:
    project = stopped()
    page = shown(sir_client, project)
    radios = re.findall(r'<input[^>]*type="radio"[^>]*name="verdict"[^>]*>', page)
    values = [one.partition('value="')[2].partition('"')[0] for one in radios]
    assert values == ["retry", "amend", "waive", "abort"]
    assert not any("checked" in one for one in radios)
    form = page.partition("data-choice-form")[2].partition("</form>")[0]
    assert form.count('type="submit"') == 1
    assert 'data-taps="' not in page


def test_refusal_keeps_what_was_chosen_and_written(sir_client: Client) -> None:
    decision = open_decision_of(stopped())
    sent = {
        "verdict": "amend", "version": decision.version, "digest": decision.digest,
        "text": "Look elsewhere", "reason": "",
    }  # fmt: skip
    answer = sir_client.post(reverse("dashboard:decide", args=[decision.pk]), sent)
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    chosen = re.findall(r'<input[^>]*name="verdict"[^>]* checked[^>]*>', page)
    assert ['value="amend"' in one for one in chosen] == [True]
    assert ">Look elsewhere</textarea>" in page
    assert "This verdict needs a reason." in page


def test_confirmation_page_carries_the_further_fields(sir_client: Client) -> None:
    decision = open_decision_of(stopped())
    sent = {
        "verdict": "waive", "version": decision.version, "digest": decision.digest,
        "reason": "good enough", "release_dependents": "on",
    }  # fmt: skip
    address = reverse("dashboard:decide", args=[decision.pk])
    asked = sir_client.post(address, sent).content.decode()
    names = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked)
    assert ("release_dependents", "on") in names
    sir_client.post(address, dict(names))
    decision.refresh_from_db()
    assert decision.verdict == "waive"
    assert decision.payload["release_dependents"] is True


def test_older_attempts_are_a_choice_away(sir_client: Client) -> None:
    project = stopped()
    for number in range(3):
        decide(open_decision_of(project), "retry", reason=f"look again {number}")
        drive(project)
    page = shown(sir_client, project)
    assert "Attempts 2–4" in page
    older = re.search(r'<a href="([^"]+)">Attempt 1</a>', page)
    assert older is not None
    first = html.unescape(sir_client.get(html.unescape(older[1])).content.decode())
    assert cells(first, "Package") == ["NO-GO"]
    assert '<a href="' + older[1] + '" aria-current="page"' in first


def test_plans_are_compared_as_text(sir_client: Client, project: Project) -> None:
    root = planned_thrice(project)
    page = shown(sir_client, project)
    first, second = re.findall(r'href="(/projects/[^"]+/to/\d+/)"', page)
    told = html.unescape(sir_client.get(first).content.decode())
    assert "attempt 1, rev 1" in told
    steps = re.findall(r'<dd class="mono">(.*?)</dd>', told)
    assert steps == ["more"]
    assert "new</span>" in told
    text = re.sub(r"<[^>]+>", "", told)
    assert "summary: plan of 0" in text
    assert "summary: plan of 1" in text
    back = html.unescape(sir_client.get(second).content.decode())
    assert "gone</span>" in back
    other = new_project("elsewhere")
    submit_plan(other, step("1", run=["true"]))
    strange = reverse(
        "dashboard:plan_text",
        args=[project.slug, root.pk, root.plans.first().pk, Plan.objects.last().pk],  # type: ignore[union-attr]
    )
    assert sir_client.get(strange).status_code == 404


def test_same_plan_twice_says_so(sir_client: Client, project: Project) -> None:
    root = planned_thrice(project)
    one = root.plans.first()
    assert one is not None
    address = reverse("dashboard:plan_text", args=[project.slug, root.pk, one.pk, one.pk])
    assert "Both plans say the same." in sir_client.get(address).content.decode()
