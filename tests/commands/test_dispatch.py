"""The one door for text: slash commands, plain messages, and what it says about unknown ones."""

from __future__ import annotations

import pytest

from orchestration.errors import Invalid, TooLarge
from orchestration.models import Project, Task
from orchestration.services.intake import MAX_TEXT_BYTES
from orchestration.services.projects import create_project
from orchestration.services.work import Actor
from orchestration.states import Route, TaskStatus
from orchestration.workflows.dispatch import dispatch_text, list_workflows

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")


@pytest.fixture
def project() -> Project:
    return create_project(slug="door", actor=SIR)


def test_plain_text_passes_s0(project: Project) -> None:
    sent = dispatch_text(project_id=project.pk, text="谢谢", actor=SIR)

    assert sent.assessment is not None
    assert sent.assessment.outcome == "direct"
    assert sent.task.kind == "message"


def test_three_step_names_the_route_and_keeps_the_rest_of_the_text(project: Project) -> None:
    sent = dispatch_text(
        project_id=project.pk, text="  /Three-Step  Tidy the notes\nand sign them", actor=SIR
    )

    task = Task.objects.get(pk=sent.task.pk)
    assert sent.assessment is None
    assert task.route == Route.THREE_STEP
    assert task.description == "Tidy the notes\nand sign them"
    assert task.status == TaskStatus.WORKING


@pytest.mark.parametrize("text", ["/three-steps Tidy", "/nope", "/strictplan Add a page"])
def test_an_unknown_command_lists_what_exists_and_creates_nothing(
    project: Project, text: str
) -> None:
    with pytest.raises(Invalid, match="known: /three-step") as caught:
        dispatch_text(project_id=project.pk, text=text, actor=SIR)

    assert caught.value.code == "unknown_command"
    assert caught.value.errors[0]["path"] == "text"
    assert not Task.objects.exists()


@pytest.mark.parametrize("text", ["/three-step", " /three-step \n "])
def test_a_command_without_text_says_what_is_missing(project: Project, text: str) -> None:
    with pytest.raises(Invalid, match="has no text"):
        dispatch_text(project_id=project.pk, text=text, actor=SIR)

    assert not Task.objects.exists()


@pytest.mark.parametrize("text", ["/usr/bin is full", "// a comment", "/ alone", "/3 of 4 done"])
def test_a_slash_that_names_no_command_is_plain_text(project: Project, text: str) -> None:
    sent = dispatch_text(project_id=project.pk, text=text, actor=SIR)

    assert sent.assessment is not None
    assert sent.task.description == text


def test_empty_and_oversized_texts_are_refused(project: Project) -> None:
    with pytest.raises(Invalid):
        dispatch_text(project_id=project.pk, text=" \n\t ", actor=SIR)
    with pytest.raises(TooLarge):
        dispatch_text(project_id=project.pk, text="好" * (MAX_TEXT_BYTES // 3 + 1), actor=SIR)

    assert not Task.objects.exists()


def test_workflows_are_listed_with_what_a_page_shows() -> None:
    listed = {one.name: one for one in list_workflows()}

    assert listed["three-step"].agent == "planner"
    assert listed["three-step"].description
