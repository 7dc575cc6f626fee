"""Safe stop: find state that cannot be, stop the project, ask Sir, and let it go on once repaired.

Stopping changes the project's state and its clocks and opens one P0 decision; nothing else.
Source: DESIGN section 10 ("Safe stop"), section 4 rule 8, section 9 (`safe_stop`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from orchestration.errors import Conflict, Fault, Invalid
from orchestration.models import Decision, Project, Task
from orchestration.rules.markdown_text import plain
from orchestration.services.audit import seal_events
from orchestration.services.clocks import stop_clocks
from orchestration.services.inbox import open_decision
from orchestration.services.integrity_looks import (
    FaultKind,
    IntegrityFault,
    find_faults,
    is_still_wrong,
)
from orchestration.services.lookups import lock_project
from orchestration.services.moves import move_project
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tree_looks import quick_faults
from orchestration.services.work import SYSTEM, Actor, Work, unit_of_work
from orchestration.states import PROJECT_MOVES, DecisionKind, DecisionStatus, ProjectStatus

logger = logging.getLogger(__name__)
LOST = "关键状态丢失，无法继续执行。"
LOST_ENGLISH = "Critical state is lost; the work cannot go on."
MOST_FAULTS = 100
"""Faults that are listed; one is enough to stop."""
MOST_FOUND = 2_000
SLICE_SECONDS = 20.0
"""So long a turn of the schedule keeps its slot; then it goes to the back of the queue."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. Shape: `is_stopped` says whether the project stands in safe stop."""

    project: Project
    faults: tuple[IntegrityFault, ...]
    is_stopped: bool


def check_project(*, project_id: int, actor: Actor, source: str) -> Checked:
    """Check a whole project; stop it when something is wrong.

    The looks lock nothing; what they find is looked at again under the locks before it stops
    anything, so that work which goes on meanwhile is no fault.
    """
    # What waits for its seal since before a restart is no fault.
    seal_events()
    found = list(islice(find_faults(project_id), MOST_FOUND))
    if not found:
        project = Project.objects.get(pk=project_id)
        return Checked(project, (), project.status == ProjectStatus.SAFE_STOP)
    return _confirm(project_id, found, actor=actor, source=source)


@retry_on_deadlock
def _confirm(
    project_id: int, found: Sequence[IntegrityFault], *, actor: Actor, source: str
) -> Checked:
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        confirmed = (one for one in found if is_still_wrong(project_id, one))
        faults = tuple(islice(confirmed, MOST_FAULTS))
        if faults:
            stop_safely(work, project, faults, source=source)
    return Checked(project, faults, project.status == ProjectStatus.SAFE_STOP)


def stop_safely(
    work: Work, project: Project, faults: Sequence[IntegrityFault], *, source: str
) -> None:
    """Put a project into safe stop and ask Sir (P0), once; an archived project is left as it is.

    A completed one has no move there: it stays as it is, and takes no new work while Sir is asked.
    Locks: expects the project's row locked.
    """
    is_moved = ProjectStatus.SAFE_STOP in PROJECT_MOVES[ProjectStatus(project.status)]
    is_completed = project.status == ProjectStatus.COMPLETED
    if not is_moved and (not is_completed or is_asked(project, DecisionKind.SAFE_STOP)):
        return
    with work.as_system():
        if is_moved:
            move_project(work, project, ProjectStatus.SAFE_STOP, why=f"{LOST} {LOST_ENGLISH}")
            stop_clocks(work, project)
        _ask_sir(work, project, faults, source=source)
    work.flush()


def _ask_sir(
    work: Work, project: Project, faults: Sequence[IntegrityFault], *, source: str
) -> None:
    shown = [one.document() for one in faults[:MOST_FAULTS]]
    open_decision(
        work,
        kind=DecisionKind.SAFE_STOP,
        project=project,
        task=None,
        title=LOST,
        question=f"{LOST} {LOST_ENGLISH}",
        content={
            "faults": shown,
            "source": source,
            "detail": "\n".join(f"- {plain(one['detail'])}" for one in shown),
        },
        params={"faults": len(shown)},
        evidence=shown,
        is_p0=True,
    )


def stop_for_import(*, project_id: int, error: Invalid, actor: Actor) -> None:
    """Stop a project whose loop sent its own state and could not be read."""
    faults = [
        IntegrityFault(FaultKind.IMPORT, one["path"] or "master_task_list", one["message"])
        for one in error.errors[:MOST_FAULTS]
    ] or [IntegrityFault(FaultKind.IMPORT, "master_task_list", error.detail)]
    with unit_of_work(actor) as work:
        stop_safely(work, lock_project(project_id), faults, source="import")


def stop_if_broken(
    work: Work, project: Project, root: Task, *, source: str = "loop"
) -> list[IntegrityFault]:
    """Take the quick look at a root; stop its project when something is wrong. Return what is.

    Locks: expects the project's row locked.
    """
    work.flush()
    faults = quick_faults(project.pk, root.pk)
    if faults:
        stop_safely(work, project, faults, source=source)
    return faults


class TreeBroken(Conflict):
    """Something is wrong with a root that Sir would move: nothing is decided, the project stops.

    Whoever catches it calls `stop_over` once the refused transaction is undone.
    """

    code = "integrity_faults"

    def __init__(self, root: Task, faults: Sequence[IntegrityFault]) -> None:
        named = "; ".join(one.detail for one in faults[:3])
        super().__init__(
            f"Something is wrong: {named}",
            faults=[Fault(path=one.subject, message=one.detail) for one in faults],
        )
        self.root = root


def require_sound(root: Task) -> None:
    """Refuse to move a root on Sir's word while something is wrong with it or its tree.

    A move would explain a state that no service of ours wrote. Errors: TreeBroken.
    """
    faults = quick_faults(root.project_id, root.pk)
    if faults:
        raise TreeBroken(root, faults)


@retry_on_deadlock
def stop_over(broken: TreeBroken, *, source: str) -> None:
    """Stop the project of a root that was found broken, if it still is."""
    with unit_of_work(SYSTEM) as work:
        stop_if_broken(work, lock_project(broken.root.project_id), broken.root, source=source)


def require_intact(project: Project) -> None:
    """Refuse to go on while something is wrong. Errors: Conflict naming every fault."""
    faults = list(islice(find_faults(project.pk), MOST_FAULTS))
    if faults:
        named = "; ".join(one.detail for one in faults[:3])
        raise Conflict(
            f"Something is still wrong: {named}",
            code="integrity_faults",
            faults=[Fault(path=one.subject, message=one.detail) for one in faults],
        )


def is_asked(project: Project, kind: DecisionKind) -> bool:
    """Whether Sir is being asked something of a kind about a project."""
    rows = Decision.objects.filter(
        project=project, kind=kind.value, status=DecisionStatus.OPEN.value
    )
    return rows.exists()


def check_every_project(*, after: int = 0, seconds: float = SLICE_SECONDS) -> int | None:
    """Check every project that is not archived, in the order of their ids, beyond `after`.

    Each is checked on its own: one that cannot be is logged, and keeps none from its check.
    Shape: the id to go on after when the slice ended first, or None when all are checked.
    """
    ends = time.monotonic() + seconds
    rows = Project.objects.filter(pk__gt=after).exclude(status=ProjectStatus.ARCHIVED.value)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    for project_id in ids:
        try:
            check_project(project_id=project_id, actor=SYSTEM, source="schedule")
        except Exception:
            logger.exception("project %s could not be checked", project_id)
        if time.monotonic() >= ends and project_id != ids[-1]:
            return project_id
    return None
