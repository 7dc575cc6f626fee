"""Intake: messages, created tasks and imported master lists become roots.

Every entry without a ready plan, role or route passes S0.
Source: DESIGN sections 2 (`kind`), 5 and 6; section 4 rules 1 and 20; FORMATS (master task list).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.access import row_id
from orchestration.contracts.results import CommentInput
from orchestration.errors import Conflict, Fault, Invalid, TooLarge
from orchestration.models import Assessment, Project, Task, TaskDependency
from orchestration.models.inserts import insert_rows
from orchestration.models.rows import new_row
from orchestration.rules.prefilter import PrefilterResult, prefilter
from orchestration.rules.whitelist import MessageKind
from orchestration.services.blueprints import take_numbers
from orchestration.services.drafting import draft_plan
from orchestration.services.lookups import lock_project
from orchestration.services.outputs import add_comment
from orchestration.services.projects import reopen_for_work
from orchestration.services.readiness import make_ready, record_prefilter, start_roots
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import Complexity, Route, TaskKind, TaskStatus

MAX_TEXT_BYTES = 1_000_000
TITLE_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task as it comes in. `plan` makes it a workflow whose plan goes straight to audit.

    `agent_id` is the agent that wrote the plan; it may not judge what comes of it.
    """

    text: str
    title: str = ""
    external_key: str = ""
    depends_on: tuple[str, ...] = ()
    plan: Mapping[str, Any] | None = None
    is_trusted: bool = False
    backend: str = "playbook"
    agent_id: int | None = None
    role: str = ""
    route: str = ""
    spec_id: str = ""
    specification: str = ""
    rank: int | None = None
    scope: tuple[str, ...] = ()
    is_self_initiated: bool = False


@retry_on_deadlock
def submit_message(
    *, project_id: int, text: str, actor: Actor, is_self_initiated: bool = False
) -> tuple[Task, Assessment, PrefilterResult]:
    """Take a message in: S0 decides in this call whether it is small talk, direct, or to be scored.

    Errors: Invalid for an empty message, TooLarge over 1 MB (bytes), Conflict when the project
    takes no new work.
    """
    cleaned = require_text(text)
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        reopen_for_work(work, project)
        result = prefilter(cleaned, project.policy)
        new = NewTask(text=cleaned, is_self_initiated=is_self_initiated)
        task = new_root(work, project, new, _kind_of(result))
        work.flush()
        if result.kind_of_message is MessageKind.CONTINUATION:
            _post_continuation(work, project, task, cleaned)
        begin_roots(work, project, [task])
        known = task.assessments.filter(stage="S0").first()
        assessment = known or record_prefilter(work, task, result, waits=True)
    return task, assessment, result


def require_text(text: str) -> str:
    """Check a message's text.

    Errors: Invalid when empty; TooLarge over 1 MB in bytes.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise TooLarge(f"the message has {size} bytes; at most {MAX_TEXT_BYTES} are accepted")
    cleaned = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    if not any(is_visible(sign) for sign in cleaned):
        raise Invalid("the message is empty", errors=[{"path": "text", "message": "is empty"}])
    return cleaned


def is_visible(sign: str) -> bool:
    """Whether a character says anything: no white space, control, format or replacement sign."""
    return (
        not sign.isspace()
        and sign != "\ufffd"
        and unicodedata.category(sign) not in ("Cc", "Cf", "Zl", "Zp")
    )


def _kind_of(result: PrefilterResult) -> TaskKind:
    return TaskKind.MESSAGE if result.is_message else TaskKind.TASK


def title_of(text: str) -> str:
    """Make a title: the first line that says something, shortened with an ellipsis."""
    line = next((one.strip() for one in text.splitlines() if one.strip()), text.strip())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…"


def root_facts(task: Task) -> dict[str, Any]:
    """What the creation event says of a root: enough to draw its row from the trail alone."""
    facts: dict[str, Any] = {
        "status": task.status,
        "kind": task.kind,
        "title": task.title,
        "number": task.number,
        "rank": task.rank,
        "route": task.route,
        "is_assessed": task.is_assessed,
    }
    if task.cancel_reason:
        facts["cancel_reason"] = task.cancel_reason
    if task.is_self_initiated:
        facts["self_initiated"] = True
    return facts


def new_root(
    work: Work,
    project: Project,
    new: NewTask,
    kind: TaskKind = TaskKind.TASK,
) -> Task:
    """Write one new root with its first event; `begin_roots` starts it."""
    number = take_numbers(project, 1)[0]
    text = new.text.strip()
    task = new_row(
        Task,
        project=project,
        number=number,
        kind=kind.value,
        external_key=new.external_key,
        title=(new.title or title_of(text))[:300],
        description=text,
        role=new.role,
        spec_id=new.spec_id,
        specification=new.specification,
        rank=number if new.rank is None else new.rank,
        scope=list(new.scope),
        is_self_initiated=new.is_self_initiated,
        created_at=work.now,
        updated_at=work.now,
        **_route_of(new),
    )
    insert_rows([task])
    work.record(
        "task.pending",
        subject=f"task:{task.pk}",
        project_id=project.pk,
        task_id=task.pk,
        after=root_facts(task),
    )
    work.hint(f"project:{project.pk}", project.pk)
    return task


def _post_continuation(work: Work, project: Project, message: Task, text: str) -> None:
    """Post a continuation as a comment to the last open task as well."""
    last = (
        Task.objects.filter(project=project, parent__isnull=True, kind=TaskKind.TASK.value)
        .exclude(status__in=[TaskStatus.DONE.value, TaskStatus.CANCELLED.value])
        .exclude(pk=message.pk)
        .last()
    )
    if last is not None:
        last.project = project
        add_comment(work, last, CommentInput(body=text), author=work.actor.name)


def create_task(*, project_id: int, new: NewTask, actor: Actor) -> Task:
    """Create one root task.

    Errors: as `create_tasks`.
    """
    return create_tasks(project_id=project_id, rows=[new], actor=actor)[0]


@retry_on_deadlock
def create_tasks(*, project_id: int, rows: Sequence[NewTask], actor: Actor) -> list[Task]:
    """Create root tasks with their dependencies, all or none, and start what may start.

    Errors: Invalid listing every fault (unknown dependency, cycle, taken key), PlanInvalid.
    """
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        reopen_for_work(work, project)
        made = create_within(work, project, rows)
        begin_roots(work, project, made)
    return made


def create_within(work: Work, project: Project, rows: Sequence[NewTask]) -> list[Task]:
    """Create root tasks inside the caller's transaction; `begin_roots` starts them.

    Errors: as `create_tasks`.
    Locks: expects the project locked.
    """
    made = [_create_one(work, project, row) for row in rows]
    work.flush()
    _link(project, rows, made)
    return made


def _create_one(work: Work, project: Project, row: NewTask) -> Task:
    require_text(row.text or row.title)
    if (
        row.external_key
        and Task.objects.filter(
            project=project, external_key=row.external_key, parent__isnull=True
        ).exists()
    ):
        raise Conflict(f"the key {row.external_key!r} is taken", code="key_taken")
    task = new_root(work, project, row)
    if row.plan is not None:
        draft_plan(
            work, task, row.plan,
            backend=row.backend, agent_id=row.agent_id, is_trusted=row.is_trusted,
        )  # fmt: skip
    return task


def _route_of(row: NewTask) -> dict[str, Any]:
    """The route a new root comes with: a workflow with its plan, else what the caller named.

    A role without a route is direct; everything else is assessed.
    """
    if row.plan is not None:
        return {"route": Route.WORKFLOW.value, "is_planned": True, "is_assessed": True}
    if not row.route and not row.role:
        return {}
    route = Route(row.route or Route.DIRECT)
    by_route = {Route.DIRECT: Complexity.LOW, Route.LIGHT_PLAN: Complexity.MEDIUM}
    return {
        "route": route.value,
        "is_planned": route in (Route.THREE_STEP, Route.WORKFLOW),
        "is_assessed": True,
        "complexity": by_route.get(route, Complexity.HIGH).value,
    }


def _link(project: Project, rows: Sequence[NewTask], made: Sequence[Task]) -> None:
    """Write the dependencies between roots; names are keys, external keys or ids."""
    faults: list[Fault] = []
    edges: list[TaskDependency] = []
    for row, task in zip(rows, made, strict=True):
        unmet = 0
        for name in dict.fromkeys(row.depends_on):
            needed = find_root(project, name)
            if needed is None or needed.pk == task.pk:
                message = "is no other task of this project"
                faults.append({"path": f"depends_on.{name}", "message": message})
                continue
            edges.append(TaskDependency(task=task, requires=needed))
            unmet += needed.status != TaskStatus.DONE
        if unmet:
            task.remaining_dependencies = unmet
            task.save(update_fields=["remaining_dependencies"])
    if faults:
        raise Invalid("unknown dependencies", errors=faults)
    TaskDependency.objects.bulk_create(edges)


def find_root(project: Project, name: str) -> Task | None:
    """Find a root of a project by external key, readable key, or id."""
    roots = Task.objects.filter(project=project, parent__isnull=True)
    found = roots.filter(external_key=name).first() if name else None
    if found is not None:
        return found
    prefix, _, number_text = name.rpartition("-")
    number, found_id = row_id(number_text), row_id(name)
    if prefix == project.key_prefix and number is not None:
        return roots.filter(number=number).first()
    return roots.filter(pk=found_id).first() if found_id is not None else None


def begin_roots(work: Work, project: Project, tasks: Sequence[Task]) -> None:
    """Start what may start of new roots. Locks: expects the project locked."""
    for task in tasks:
        task.project = project
    make_ready(work, list(tasks))
    work.flush()
    start_roots(work, project)
