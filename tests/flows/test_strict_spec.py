"""`/strict-spec` from the request to the last ticked box, with scripted agents and Sir."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.models import Project, Task, WorkflowRun
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import child, decide, drive, fresh, open_decision_of
from tests.flows.scripts import SPEC, TECH, Crew, plan_md

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
WORDS = "实现用户登录系统"


@pytest.fixture
def root(project: Project) -> Task:
    """A feature that was just asked for, with a name of its own."""
    text = f"/strict-spec add-sign-in: {WORDS}"
    sent = dispatch_text(project_id=project.pk, text=text, actor=SIR)
    drive(project)
    return fresh(sent.task)


def up_to_design(crew: Crew, root: Task) -> Task:
    requirement = child(root, "requirement")
    crew.begin(requirement)
    crew.ask(requirement, "How many customers?", options=("ten", "ten thousand"))
    crew.answer("1. ten thousand")
    crew.give(requirement, "spec.md", SPEC)
    crew.hand_off(requirement)
    return child(root, "design")


def test_whole_feature_with_one_confirmation_of_the_design(
    project: Project, crew: Crew, root: Task
) -> None:
    assert WORDS in child(root, "requirement").description
    design = up_to_design(crew, root)
    assert WORDS in design.description
    crew.do(design, ("tech.md", TECH))
    assert fresh(design).status == "waiting_human"
    decide(open_decision_of(project, "final_review"), "approve")
    drive(project)
    assert fresh(design).status == "done"
    crew.do(child(root, "plan"), ("plan.md", plan_md("add-sign-in")))
    implement = child(root, "implement")
    first, second = child(implement, "1"), child(implement, "2")
    folder = Path(project.workspace) / ".cospec/spec/add-sign-in"
    assert sorted(one.name for one in folder.iterdir()) == ["plan.md", "spec.md", "tech.md"]
    assert f"Specification: {folder.relative_to(project.workspace)}/spec.md" in first.description
    assert "Change: add-sign-in" in first.description
    assert fresh(second).remaining_dependencies == 1
    crew.do(first, ("sign_in.py", "def sign_in(): ..."), kind="code")
    assert "- [x] 1. Sign in" in (folder / "plan.md").read_text()
    assert "- [ ] 2. Lock out" in (folder / "plan.md").read_text()
    crew.do(second, ("lock.py", "def lock(): ..."), kind="code")
    assert fresh(root).status == "done"


def test_changes_that_sir_asks_for_send_the_design_back(
    project: Project, crew: Crew, root: Task
) -> None:
    design = up_to_design(crew, root)
    crew.do(design, ("tech.md", TECH))
    review = open_decision_of(project, "final_review")
    decide(review, "request_changes", reason="no cookies")
    drive(project)
    assert fresh(design).status == "pending"
    crew.do(design, ("tech.md", TECH))
    decide(open_decision_of(project, "final_review"), "approve")
    drive(project)
    assert fresh(design).status == "done"


def test_plan_must_cover_each_requirement_once(project: Project, crew: Crew, root: Task) -> None:
    design = up_to_design(crew, root)
    crew.do(design, ("tech.md", TECH))
    decide(open_decision_of(project, "final_review"), "approve")
    plan = child(root, "plan")
    crew.begin(plan)
    crew.give(plan, "plan.md", plan_md("add-other").replace("FR-003", "FR-001, FR-009"))
    with pytest.raises(DocumentInvalid) as caught:
        crew.hand_off(plan)
    said = [one["message"] for one in caught.value.errors]
    assert "line 8: FR-001 is covered by box 1 already" in said
    assert "line 8: FR-009 is no requirement of the specification" in said
    assert "line 1: FR-003 is covered by no box" in said
    assert "line 1: change id must be add-sign-in" in said


def test_a_plan_handed_in_as_json_gets_its_change_and_paths_from_the_system(
    project: Project, crew: Crew, root: Task
) -> None:
    crew.do(up_to_design(crew, root), ("tech.md", TECH))
    decide(open_decision_of(project, "final_review"), "approve")
    drive(project)
    boxes = [
        {"title": "Sign in", "function": "the form", "requirement_ids": ["FR-001", "FR-002"],
         "demonstration": "sign in on the page"},
        {"title": "Lock out", "function": "the counter", "requirement_ids": ["FR-003"],
         "depends_on": ["1"]},
    ]  # fmt: skip
    crew.do(child(root, "plan"), ("plan.md#json", {"items": boxes}))
    text = (Path(project.workspace) / ".cospec/spec/add-sign-in/plan.md").read_text()
    assert text.count("Change id: add-sign-in") == 2
    assert "Spec path: .cospec/spec/add-sign-in/spec.md" in text
    assert child(child(root, "implement"), "2").remaining_dependencies == 1


def test_cancelled_feature_goes_on_with_what_is_locked(
    project: Project, crew: Crew, root: Task
) -> None:
    up_to_design(crew, root)
    cancel_task(task_id=root.pk, actor=SIR, reason="later")
    sent = dispatch_text(project_id=project.pk, text="/strict-spec add-sign-in", actor=SIR)
    drive(project)
    keys = list(sent.task.children.order_by("pk").values_list("step_key", flat=True))
    assert keys == ["design", "plan", "implement"]
    assert WorkflowRun.objects.get().task_id == sent.task.pk
    assert child(sent.task, "design").remaining_dependencies == 0
