"""Start a workflow: name its change, write its plan, create its root; or resume what stands.

Naming a change that is not finished resumes it: its root goes on where it is, or, where that has
ended, a new root takes over the documents that are locked already.
Source: DESIGN section 11 ("Workflows"), FORMATS ("strict-plan documents").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.errors import Conflict, NotFound
from orchestration.models import Project, Task, WorkflowRun
from orchestration.rules.change_names import (
    change_id_fault,
    change_id_of,
    is_change_id,
    unique_name,
)
from orchestration.rules.flow_stages import STRICT_PLAN, directory_of, document_path
from orchestration.services.flow_documents import read_boxes
from orchestration.services.intake import NewTask, begin_roots, create_within, title_of
from orchestration.services.lookups import lock_project
from orchestration.services.projects import reopen_for_work
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import TaskStatus

BACKEND = "workflow"
NAME = re.compile(r"<([\w.]{1,40})>")
NAMED = re.compile(r"([a-z][a-z0-9]*(?:-[a-z0-9]+)+)\s*(?:[:：]\s*(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Change:
    """What a workflow's steps are written from. Shape: `text` is the request, word for word."""

    id: str
    directory: str
    text: str
    language: str

    def path(self, name: str) -> str:
        """Say where one of its documents stands."""
        return document_path(self.directory, name)

    def said(self, english: str, chinese: str) -> str:
        """Choose the project's language."""
        return chinese if self.language.lower().startswith("zh") else english

    def action(self, english: str, chinese: str) -> str:
        """Write what a step is told: its duty, the change, and the request word for word."""
        head = self.said(english, chinese)
        change = self.said(f"Change: {self.id}", f"变更：{self.id}")
        label = self.said("The request, word for word:", "需求原文：")
        return f"{head}\n{change}\n\n{label}\n{self.text}"


Steps = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a workflow.

    Shape: `titles` and `texts` in English and Chinese; `<spec.md>` in a text stands for the path of
    that document; `is_planned` for a stage that is planned when its turn comes.
    """

    key: str
    role: str
    titles: tuple[str, str]
    texts: tuple[str, str]
    after: str = ""
    writes: tuple[str, ...] = ()
    is_planned: bool = False

    def step(self, change: Change) -> dict[str, Any]:
        """Write the stage as a step of a change's plan."""
        told = [NAME.sub(lambda found: change.path(found[1]), text) for text in self.texts]
        step = {
            "id": self.key,
            "title": change.said(*self.titles),
            "action": change.action(*told),
            "depends_on": [self.after] if self.after else [],
            "role": self.role,
            "delegate": self.is_planned,
        }
        return step | ({"scope": [change.path(one) for one in self.writes]} if self.writes else {})


@dataclass(frozen=True, slots=True)
class Flow:
    """A workflow as it is started.

    Shape: `documents` says which step each document makes superfluous once it is locked.
    """

    name: str
    role: str
    stages: Sequence[Stage]
    documents: Mapping[str, Sequence[str]]

    def steps(self, change: Change) -> list[dict[str, Any]]:
        """Write the steps of a change."""
        return [one.step(change) for one in self.stages]


@retry_on_deadlock
def start_flow(flow: Flow, *, project_id: int, text: str, actor: Actor) -> Task:
    """Start a workflow on a request, or resume the change that the request names.

    Errors: as `create_task`; Conflict for a change that is finished.
    Locks: the project.
    """
    named = NAMED.fullmatch(text.strip())
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        reopen_for_work(work, project)
        run = _standing(project, flow, named[1]) if named is not None else None
        if run is not None:
            resumed = _resume(work, project, flow, run, has_text=bool(named and named[2]))
            if resumed is not None:
                return resumed
        return _begin(work, project, flow, text.strip(), named)


def _standing(project: Project, flow: Flow, change_id: str) -> WorkflowRun | None:
    rows = WorkflowRun.objects.select_related("task")
    return rows.filter(project=project, name=flow.name, change_id=change_id).first()


def _begin(
    work: Work, project: Project, flow: Flow, text: str, named: re.Match[str] | None
) -> Task:
    request = (named[2] or text).strip() if named is not None else text
    wanted = change_id_of(request, number=project.task_sequence + 1)
    if named is not None and is_change_id(named[1]):
        wanted = named[1]
        if flow.name == STRICT_PLAN and change_id_fault(wanted):
            # A change begins with a verb; a feature of a specification is a noun.
            wanted = change_id_of(wanted, number=project.task_sequence + 1)
    like = WorkflowRun.objects.filter(project=project, change_id__startswith=wanted[:40])
    change_id = unique_name(wanted, set(like.values_list("change_id", flat=True)))
    directory = directory_of(flow.name, change_id)
    change = Change(change_id, directory, request, project.language)
    task = _root(work, project, flow, change, flow.steps(change))
    run = WorkflowRun.objects.create(
        project=project, task=task, name=flow.name, change_id=change_id,
        directory=directory, text=request,
    )  # fmt: skip
    _record(work, run, "workflow.started")
    begin_roots(work, project, [task])
    return task


def _resume(
    work: Work, project: Project, flow: Flow, run: WorkflowRun, *, has_text: bool
) -> Task | None:
    """Go on with a change: its root where that is open, else a new root with what is left.

    None where it is finished and a text came with it: that is another change.
    Errors: Conflict for one that is finished.
    """
    boxes = read_boxes(run)
    is_left = boxes is not None and bool(boxes.open_items)
    if run.task.status == TaskStatus.DONE and not is_left:
        if has_text:
            return None
        raise Conflict(f"The change {run.change_id} is finished.", code="change_finished")
    if run.task.status not in (TaskStatus.DONE, TaskStatus.CANCELLED):
        run.task.project = project
        return run.task
    change = Change(run.change_id, run.directory, run.text, project.language)
    known = set(run.documents.values_list("path", flat=True))
    steps = _left(flow, change, known)
    task = _root(work, project, flow, change, steps)
    run.task = task
    run.save(update_fields=["task"])
    _record(work, run, "workflow.resumed")
    begin_roots(work, project, [task])
    return task


def _left(flow: Flow, change: Change, known: set[str]) -> Steps:
    """Drop the steps whose documents are locked, and what only led to them."""
    done: set[str] = set()
    for name, keys in flow.documents.items():
        if change.path(name) in known:
            done.update(keys)
    steps = [one for one in flow.steps(change) if one["id"] not in done]
    for one in steps:
        one["depends_on"] = [key for key in one.get("depends_on", ()) if key not in done]
    if not steps:
        raise NotFound(f"Nothing is left to do of {change.id}.")
    return steps


def _root(work: Work, project: Project, flow: Flow, change: Change, steps: Steps) -> Task:
    title = f"/{flow.name} {title_of(change.text)}"[:300]
    new = NewTask(
        text=change.text,
        title=title,
        role=flow.role,
        plan={"title": title[:300], "summary": title, "steps": list(steps)},
        backend=BACKEND,
    )
    return create_within(work, project, [new])[0]


def _record(work: Work, run: WorkflowRun, kind: str) -> None:
    work.record(
        kind,
        subject=f"task:{run.task_id}",
        project_id=run.project_id,
        task_id=run.task_id,
        after={"workflow": run.name, "change": run.change_id, "directory": run.directory},
    )
