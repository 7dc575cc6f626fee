"""`/strict-plan` from the request to the last ticked box, with scripted agents and Sir."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration.errors import Conflict, Forbidden, Invalid, NotReady
from orchestration.models import Artifact, AuditEvent, Project, Task, WorkflowRun
from orchestration.rules.box_lists import parse_task_md
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.rules.proposals import parse_proposal_md
from orchestration.services.flow_documents import read_document, zip_documents
from orchestration.services.locked_defects import report_defect
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import child, claim, drive, fresh, new_agent, set_status, start
from tests.flows.scripts import EXPLORED, FIVE_OK, PROPOSAL, TASK_LIST, UNDERSTOOD, Crew, box

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
PROPOSAL_JSON = {
    "title": "Add a calculator",
    "reason": "People reckon by hand.\nThat is slow.",
    "changes": [{"text": "A module"}, {"text": "the old script goes", "breaking": True}],
    "impact": {"specs": "none", "code": "calc.py"},
}
ITEM = {
    "number": "1.1",
    "title": "add",
    "target_object": "calc.py",
    "purpose": "sums",
    "method": "new code",
    "content": "write add\n- [ ] 9.9 second line\n\nthird",
}
TASKS_JSON = {"items": [ITEM, {**ITEM, "number": "1.2", "title": "sub", "depends_on": ["1.1"]}]}


def list_of(*items: dict[str, Any]) -> str:
    """A list of boxes as JSON."""
    return json.dumps({"items": items})


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
    assert "Item: 1.1" in first.description
    assert run.change_id in first.description
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
    assert name == f"{run.change_id}.zip"
    assert data[:2] == b"PK"


def test_a_fixed_list_of_boxes_stands_and_its_boxes_are_ticked(
    project: Project, crew: Crew
) -> None:
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    implement = up_to_boxes(crew, root)
    drive(project)
    name = f"{run.directory}/task.md"
    found = {"severity": "high", "title": "a purpose is missing"}
    artifact = Artifact.objects.get(name=name)
    report_defect(artifact_id=artifact.pk, document=found, actor=SIR)
    better = TASK_LIST.replace("Purpose: add", "Purpose: add two numbers")
    crew.do(Task.objects.get(fixes__artifact=artifact), (name, better))
    assert read_document(run, "task.md") == better
    assert (Path(project.workspace) / name).read_text() == better
    crew.do(child(implement, "1.1"), ("calc.py", "def add(a, b): ..."), kind="code")
    assert boxes_of(project, run) == {"1.1": True, "1.2": False, "1.3": False}
    ticked = Artifact.objects.filter(name=name).latest("version")
    assert ticked.version == 3
    assert "Purpose: add two numbers" in bytes(ticked.content.data).decode()
    assert AuditEvent.objects.filter(
        kind="artifact.locked", subject=f"artifact:{ticked.pk}"
    ).exists()


def test_a_list_that_is_fixed_while_boxes_are_done_keeps_their_ticks(
    project: Project, crew: Crew
) -> None:
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    implement = up_to_boxes(crew, root)
    crew.do(child(implement, "1.1"), ("calc.py", "def add(a, b): ..."), kind="code")
    name = f"{run.directory}/task.md"
    standing = Artifact.objects.filter(name=name).latest("version")
    found = {"severity": "high", "title": "a purpose is missing"}
    report_defect(artifact_id=standing.pk, document=found, actor=SIR)
    better = TASK_LIST.replace("Purpose: join them", "Purpose: one module")
    fix = Task.objects.get(fixes__artifact=standing)
    crew.do(fix, (name, better))
    kept = better.replace("- [ ] 1.1", "- [x] 1.1")
    assert read_document(run, "task.md") == kept
    assert (Path(project.workspace) / name).read_text() == kept
    crew.do(child(implement, "1.2"), ("calc.py", "def sub(a, b): ..."), kind="code")
    crew.do(child(implement, "1.3"), ("calc.py", "all"), kind="code")
    assert boxes_of(project, run) == {"1.1": True, "1.2": True, "1.3": True}
    assert fresh(root).status == "done"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (TASK_LIST.replace("- [ ] 1.2", "- [x] 1.2"), "only the system ticks boxes"),
        (TASK_LIST.replace("1.1", "2.1"), "box 1.1 is ticked already and may not go"),
        ("# Tasks\n\nnothing\n", "needs the section"),
    ],
)
def test_a_fix_that_breaks_the_list_of_boxes_is_done_again(
    project: Project, crew: Crew, wrong: str, why: str
) -> None:
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    implement = up_to_boxes(crew, root)
    crew.do(child(implement, "1.1"), ("calc.py", "def add(a, b): ..."), kind="code")
    before = read_document(run, "task.md")
    standing = Artifact.objects.filter(name=f"{run.directory}/task.md").latest("version")
    found = {"severity": "high", "title": "a purpose is missing"}
    report_defect(artifact_id=standing.pk, document=found, actor=SIR)
    fix = Task.objects.get(fixes__artifact=standing)
    crew.do(fix, (standing.name, wrong))
    assert fresh(fix).status == "pending"
    assert why in fresh(fix).failure_context[-1]["root_cause"]
    assert read_document(run, "task.md") == before


def test_malformed_documents_are_refused_with_every_line_and_nothing_moves(
    project: Project, crew: Crew
) -> None:
    propose = up_to_proposal(crew, begin(project))
    crew.begin(propose)
    crew.give(propose, "proposal.md", "# T\n\n## Reason\n\nOne. Two. Three.\n")
    crew.give(propose, "task.md", TASK_LIST.replace("- [ ] 1.2", "- [x] 1.2"))
    with pytest.raises(DocumentInvalid) as caught:
        crew.hand_off(propose)
    said = [(one["path"], one["message"]) for one in caught.value.errors]
    assert ("proposal.md", "line 3: the reason has 3 sentences; one or two are asked for") in said
    assert ("task.md", "line 11: only the system ticks boxes") in said
    assert fresh(propose).status == "working"


def test_task_check_judges_five_things_before_the_list_is_final(
    project: Project, crew: Crew
) -> None:
    root = begin(project)
    propose = up_to_proposal(crew, root)
    crew.do(propose, ("proposal.md", PROPOSAL), ("task.md", TASK_LIST))
    assert fresh(propose).status == "review"
    held = propose.assignments.get(seat="qa", status="queued")
    assert held.input["profile"] == "TaskCheck"
    assert len(held.input["checks"]) == 5
    bad = [*FIVE_OK[:4], {"name": "style", "ok": False, "finding": "mixed styles"}]
    with pytest.raises(Invalid):
        crew.judge_it(verdict="pass", checks=FIVE_OK[:4])
    with pytest.raises(Invalid):
        crew.retry(verdict="pass", checks=bad)
    crew.retry(verdict="pass", checks=FIVE_OK)
    assert fresh(propose).status == "done"


def test_clarification_is_with_sir_and_has_its_limits(project: Project, crew: Crew) -> None:
    root = begin(project)
    crew.do(child(root, "understand"), ("understanding", UNDERSTOOD))
    crew.do(child(root, "explore"), ("exploration", EXPLORED))
    clarify = child(root, "clarify")
    crew.begin(clarify)
    crew.give(clarify, "decisions", "none")
    with pytest.raises(Conflict, match="Sir has not been asked"):
        crew.hand_off(clarify)
    for _ in range(3):
        crew.ask(clarify, "a?", "b?")
        assert fresh(clarify).status == "waiting_human"
        crew.answer()
    with pytest.raises(Conflict, match="3 rounds"):
        crew.ask(clarify, "once more?")
    set_status(clarify, crew.maker, "review")
    assert fresh(clarify).status == "done"


@pytest.mark.parametrize(
    ("title", "content", "kind"),
    [
        ("fix", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "data"),
        ("fix", '{"patch": "x"}', "data"),
        ("calc.py", "def add(): ...", "code"),
    ],
)
def test_agent_that_only_reads_hands_in_no_change(
    project: Project, crew: Crew, title: str, content: str, kind: str
) -> None:
    root = begin(project)
    crew.do(child(root, "understand"), ("understanding", UNDERSTOOD))
    explore = child(root, "explore")
    crew.begin(explore)
    with pytest.raises(Forbidden) as caught:
        crew.give(explore, title, content, kind)
    assert caught.value.code == "read_only"
    assert not explore.outputs.exists()


def test_failed_box_is_planned_again_with_the_ticked_ones_kept(
    project: Project, crew: Crew
) -> None:
    root = begin(project)
    implement = up_to_boxes(crew, root)
    crew.do(child(implement, "1.1"), ("calc.py", "add"), kind="code")
    for _ in range(2):
        second = child(implement, "1.2")
        claim(second, crew.maker)
        start(second, crew.maker)
        set_status(second, crew.maker, "failed", detail="no compiler")
    drive(project)
    again = child(fresh(root), "implement")
    assert again.pk != implement.pk
    assert fresh(root).failure_count == 1
    keys = set(again.children.values_list("step_key", flat=True))
    assert keys == {"1.2", "1.3"}
    assert fresh(child(root, "propose")).status == "done"


def test_naming_an_unfinished_change_resumes_it(project: Project, crew: Crew) -> None:
    root = begin(project)
    implement = up_to_boxes(crew, root)
    crew.do(child(implement, "1.1"), ("calc.py", "add"), kind="code")
    run = WorkflowRun.objects.get()
    assert begin(project, run.change_id).pk == root.pk
    cancel_task(task_id=root.pk, actor=SIR, reason="later")
    again = begin(project, run.change_id)
    assert again.pk != root.pk
    assert list(again.children.values_list("step_key", flat=True)) == ["implement"]
    implement = child(again, "implement")
    keys = list(implement.children.order_by("pk").values_list("step_key", flat=True))
    assert keys == ["1.2", "1.3"]
    crew.do(child(implement, "1.2"), ("calc.py", "sub"), kind="code")
    crew.do(child(implement, "1.3"), ("calc.py", "both"), kind="code")
    assert fresh(again).status == "done"
    assert boxes_of(project, WorkflowRun.objects.get()) == {"1.1": True, "1.2": True, "1.3": True}
    with pytest.raises(Conflict, match="is finished"):
        begin(project, run.change_id)


def test_same_request_twice_makes_two_changes(project: Project) -> None:
    begin(project)
    begin(project)
    ids = set(WorkflowRun.objects.values_list("change_id", flat=True))
    assert ids == {"add-calculator-shop", "add-calculator-shop-2"}


def test_more_boxes_than_slots_run_ten_at_a_time(project: Project, crew: Crew) -> None:
    root = begin(project)
    propose = up_to_proposal(crew, root)
    numbers = [f"1.{n}" for n in range(1, 13)]
    boxes = "# Tasks\n\n## Implementation\n\n" + "".join(box(one, "add") for one in numbers)
    crew.do(propose, ("proposal.md", PROPOSAL), ("task.md", boxes))
    crew.judge_it(verdict="pass", checks=FIVE_OK)
    drive(project)
    implement = child(root, "implement")
    assert list(implement.children.order_by("pk").values_list("step_key", flat=True)) == numbers
    agents = [new_agent(project=project) for _ in numbers]
    for number, agent in zip(numbers[:10], agents, strict=False):
        claim(child(implement, number), agent)
    with pytest.raises(NotReady) as refused:
        claim(child(implement, "1.11"), agents[10])
    assert refused.value.extra["reason"] == "slots"
    first = child(implement, "1.1")
    start(first, agents[0])
    Crew(project, agents[0], crew.judge).give(first, "calc.py", "def add(a, b): ...", "code")
    Crew(project, agents[0], crew.judge).hand_off(first)
    assert claim(child(implement, "1.11"), agents[10]).status == "leased"
    with pytest.raises(NotReady):
        claim(child(implement, "1.12"), agents[11])


def test_documents_handed_in_as_json_are_written_by_the_system(
    project: Project, crew: Crew
) -> None:
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    propose = up_to_proposal(crew, root)
    crew.do(propose, ("proposal.md#json", PROPOSAL_JSON), ("task.md#json", TASKS_JSON))
    crew.judge_it(verdict="pass", checks=FIVE_OK)
    names = set(fresh(propose).artifacts.values_list("name", flat=True))
    assert names == {f"{run.directory}/proposal.md", f"{run.directory}/task.md"}
    proposal = parse_proposal_md(read_document(run, "proposal.md") or "")
    assert proposal.changes == (("A module", False), ("**BREAKING** the old script goes", True))
    boxes = parse_task_md(read_document(run, "task.md") or "")
    assert [(one.number, one.depends_on) for one in boxes.items] == [("1.1", ()), ("1.2", ("1.1",))]
    assert "second line" in boxes.items[0].fields["content"]
    drive(project)
    assert child(child(root, "implement"), "1.2").remaining_dependencies == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("{not json", "line 1"),
        (list_of(), "items"),
        (list_of({**ITEM, "number": "1"}), "number 1 must have the form n.m"),
        (list_of({**ITEM, "depends_on": ["9.9"]}), "depends on 9.9"),
        (list_of({**ITEM, "title": "a\n- [x] 1.2 b"}, ITEM), "number 1.1 stands on line"),
    ],
)
def test_faulty_json_of_a_document_is_refused_with_what_is_wrong(
    project: Project, crew: Crew, sent: str, said: str
) -> None:
    propose = up_to_proposal(crew, begin(project))
    crew.begin(propose)
    crew.give(propose, "proposal.md", PROPOSAL)
    crew.give(propose, "task.md#json", sent, "data")
    with pytest.raises(Invalid) as refused:
        crew.hand_off(propose)
    assert said in json.dumps(refused.value.errors)
    assert fresh(propose).status == "working"


def test_a_named_change_begins_with_a_verb(project: Project) -> None:
    begin(project, "add-captcha: ask for it after three tries")
    begin(project, "login-page: show the reason")
    ids = set(WorkflowRun.objects.values_list("change_id", flat=True))
    assert ids == {"add-captcha", "implement-login-page"}


def test_sections_are_put_together_and_other_text_is_kept_as_it_is(
    project: Project, crew: Crew
) -> None:
    root = begin(project, "实现一个计算器")
    run = WorkflowRun.objects.get()
    assert run.change_id == f"implement-change-{root.number}"
    propose = up_to_proposal(crew, root)
    crew.begin(propose)
    crew.give(propose, "task.md", TASK_LIST)
    head, tail = PROPOSAL.split("## Changes")
    crew.give(propose, "proposal.md#1", head)
    crew.give(propose, "proposal.md#2", f"## Changes{tail}")
    crew.hand_off(propose)
    crew.judge_it(verdict="pass", checks=FIVE_OK)
    names = set(fresh(propose).artifacts.values_list("name", flat=True))
    assert names == {f"{run.directory}/proposal.md", f"{run.directory}/task.md"}
    assert "实现一个计算器" in propose.description
