"""Control commands: what the loop decided after one verdict of a root, stored as source 002 has it.

Direct tasks and messages are outside the loop: their verdicts issue none. The end of a project is
commanded whatever root ends it.
Source: DESIGN section 10, section 4 rule 18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from orchestration.contracts.loop import NextAction
from orchestration.contracts.options import LOOP
from orchestration.models import (
    ControlCommand,
    Decision,
    Project,
    Task,
    TaskDependency,
    ValidationPackage,
)
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_rows
from orchestration.models.statements import waiting_roots
from orchestration.selectors.tasks import master_entries, master_list
from orchestration.services.archive import final_report
from orchestration.services.inbox import open_decision, withdraw_decision
from orchestration.services.lookups import lock_project
from orchestration.services.packages import evidence_link, package_of
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import (
    TASK_TERMINAL,
    DecisionKind,
    DecisionStatus,
    ProjectStatus,
    Route,
    TaskKind,
    TaskStatus,
)

LIST_MAX = 200
"""Roots up to which a command keeps the whole list; beyond, only what the verdict touched."""
NAMED_BLOCKERS = 50
BATCH = 50
BEGUN = (
    TaskStatus.CLAIMED, TaskStatus.WORKING, TaskStatus.REVIEW, TaskStatus.BLOCKED,
    TaskStatus.WAITING_HUMAN,
)  # fmt: skip
STARTABLE = (TaskStatus.PENDING, TaskStatus.FAILED)
ENDED = [state.value for state in TASK_TERMINAL]


def is_in_loop(root: Task) -> bool:
    """Whether a root's verdicts become control commands."""
    return root.kind == TaskKind.TASK and root.route != Route.DIRECT


def name_of(root: Task) -> str:
    """A root as the outside names it."""
    return root.external_key or str(root)


def command_failure(
    work: Work, project: Project, root: Task, package: ValidationPackage, *, is_fatal: bool
) -> ControlCommand | None:
    """Issue the command of a negative verdict: restart with the failure, or stop for Sir."""
    if not is_in_loop(root):
        return None
    failure = {
        "failed_task": name_of(root),
        "root_cause": package_of(package).cause,
        "evidence_link": evidence_link(package),
    }
    action = NextAction.SUSPEND_FOR_HUMAN if is_fatal else NextAction.RESTART_FROM_STEP_2
    context = _context(root, root.spec_id, failure)
    return _issue(work, project, root, action, package=package, context=context)


def command_success(
    work: Work, project: Project, root: Task, package: ValidationPackage | None
) -> ControlCommand | None:
    """Issue the command after a root is done: the next task, or Sir (rule 18).

    Where the project is completed with it, the end was commanded then.

    Locks: expects the project's row locked, and the next roots started already.
    """
    if project.status == ProjectStatus.COMPLETED:
        return None
    if not is_in_loop(root):
        ask_if_stalled(work, project)
        return None
    work.flush()
    following = next_root(project)
    if following is not None:
        context = _context(following, following.spec_id or root.spec_id, None)
        return _issue(
            work, project, root, NextAction.PROCEED_TO_NEXT_TASK,
            package=package, context=context, touched=[following],
        )  # fmt: skip
    blockers = _blockers(project)
    if not blockers:
        return None
    _ask_sir(work, project, blockers)
    return _issue(work, project, root, NextAction.SUSPEND_FOR_HUMAN, package=package)


def command_end(
    work: Work, project: Project, root: Task | None, package: ValidationPackage | None
) -> ControlCommand | None:
    """Issue the end of a project that was just completed, about the root that ended last.

    A project in which the loop has nothing done gets none.
    Locks: expects the project's row locked.
    """
    work.flush()
    withdraw_loop_question(work, project)
    done = _roots(project.pk).filter(status=TaskStatus.DONE.value).exclude(route=Route.DIRECT.value)
    last = root or _roots(project.pk).order_by("-updated_at", "-pk").first()
    if last is None or not done.exists():
        return None
    return _issue(
        work, project, last, NextAction.TERMINATE_SUCCESS,
        package=package, final_report=final_report(project),
    )  # fmt: skip


def ask_if_stalled(work: Work, project: Project) -> bool:
    """Ask Sir about an active project in which no root may start, runs or waits (rule 18).

    Locks: expects the project's row locked.
    """
    work.flush()
    if project.status != ProjectStatus.ACTIVE or next_root(project) is not None:
        return False
    blockers = _blockers(project)
    if blockers:
        _ask_sir(work, project, blockers)
    return bool(blockers)


def stalled_projects() -> Sequence[int]:
    """List active projects in which nothing can start any more, and of which nobody was asked."""
    roots = Task.objects.filter(
        project=OuterRef("pk"), parent__isnull=True, kind=TaskKind.TASK.value
    )
    goes_on = Q(status__in=BEGUN) | Q(status__in=STARTABLE, remaining_dependencies=0)
    asked = Decision.objects.filter(
        project=OuterRef("pk"), status=DecisionStatus.OPEN.value, content__reason=LOOP
    )
    rows = Project.objects.filter(
        Exists(roots.exclude(status__in=ENDED)),
        ~Exists(roots.filter(goes_on)),
        ~Exists(asked),
        status=ProjectStatus.ACTIVE.value,
    )
    return list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])


@retry_on_deadlock
def ask_about_stalled(project_id: int) -> bool:
    """Ask about one project that `stalled_projects` found, if it still is."""
    with unit_of_work(SYSTEM) as work:
        return ask_if_stalled(work, lock_project(project_id))


def next_root(project: Project) -> Task | None:
    """The root the loop works on next: the planned one at work, else one begun or that may start.

    Small work that somebody has in hand does not hide the root that was just sent to planning.
    """
    begun = _first_begun(project.pk)
    if not (begun and begun[0][1]):
        planned = waiting_roots(project.pk, limit=1)
        if planned:
            planned[0].project = project
            return planned[0]
    for pk, _ in begun or _first_startable(project.pk):
        found = fetch_rows(Task, "id = %s", [pk])[0]
        found.project = project
        return found
    return None


@Prepared
def _first_begun(project_id: int) -> QuerySet[Any, Any]:
    rows = _roots(project_id).filter(status__in=[state.value for state in BEGUN])
    return rows.order_by("-is_planned", "rank", "pk").values_list("pk", "is_planned")[:1]


@Prepared
def _first_startable(project_id: int) -> QuerySet[Any, Any]:
    states = [state.value for state in STARTABLE]
    rows = _roots(project_id).filter(status__in=states, remaining_dependencies=0)
    return rows.order_by("rank", "pk").values_list("pk", "is_planned")[:1]


def _blockers(project: Project) -> list[Task]:
    """List the roots that have not ended, by rank."""
    rows = _roots(project.pk).exclude(status__in=ENDED)
    return list(rows.order_by("rank", "pk")[:NAMED_BLOCKERS])


def _roots(project_id: int) -> QuerySet[Task]:
    return Task.objects.filter(project=project_id, parent__isnull=True, kind=TaskKind.TASK.value)


def _context(task: Task, spec_id: str, failure: Mapping[str, str] | None) -> dict[str, Any]:
    return {
        "original_spec_id": spec_id,
        "task_to_process": name_of(task),
        "failure_context": dict(failure) if failure is not None else None,
    }


def _issue(
    work: Work,
    project: Project,
    root: Task,
    action: NextAction,
    *,
    package: ValidationPackage | None,
    context: Mapping[str, Any] | None = None,
    final_report: str | None = None,
    touched: Sequence[Task] = (),
) -> ControlCommand:
    work.flush()
    is_partial = len(_first_roots(project.pk)) > LIST_MAX
    rows = [root, *(one for one in touched if one.pk != root.pk)]
    row = ControlCommand.objects.create(
        project=project,
        task=root,
        package=package,
        next_action=action.value,
        context_for_step_2=dict(context) if context is not None else None,
        final_report=final_report,
        master_list_after=master_entries(project, rows) if is_partial else master_list(project),
        is_list_partial=is_partial,
        created_at=work.now,
    )
    with work.as_system():
        work.record(
            "loop.commanded",
            subject=f"command:{row.pk}",
            project_id=project.pk,
            task_id=root.pk,
            after={"next_action": row.next_action, "context_for_step_2": row.context_for_step_2},
        )
    work.hint(f"project:{project.pk}", project.pk)
    work.hint(f"task:{root.pk}", project.pk, root.version)
    return row


def _ask_sir(work: Work, project: Project, blockers: Sequence[Task]) -> None:
    """Open the P0 item of a project in which nothing can start any more (rule 18), once."""
    for row in blockers:
        row.project = project
    names = [
        {"id": str(row.pk),
            "key": str(row), "name": name_of(row), "title": row.title, "status": row.status,
         "needs": [name_of_edge(edge) for edge in _unmet(row)]}
        for row in blockers
    ]  # fmt: skip
    if any(row.content["blockers"] == names for row in _loop_questions(project)):
        return
    withdraw_loop_question(work, project)
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=project,
        task=blockers[0],
        title=project.name,
        question="No task can start any more, and not every one is done. What now?",
        content={"reason": LOOP, "blockers": names},
        params={"about": LOOP, "count": len(blockers)},
        is_p0=True,
    )


def _unmet(row: Task) -> list[TaskDependency]:
    edges = row.requirements.select_related("requires__project").order_by("pk")
    return [
        edge for edge in edges
        if edge.requires.status != TaskStatus.DONE or edge.requires.withholds_dependents
    ][:NAMED_BLOCKERS]  # fmt: skip


def name_of_edge(edge: TaskDependency) -> str:
    """A task that is still needed, with the state that keeps it from being done."""
    needed = edge.requires
    return f"{name_of(needed)}: {'waived' if needed.status == TaskStatus.DONE else needed.status}"


def withdraw_loop_question(work: Work, project: Project) -> None:
    """Take back the item of a project in which nothing could start: it goes on."""
    for row in _loop_questions(project):
        withdraw_decision(work, row, why="the project goes on")


def _loop_questions(project: Project) -> list[Decision]:
    """Lock and list the open items of a project in which nothing could start."""
    ids = [pk for (pk,) in _loop_question_ids(project.pk)]
    if not ids:
        return []
    rows = Decision.objects.filter(pk__in=ids, status=DecisionStatus.OPEN.value)
    return list(locked(rows).order_by("pk"))


@Prepared
def _loop_question_ids(project_id: int) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(
        project=project_id,
        kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.OPEN.value,
        content__reason=LOOP,
    )
    return rows.values_list("pk")


@Prepared
def _first_roots(project_id: int) -> QuerySet[Any, Any]:
    return _roots(project_id).order_by().values_list("pk")[: LIST_MAX + 1]
