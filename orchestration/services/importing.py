"""Import a master task list: every entry or none.

Each master status becomes a state, with an `imported` event. What was in progress is pending again
and comes first; what had failed is planned again later, in its own transaction.
Source: FORMATS ("Master task list"), DESIGN section 4 rule 20 and section 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.contracts.master_list import MasterEntry, cycles_in, parse_master_list
from orchestration.errors import Fault, Invalid
from orchestration.models import Project, Task, TaskDependency
from orchestration.rules.prefilter import prefilter
from orchestration.selectors.tasks import IMPORTED_REASON
from orchestration.services.blueprints import take_numbers
from orchestration.services.intake import find_root, root_facts
from orchestration.services.known_entries import known_entries
from orchestration.services.lookups import lock_project
from orchestration.services.loop import complete_project_if_done, end_fatal
from orchestration.services.projects import reopen_for_work
from orchestration.services.readiness import make_ready, record_prefilter, start_roots
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import (
    MASTER_VIEW,
    MAX_RETRIES_REASON,
    Complexity,
    Route,
    TaskKind,
    TaskStatus,
)

IMPORTED = IMPORTED_REASON
STATES: Mapping[str, TaskStatus] = {
    MASTER_VIEW[TaskStatus.PENDING]: TaskStatus.PENDING,
    MASTER_VIEW[TaskStatus.WORKING]: TaskStatus.PENDING,
    MASTER_VIEW[TaskStatus.DONE]: TaskStatus.DONE,
    MASTER_VIEW[TaskStatus.FAILED]: TaskStatus.FAILED,
    MAX_RETRIES_REASON: TaskStatus.FATAL,
    MASTER_VIEW[TaskStatus.CANCELLED]: TaskStatus.CANCELLED,
}
IN_PROGRESS = MASTER_VIEW[TaskStatus.WORKING]


@dataclass(frozen=True, slots=True)
class _Named:
    """An entry with the key it came under, and the task it became."""

    key: str
    entry: MasterEntry
    task: Task


@dataclass(frozen=True, slots=True)
class Imported:
    """The tasks of a list, in its order, and how many of them were made of it."""

    tasks: list[Task]
    made: int


@retry_on_deadlock
def import_master_list(*, project_id: int, document: object, actor: Actor) -> Imported:
    """Make root tasks of a master list, and start what may start.

    What is a task already and says the same is left as it is; a list of only such changes nothing.
    Errors: Invalid listing every fault; then nothing is changed. Conflict when the project takes no
    new work.
    """
    listed = parse_master_list(document)
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        known, faults = known_entries(project, listed)
        needed = _require_sound(project, listed, known, faults)
        entries = {key: entry for key, entry in listed.items() if key not in known}
        if not entries:
            return Imported(list(known.values()), 0)
        reopen_for_work(work, project)
        numbers = take_numbers(project, len(entries))
        ranks = _ranks(project, entries, numbers)
        rows = [
            _Named(key, entry, _create(work, project, key, entry, number, ranks[key]))
            for (key, entry), number in zip(entries.items(), numbers, strict=True)
        ]
        _link(rows, needed)
        work.flush()
        _settle(work, project, rows)
    tasks = known | {row.key: row.task for row in rows}
    return Imported([tasks[key] for key in listed], len(rows))


def _require_sound(
    project: Project,
    entries: Mapping[str, MasterEntry],
    known: Mapping[str, Task],
    faults: list[Fault],
) -> dict[str, list[Task | str]]:
    """Check what only the project can tell; resolve dependencies to keys of the list or tasks.

    Errors: Invalid listing the faults given, unknown and own dependencies, and cycles.
    """
    needed: dict[str, list[Task | str]] = {}
    for key, entry in entries.items():
        found: list[Task | str] = []
        for at, name in enumerate(dict.fromkeys(entry.depends_on)):
            one = known.get(name) or (name if name in entries else find_root(project, name))
            if name == key or one is None:
                said = "itself" if name == key else "no task of the list or the project"
                faults.append(Fault(path=f"{key}.depends_on.{at}", message=f"{name!r} is {said}"))
            else:
                found.append(one)
        needed[key] = found
    graph = {key: [one for one in found if isinstance(one, str)] for key, found in needed.items()}
    faults += [Fault(path=path, message=message) for path, message in cycles_in(graph)]
    if faults:
        raise Invalid(
            f"The master task list has {len(faults)} fault(s); nothing was changed.",
            code="import_invalid",
            errors=faults,
        )
    return needed


def _ranks(
    project: Project, entries: Mapping[str, MasterEntry], numbers: Sequence[int]
) -> dict[str, int]:
    """Rank the entries as given, else in their order; what was in progress comes first of all."""
    ranks = {
        key: number if entry.rank is None else entry.rank
        for (key, entry), number in zip(entries.items(), numbers, strict=True)
    }
    first = [key for key, entry in entries.items() if entry.status == IN_PROGRESS]
    pending = Task.objects.filter(
        project=project, parent__isnull=True, status=TaskStatus.PENDING.value
    )
    to_come = (TaskStatus.PENDING, TaskStatus.FAILED)
    others = [
        ranks[key]
        for key, entry in entries.items()
        if key not in first and STATES[entry.status] in to_come
    ]
    lowest = min([*others, *pending.values_list("rank", flat=True)], default=None)
    first.sort(key=lambda key: ranks[key])
    if lowest is not None and first and ranks[first[-1]] >= lowest:
        ranks |= {key: lowest - len(first) + at for at, key in enumerate(first)}
    return ranks


def _create(
    work: Work, project: Project, key: str, entry: MasterEntry, number: int, rank: int
) -> Task:
    """Create one root in the state that its master status says, with its S0 record."""
    state = STATES[entry.status]
    task = Task.objects.create(
        project=project,
        number=number,
        kind=TaskKind.TASK.value,
        external_key=key,
        title=(entry.title or key)[:300],
        description=entry.description,
        spec_id=entry.spec_id,
        rank=rank,
        route=Route.THREE_STEP.value,
        complexity=Complexity.HIGH.value,
        is_planned=True,
        is_assessed=True,
        status=state.value if state is not TaskStatus.FATAL else TaskStatus.FAILED.value,
        status_detail=entry.reason if state is not TaskStatus.DONE else "",
        cancel_reason=IMPORTED if state is TaskStatus.CANCELLED else "",
        last_outcome=_outcome(state, entry.reason),
        facts=[{IMPORTED: dict(entry.extra)}] if entry.extra else [],
        **_failures(work, project, state, entry.reason),
    )
    record_prefilter(work, task, prefilter(entry.description or task.title, project.policy))
    work.record(
        f"task.{IMPORTED}",
        subject=f"task:{task.pk}",
        project_id=project.pk,
        task_id=task.pk,
        after={**root_facts(task), "master_status": entry.status, "key": key},
        why=entry.reason,
    )
    work.hint(f"project:{project.pk}", project.pk)
    return task


def _outcome(state: TaskStatus, reason: str) -> str:
    if state is TaskStatus.DONE:
        return "done"
    is_failure = state in (TaskStatus.FAILED, TaskStatus.FATAL)
    return f"failed: {reason}"[:300] if is_failure else ""


def _failures(work: Work, project: Project, state: TaskStatus, reason: str) -> dict[str, Any]:
    """Count the failures that a failed or fatal entry stands for."""
    if state not in (TaskStatus.FAILED, TaskStatus.FATAL):
        return {}
    limit = project.policy.thresholds.max_retries
    context = {
        "attempt": 1,
        "class": IMPORTED,
        "root_cause": reason,
        "at": work.now.isoformat(),
    }
    count = limit if state is TaskStatus.FATAL else 1
    again = work.now if state is TaskStatus.FAILED else None
    return {"failure_count": count, "failure_context": [context], "replan_at": again}


def _link(rows: Sequence[_Named], needed: Mapping[str, Sequence[Task | str]]) -> None:
    """Write the dependencies and how many of each task's are not done."""
    by_key = {row.key: row.task for row in rows}
    edges: list[TaskDependency] = []
    for row in rows:
        # In the order they were named: the list says them in it again.
        found = dict.fromkeys(
            by_key[one] if isinstance(one, str) else one for one in needed[row.key]
        )
        edges += [TaskDependency(task=row.task, requires=one) for one in found]
        unmet = sum(one.status != TaskStatus.DONE for one in found)
        if unmet:
            row.task.remaining_dependencies = unmet
            row.task.save(update_fields=["remaining_dependencies"])
    TaskDependency.objects.bulk_create(edges)


def _settle(work: Work, project: Project, rows: Sequence[_Named]) -> None:
    """Start what may start; a fatal entry suspends the project and asks Sir, as at its end."""
    for row in rows:
        if STATES[row.entry.status] is TaskStatus.FATAL:
            end_fatal(work, row.task)
            work.flush()
    standing = lock_project(project.pk)
    pending = [row.task for row in rows if row.task.status == TaskStatus.PENDING]
    for task in pending:
        task.project = standing
    make_ready(work, pending)
    work.flush()
    start_roots(work, standing)
    work.flush()
    complete_project_if_done(work, standing)
