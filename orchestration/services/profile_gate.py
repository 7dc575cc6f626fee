"""What a profile may hand in, and what its stage of a workflow must: checked before the review.

Nothing here runs for a task without a role.
Source: DESIGN section 11 ("Profiles", "Workflows"), FORMATS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.contracts.flow_results import (
    ExplorationResult,
    RunAndFixResult,
    SecurityReview,
    Understanding,
)
from orchestration.contracts.results import OutputInput
from orchestration.errors import (
    Conflict,
    CountersignError,
    Fault,
    Forbidden,
    Invalid,
    MissingOutput,
)
from orchestration.models import Assignment, Output, Task, WorkflowRun
from orchestration.rules import flow_stages as stages
from orchestration.rules.box_lists import BoxList, parse_plan_md, parse_task_md
from orchestration.rules.flow_writing import JSON_PART, WRITERS, write_document
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.rules.profiles import PROFILES
from orchestration.rules.proposals import parse_proposal_md
from orchestration.rules.spec_documents import check_tech_md, parse_spec_md
from orchestration.rules.test_guides import parse_test_guide
from orchestration.runner.workspace import read_inside
from orchestration.seats.staged_tests import read_handed_json
from orchestration.services import test_stages
from orchestration.services.answers import is_answered
from orchestration.services.flow_documents import read_boxes, read_document, run_of
from orchestration.services.outputs import add_output, newest_outputs, sections_of
from orchestration.services.work import Work
from orchestration.states import OutputType, Seat

MAX_DOCUMENT_BYTES = 1_000_000
CHANGES = frozenset({OutputType.CODE, OutputType.CONFIG})
DIFF = re.compile(r"^(?:diff --git |@@ -\d|--- \S.*\n\+\+\+ \S)", re.MULTILINE)
CHANGE_KEYS = frozenset({"patch", "diff", "changes", "commands", "proposed_fix", "writes"})


def require_may_hand_in(task: Task, document: OutputInput, assignment: Assignment | None) -> None:
    """Raise where an executor's profile may not hand in such an output.

    Errors: Forbidden for a change by who only reads, and for code by who only plans.
    """
    profile = PROFILES.get(task.role)
    if profile is None or assignment is None or assignment.seat != Seat.EXECUTOR:
        return
    if profile.read_only and is_change(document):
        raise Forbidden(
            f"{task.role} only reads: it hands in findings as data or a document, no change, "
            "no code and no file",
            code="read_only",
        )
    if not profile.hands_in_code and document.type in CHANGES:
        raise Forbidden(f"{task.role} hands in no code.", code="no_code")


def is_change(document: OutputInput) -> bool:
    """Whether an output changes something: code, a file of the workspace, or a diff."""
    if document.type in CHANGES or document.path is not None:
        return True
    text = document.content or ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return DIFF.search(text) is not None
    return isinstance(value, Mapping) and bool(CHANGE_KEYS & value.keys())


def settle_profile_work(
    work: Work, task: Task, outputs: Sequence[Output], assignment: Assignment
) -> list[Output]:
    """Check what a profile hands in for its stage. Return the outputs to review.

    Documents get the path where they stand; those handed in by sections are put together.
    Errors: MissingOutput, Conflict, DocumentInvalid and Invalid with every fault.
    Locks: expects the task locked.
    """
    run = run_of(task)
    if run is None:
        if task.role == "QuickExplore":
            read_handed_json(ExplorationResult, outputs)
        return list(outputs)
    stage = (task.role, task.step_key)
    if stage in stages.ASKS_SIR and not is_answered(task):
        raise Conflict(
            "Sir has not been asked yet: put a round of questions to him first "
            "(POST …/questions); this stage ends with his answer",
            code="clarification_missing",
        )
    names = stages.DOCUMENTS.get(stage, ())
    if names:
        found = newest_outputs(task)
        outputs = _settle_documents(work, task, run, names, found, assignment)
    checker = CHECKERS.get(stage) or CHECKERS.get((task.role, ""))
    if checker is not None:
        checker(outputs)
    tested = test_stages.STAGES.get(stage)
    return list(outputs) if tested is None else tested(work, task, outputs, assignment)


def _settle_documents(
    work: Work,
    task: Task,
    run: WorkflowRun,
    names: Sequence[str],
    outputs: Sequence[Output],
    assignment: Assignment,
) -> list[Output]:
    """Find, put together and check the documents of a stage."""
    settled: list[Output] = []
    faults: list[Fault] = []
    for name in names:
        path = stages.document_path(run.directory, name)
        whole = [one for one in outputs if (one.path or one.title) in (name, path)]
        parts = sections_of(task, name, path)
        if not whole and not parts:
            raise MissingOutput(f"{path} was not handed in; give it as an output of that title")
        newest = max(whole, key=lambda one: one.pk) if whole else None
        if newest is None or any(one.pk > newest.pk for one in parts):
            written = _put_together(run, name, parts)
            newest = _add_document(work, task, path, written, len(parts), assignment)
        text = _content_of(task, newest)
        try:
            _check_document(run, name, text)
        except DocumentInvalid as error:
            faults += error.errors
        if not newest.path and newest.title != path:
            newest.title = path
            work.touch(newest, "title")
        settled.append(newest)
    if faults:
        raise DocumentInvalid(f"{len(faults)} faults in the documents.", errors=faults)
    return settled


def _put_together(run: WorkflowRun, name: str, parts: Sequence[Output]) -> str:
    """Join the sections of a document as they first came, or write it from its newer JSON.

    Errors: Invalid with every fault of the JSON.
    """
    newest = max(parts, key=lambda one: one.pk)
    if name in WRITERS and newest.title.endswith(JSON_PART):
        return write_document(name, newest.content, change=run.change_id, directory=run.directory)
    told = [one for one in parts if not one.title.endswith(JSON_PART)]
    return "\n\n".join(one.content.strip("\n") for one in told) + "\n"


def _add_document(
    work: Work, task: Task, path: str, text: str, parts: int, assignment: Assignment
) -> Output:
    document = OutputInput(
        type=OutputType.DOCUMENT, title=path, content=text, summary=f"{parts} sections"
    )
    return add_output(work, task, document, assignment=assignment, data=text.encode())


def _content_of(task: Task, output: Output) -> str:
    """Read the text of a document. Errors: WorkspaceError, TooLarge, DocumentInvalid."""
    if not output.path:
        return output.content
    data = read_inside(Path(task.project.workspace), output.path, MAX_DOCUMENT_BYTES)
    return _decoded(output.path, data)


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        fault = Fault(path=path, message=f"line {line}: is not valid UTF-8")
        raise DocumentInvalid(f"{path} is no text.", errors=[fault]) from None


def require_document(task: Task, name: str, data: bytes) -> None:
    """Check what is to stand for a document of a task's workflow; any other name is not checked.

    Errors: DocumentInvalid with every fault.
    """
    run = run_of(task)
    head, _, last = name.rpartition("/")
    if run is None or head != run.directory:
        return
    _check_document(run, last, _decoded(name, data))


def _check_document(run: WorkflowRun, name: str, text: str) -> None:
    """Check one document against its format. Errors: DocumentInvalid."""
    if name == stages.PROPOSAL_MD:
        parse_proposal_md(text)
    elif name == stages.TASK_MD:
        _require_open(run, name, parse_task_md(text))
    elif name == stages.SPEC_MD:
        parse_spec_md(text)
    elif name == stages.TECH_MD:
        check_tech_md(text)
    elif name == stages.TEST_GUIDE_MD:
        parse_test_guide(text)
    elif name == stages.PLAN_MD:
        spec = read_document(run, stages.SPEC_MD)
        boxes = parse_plan_md(
            text,
            requirements=parse_spec_md(spec).requirement_ids if spec is not None else None,
            change=run.change_id,
            spec=stages.document_path(run.directory, stages.SPEC_MD),
            design=stages.document_path(run.directory, stages.TECH_MD),
        )
        _require_open(run, name, boxes)


def _require_open(run: WorkflowRun, name: str, boxes: BoxList) -> None:
    """Only the system ticks: a box that comes ticked must be ticked in the standing version.

    And what is ticked there stays in the list: its work is done. Errors: DocumentInvalid.
    """
    standing = read_boxes(run)
    ticked = {one.number for one in standing.items if one.is_done} if standing else set()
    faults = [
        Fault(path=name, message=f"line {one.box.line}: only the system ticks boxes")
        for one in boxes.items
        if one.is_done and one.number not in ticked
    ]
    gone = ticked - {one.number for one in boxes.items}
    faults += [
        Fault(path=name, message=f"line 1: box {number} is ticked already and may not go")
        for number in sorted(gone)
    ]
    if faults:
        raise DocumentInvalid(f"{name} does not keep the boxes that are ticked.", errors=faults)


def _understood(outputs: Sequence[Output]) -> None:
    read_handed_json(Understanding, outputs)


def _explored(outputs: Sequence[Output]) -> None:
    read_handed_json(ExplorationResult, outputs)


def _reviewed(outputs: Sequence[Output]) -> None:
    read_handed_json(SecurityReview, outputs)


def _ran(outputs: Sequence[Output]) -> None:
    if not read_handed_json(RunAndFixResult, outputs).runnable:
        message = "it does not run; hand it in as failed with the reason"
        raise Invalid(f"{message}.", errors=[Fault(path="runnable", message=message)])


Checker = Callable[[Sequence[Output]], None]
CHECKERS: Mapping[tuple[str, str], Checker] = {
    ("StrictPlan", stages.UNDERSTAND): _understood,
    ("QuickExplore", ""): _explored,
    ("QuickExplore", stages.SECURITY): _reviewed,
    ("TddRunAndFix", stages.RUN): _ran,
}
"""What is read of a stage's result; without a step, of the profile wherever it works."""


def profile_findings(task: Task, outputs: Sequence[Output]) -> list[dict[str, Any]]:
    """List what a security review found, as graded findings for QA."""
    if (task.role, task.step_key) != ("QuickExplore", stages.SECURITY) or task.fix_round:
        return []
    try:
        review: SecurityReview = read_handed_json(SecurityReview, outputs)
    except CountersignError:
        # It was read at the hand-in; an exploration by this name outside the workflow is none.
        return []
    return [
        {
            "severity": one.severity.value,
            "category": "defect",
            "title": one.title,
            "description": one.description or one.advice,
            "evidence": {"text": json.dumps([item.to_document() for item in one.evidence],
                                            ensure_ascii=False)},
            "proposed_fix": {"description": one.advice},
            "raised_by": task.role,
            "source_key": f"security:{number}",
        }
        for number, one in enumerate(review.findings, start=1)
    ]  # fmt: skip


def settle_fixed_work(work: Work, task: Task, assignment: Assignment) -> None:
    """Check what a fixer handed in for a stage, as its executor's work is checked."""
    settle_profile_work(work, task, newest_outputs(task), assignment)
