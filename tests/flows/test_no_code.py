"""Who only plans and distributes hands in no code."""

from __future__ import annotations

import pytest

from orchestration.errors import Forbidden
from orchestration.models import Project
from orchestration.services.work import Actor
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import child, drive
from tests.flows.scripts import Crew

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", ["code", "config"])
def test_strict_plan_hands_in_no_code(project: Project, crew: Crew, kind: str) -> None:
    sent = dispatch_text(
        project_id=project.pk, text="/strict-plan add a calculator", actor=Actor("human:sir")
    )
    drive(project)
    understand = child(sent.task, "understand")
    crew.begin(understand)
    with pytest.raises(Forbidden) as caught:
        crew.give(understand, "calc.py", "def add(): ...", kind)
    assert caught.value.code == "no_code"
    assert not understand.outputs.exists()
