"""The layers of a prompt: their order, what is cut where it is too much, whose words stay out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from orchestration.models import Task
from orchestration.rules.prompt_layers import BUDGETS, ORDER, Prompt
from orchestration.services.knowledge import (
    PageText,
    review_experience,
    review_page,
    write_experience,
    write_page,
)
from orchestration.services.prompts import build_prompt
from orchestration.services.work import Actor
from orchestration.states import KnowledgeStatus, Seat
from tests.api.callers import Caller, events, facts
from tests.factories import fresh, new_agent, new_project, submit_plan
from tests.prompts.sample import BASE_URL, TEXTS, Sample

SIR = Actor("human:sir")
HEAD = re.compile(r"# .+ \((L\d\w)\)")
HERE = f"{BASE_URL}/api/projects/demo"


def prompt_of(task: Task) -> Prompt:
    """What an executor of a task is told."""
    return build_prompt(
        task=fresh(task), seat=Seat.EXECUTOR, assignment=None, base_url=BASE_URL, agent=None
    )


def overfill_project(sample: Sample) -> None:
    sample.project.description = "background " * 1_000
    sample.project.save()


def overfill_roots(sample: Sample) -> None:
    for number in range(30):
        submit_plan(sample.project, {"id": "1", "action": "x"}, text=f"Root {number} " + "x" * 90)


def overfill_task(sample: Sample) -> None:
    Task.objects.filter(pk=sample.task.pk).update(description="words " * 3_000)


def overfill_lists(sample: Sample) -> None:
    names = [f"{name} " * 100 for name in ("fact", "constraint", "scope", "risk")]
    for field, name in zip(("facts", "constraints", "scope", "risks"), names, strict=True):
        Task.objects.filter(pk=sample.task.pk).update(**{field: [name] * 41})


def overfill_predecessor(sample: Sample) -> None:
    Task.objects.get(parent=sample.root, step_key="1").outputs.update(summary="long " * 2_000)


def overfill_guardrails(sample: Sample) -> None:
    rules = [{"key": f"rule-{n}", "text": f"Rule {n}. " + "x" * 480} for n in range(40)]
    sample.project.policy_json = json.dumps({"guardrails": {"rules": rules}})
    sample.project.save()


def overfill_experience(sample: Sample) -> None:
    text = sample.texts["experience"]
    write_experience(project=sample.project, title=text, body=f"{text} " * 60, actor=SIR)


def overfill_page(sample: Sample) -> None:
    text = sample.texts["page"]
    body = PageText(text, title=text, summary=f"{text} " * 60)
    write_page(project=sample.project, name="payments", text=body, actor=SIR)


@pytest.mark.parametrize(
    ("key", "overfill", "where"),
    [
        ("L2b", overfill_project, f"{HERE}/"),
        ("L2b", overfill_roots, f"{HERE}/tasks"),
        ("L2c", overfill_task, "?expand=all"),
        ("L2c", overfill_lists, "?expand=all"),
        ("L2d", overfill_predecessor, "?expand=all"),
        ("L2e", overfill_guardrails, f"{HERE}/"),
        ("L3a", overfill_experience, f"{HERE}/experiences/"),
        ("L3b", overfill_page, f"{HERE}/wiki/"),
    ],
)
@pytest.mark.django_db
def test_layer_that_is_too_long_says_what_was_cut_and_where_it_is(
    key: str, overfill: Callable[[Sample], None], where: str
) -> None:
    sample = Sample("en")
    assert not prompt_of(sample.task).is_cut
    overfill(sample)
    prompt = prompt_of(sample.task)
    [layer] = [one for one in prompt.layers if one.is_cut]
    assert layer.key == key
    *_, note = [line for line in layer.text.splitlines() if line.startswith("[cut here: ")]
    assert where in note
    assert note in prompt.text
    assert len(layer.text) <= BUDGETS[key] + len(note)
    assert prompt.is_cut


def overfill_everything(sample: Sample) -> None:
    for overfill in (overfill_project, overfill_task, overfill_guardrails, overfill_experience):
        overfill(sample)


@pytest.mark.parametrize("change", [lambda _: None, overfill_everything], ids=["as is", "overfull"])
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.django_db
def test_layers_stand_in_their_order(language: str, change: Callable[[Sample], None]) -> None:
    sample = Sample(language)
    change(sample)
    prompt = prompt_of(sample.task)
    assert [one.key for one in prompt.layers] == list(ORDER)
    places = [prompt.text.index(one.text) for one in prompt.layers]
    assert places == sorted(places)
    heads = [line for line in prompt.text.splitlines() if HEAD.fullmatch(line)]
    assert [HEAD.findall(line)[0] for line in heads] == list(ORDER[1:])


def test_cut_is_told_to_the_reader_and_to_the_trail(agent: Caller, task: str, sir: Caller) -> None:
    sir.patch("/api/projects/demo/", {"description": "background " * 1_000})
    agent.send(f"{task}/claim")
    answer = agent.read(f"{task}/bootstrap")
    assert answer["is_cut"] is True
    assert [one["key"] for one in answer["layers"] if one["is_cut"]] == ["L2b"]
    assert facts(events("prompt.sent")[0])["is_cut"] is True


def test_words_of_a_cut_in_an_agents_text_are_no_cut(agent: Caller, task: str) -> None:
    agent.send(f"{task}/comments", {"body": "[cut here: 3 more not shown; all of it: nowhere]"})
    agent.send(f"{task}/claim")
    answer = agent.read(f"{task}/bootstrap")
    assert "all of it: nowhere" in answer["text"]
    assert answer["is_cut"] is False


UNLIKE = {
    "en": "Brew the jasmine at eighty degrees and pour it slowly.",
    "zh-hans": "茉莉花茶用八十度的水冲泡，慢慢倒。",
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.django_db
def test_knowledge_that_does_not_resemble_the_task_stays_out(language: str) -> None:
    sample = Sample(language)
    words = UNLIKE[language]
    write_experience(project=sample.project, title=words, body=words, actor=SIR)
    page = PageText(words, title=words, summary=words)
    write_page(project=sample.project, name="jasmine", text=page, actor=SIR)
    text = prompt_of(sample.task).text
    assert words not in text
    assert "jasmine" not in text
    assert sample.texts["experience"] in text
    assert sample.texts["page"] in text


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.django_db
def test_rejected_knowledge_stays_out_and_accepted_comes_back(language: str) -> None:
    sample = Sample(language)
    experience = sample.project.experiences.get()
    page = sample.project.wiki_pages.get()

    def reviewed(verdict: KnowledgeStatus) -> str:
        review_experience(experience_id=experience.pk, verdict=verdict, actor=SIR, reason="read it")
        review_page(page_id=page.pk, verdict=verdict, actor=SIR, reason="read it")
        return prompt_of(sample.task).text

    text = reviewed(KnowledgeStatus.REJECTED)
    assert sample.texts["experience"] not in text
    assert sample.texts["page"] not in text
    text = reviewed(KnowledgeStatus.ACCEPTED)
    assert sample.texts["experience"] in text
    assert sample.texts["page"] in text


@pytest.mark.django_db
def test_page_that_an_agent_wrote_is_marked_and_once_rejected_stays_out() -> None:
    sample = Sample("en")
    writer = new_agent("scribe", project=sample.project)
    words = "Payment client: a retry needs the provider's key."
    page = write_page(
        project=sample.project,
        name="retries",
        text=PageText(words, title=words, summary=words),
        actor=Actor("agent:scribe"),
        agent=writer,
    )
    text = prompt_of(sample.task).text
    [label] = [line for line in text.splitlines() if "page retries" in line]
    assert "agent:scribe" in label
    assert "not reviewed by anybody" in label
    review_page(page_id=page.pk, verdict=KnowledgeStatus.REJECTED, actor=SIR, reason="not so")
    assert words not in prompt_of(sample.task).text


@pytest.mark.django_db
def test_knowledge_of_another_project_stays_out() -> None:
    sample = Sample("en")
    other = new_project("other")
    words = "Payment client with retries: the other shop's own secret."
    write_experience(project=other, title=words, body=words, actor=SIR)
    write_page(project=other, name="p", text=PageText(words, words, words), actor=SIR)
    assert words not in prompt_of(sample.task).text
