"""Validation packages that come in from outside: posted, or as the validator seat's result.

Source: DESIGN section 10, section 4 rules 8, 17 and 19; section 14 (`validation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestration.contracts.loop import Verdict
from orchestration.contracts.validation import Package, parse_package
from orchestration.errors import Conflict, Forbidden
from orchestration.models import Agent, Assignment, ControlCommand, Task, ValidationPackage
from orchestration.seats.registry import EXTERNAL
from orchestration.selectors.fixes import waits_for_fix
from orchestration.services.agent_claims import is_independent
from orchestration.services.clocks import RUNNING
from orchestration.services.judging import conclude, wait_for_verdict, weigh
from orchestration.services.lookups import lock_task
from orchestration.services.moves import move_assignment
from orchestration.services.packages import store_package
from orchestration.services.projects import require_active
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, locked, unit_of_work
from orchestration.states import (
    ASSIGNMENT_LIVE,
    DEFECT_UNFINISHED,
    TASK_TERMINAL,
    AssignmentStatus,
    Seat,
    TaskKind,
    TaskStatus,
)

POSTED = "posted"
NAMED = 50


@dataclass(frozen=True, slots=True)
class Posted:
    """A package as it came in. `is_loop_state` when Sir or the orchestrator sends it.

    `agent` is who sent it, None for Sir; whatever its scopes, it must be independent of the work.
    """

    package: Package
    agent: Agent | None = None
    is_loop_state: bool = False
    is_authoritative: bool = False
    attachments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a package. `command` is None for direct tasks."""

    package: ValidationPackage
    command: ControlCommand | None


@retry_on_deadlock
def post_package(*, task_id: int, posted: Posted, actor: Actor) -> Judged:
    """Judge a root on a package that came in; a GO counts once what was locked is mended.

    Errors: Conflict for a task that is no root, a message, or one that is neither in review nor at
    work without open children; ProjectSuspended; Forbidden for an agent that made any of it.
    """
    with unit_of_work(actor) as work:
        root = lock_task(task_id)
        _require_root(root)
        require_active(root.project)
        if posted.agent is not None or not posted.is_loop_state:
            _require_independent(root, posted.agent)
        _require_judgeable(root, posted)
        _end_validators(work, root, posted.agent)
        waits = _waits(root, posted.package)
        package, claimed = _weighed(work, root, posted.package, waits=waits)
        row = store_package(
            work, root, package,
            backend=EXTERNAL if posted.agent is not None else POSTED,
            agent_id=posted.agent.pk if posted.agent is not None else None,
            posted_by=actor.name,
            claimed=claimed,
            is_authoritative=posted.is_authoritative,
            attachments=posted.attachments,
            is_concluded=not waits,
        )  # fmt: skip
        if waits:
            wait_for_verdict(work, root)
        else:
            conclude(work, root, row)
        work.flush()
        command = ControlCommand.objects.filter(project=root.project_id, package=row).first()
    return Judged(row, command)


def _waits(root: Task, package: Package) -> bool:
    """Whether a GO has to wait: something that the root locked is asked about or being fixed.

    Held against the rules at once it would be a NO-GO for a defect that is about to end.
    """
    return package.verdict is Verdict.GO and waits_for_fix(root)


def _weighed(work: Work, root: Task, package: Package, *, waits: bool) -> tuple[Package, str]:
    """Hold a package against the rules, unless it waits: then it is weighed when it counts."""
    return (package, "") if waits else weigh(root, package, work)


def _require_root(root: Task) -> None:
    if root.parent_id is not None or root.kind == TaskKind.MESSAGE:
        raise Conflict("Only a root of the master list is validated.", code="not_a_root")


def _require_independent(root: Task, agent: Agent | None) -> None:
    if agent is None or not is_independent(agent, root, Seat.VALIDATOR):
        raise Forbidden(
            "Whoever planned, executed or fixed anything of a task does not validate it.",
            code="not_independent",
        )


def _require_judgeable(root: Task, posted: Posted) -> None:
    """Raise unless a package may come in now (rule 19); a GO also needs something to go on."""
    if root.status not in (TaskStatus.REVIEW, TaskStatus.WORKING):
        raise Conflict(
            f"The task is {root.status}; a package is taken in review, or at work without open "
            "children.",
            code="not_judgeable",
            current=str(root.status),
        )
    names = []
    rows = root.children.filter(is_superseded=False)
    for row in rows.exclude(status__in=[state.value for state in TASK_TERMINAL]).order_by("pk"):
        row.project = root.project
        names.append(str(row))
    if names:
        raise Conflict(
            f"Its children have not ended: {', '.join(names[:NAMED])}",
            code="children_open", children=names[:NAMED],
        )  # fmt: skip
    if posted.package.verdict is Verdict.GO and not root.awaits_verdict:
        _require_grounds(root, posted)


def _require_grounds(root: Task, posted: Posted) -> None:
    """Raise for a GO on work whose own review is not through, or that nobody has done."""
    unfinished = [state.value for state in DEFECT_UNFINISHED]
    defects = root.defects.filter(status__in=unfinished).order_by("pk")
    titles = list(defects.values_list("title", flat=True)[:NAMED])
    if titles:
        raise Conflict(
            f"A GO cannot overrule an open defect: {titles[0]}",
            code="open_defects", defects=titles,
        )  # fmt: skip
    if root.status == TaskStatus.REVIEW:
        raise Conflict("Its review is not through.", code="review_unfinished")
    if waits_for_fix(root):
        raise Conflict("Something that its steps locked is not mended yet.", code="open_defects")
    if not (root.is_planned and posted.is_loop_state):
        raise Conflict(
            "Nothing was handed in that could be judged; only the loop's own state says GO here.",
            code="nothing_to_judge",
        )


def _end_validators(work: Work, root: Task, agent: Agent | None) -> None:
    """End what is asked of validators: this package is the answer."""
    rows = Assignment.objects.select_related("task").filter(
        task=root,
        seat=Seat.VALIDATOR.value,
        status__in=[state.value for state in ASSIGNMENT_LIVE],
    )
    for row in locked(rows).order_by("pk"):
        mine = agent is not None and row.agent_id == agent.pk
        is_held = row.status == AssignmentStatus.LEASED and mine
        target = AssignmentStatus.DONE if is_held else AssignmentStatus.CANCELLED
        move_assignment(work, row, target, why="" if is_held else "judged by another package")


def record_validator_result(
    work: Work, assignment: Assignment, document: Mapping[str, Any]
) -> list[Assignment]:
    """Take a validator's package; it waits while the project stands still, and counts after.

    Errors: Invalid listing every fault.
    Locks: expects task and assignment locked.
    """
    root, agent = assignment.task, assignment.agent
    package = parse_package(document)
    move_assignment(work, assignment, AssignmentStatus.DONE)
    if root.status != TaskStatus.REVIEW or not root.awaits_verdict:
        return []
    waits = _waits(root, package)
    weighed, claimed = _weighed(work, root, package, waits=waits)
    counts = root.project.status in RUNNING and not waits
    row = store_package(
        work, root, weighed,
        backend=assignment.backend,
        agent_id=assignment.agent_id,
        posted_by=f"agent:{agent.name}" if agent is not None else "",
        claimed=claimed,
        is_concluded=counts,
    )  # fmt: skip
    return conclude(work, root, row) if counts else []
