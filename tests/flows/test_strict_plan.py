"""`/strict-plan` from the request to the last ticked box, with scripted agents and Sir."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.errors import Conflict, Forbidden, Invalid
from orchestration.models import AuditEvent, Project, Task, WorkflowRun
from orchestration.rules.box_lists import parse_task_md
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.services.flow_documents import zip_documents
from orchestration.services.work import Actor
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import child, claim, drive, fresh, set_status, start
from tests.flows.scripts import EXPLORED, FIVE_OK, PROPOSAL, TASK_LIST, UNDERSTOOD, Crew

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
FOLDER = ".cospec/plan/changes/add-a-calculator"


def begin(project: Project, text: str = "Add calculator for the shop") -> Task:
    sent = dispatch_text(project_id=project.pk, text=f"/strict-plan {text}", actor=SIR)
    drive(project)
    return fresh(sent.task)


def up_to_proposal(crew: Crew, root: Task) -> Task:
    crew.do(child(root, "understand"), ("understanding", UNDERSTOOD))
    crew.do(child(root, "explore"), ("exploration", EXPLORED))
    clarify = child(root, "clarify")
    crew.begin(clarify)
    crew.ask(clarify, "Whole numbers only?")
    crew.answer()
    crew.give(clarify, "decisions", "whole numbers only")
    crew.hand_off(clarify)
    return child(root, "propose")


def up_to_boxes(crew: Crew, root: Task) -> Task:
    propose = up_to_proposal(crew, root)
    crew.do(propose, ("proposal.md", PROPOSAL), ("task.md", TASK_LIST))
    crew.judge_it(verdict="pass", checks=FIVE_OK)
    return child(root, "implement")


def boxes_of(project: Project, run: WorkflowRun) -> dict[str, bool]:
    text = (Path(project.workspace) / run.directory / "task.md").read_text()
    return {one.number: one.is_done for one in parse_task_md(text).items}


def test_whole_change_from_request_to_ticked_boxes(project: Project, crew: Crew) -> None:
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    assert (run.change_id, root.route, root.role) == (
        "add-calculator-shop", "workflow", "StrictPlan",
    )  # fmt: skip
    implement = up_to_boxes(crew, root)
    drive(project)
    assert fresh(implement).status == "working"
    first, second, last = (child(implement, key) for key in ("1.1", "1.2", "1.3"))
    assert {one.role for one in (first, second, last)} == {"SubCoding"}
    assert boxes_of(project, run) == {"1.1": False, "1.2": False, "1.3": False}
    assert "Item: 1.1" in first.description and run.change_id in first.description
    crew.do(first, ("calc.py", "def add(a, b): ..."), kind="code")
    assert boxes_of(project, run) == {"1.1": True, "1.2": False, "1.3": False}
    assert fresh(last).remaining_dependencies == 1
    crew.do(second, ("calc.py", "def sub(a, b): ..."), kind="code")
    assert boxes_of(project, run) == {"1.1": True, "1.2": True, "1.3": False}
    assert fresh(last).remaining_dependencies == 0
    crew.do(last, ("calc.py", "all"), kind="code")
    assert boxes_of(project, run) == {"1.1": True, "1.2": True, "1.3": True}
    assert fresh(root).status == "done"
    assert AuditEvent.objects.filter(kind="document.ticked").count() == 3
    name, data = zip_documents(root)
    assert name == f"{run.change_id}.zip" and data[:2] == b"PK"
