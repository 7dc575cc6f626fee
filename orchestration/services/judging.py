"""Judge a root whose work is through: GO makes it done, anything else ends its attempt.

The validator seat is the rules, or an agent whose GO the rules can still overrule. While a
project is not active its roots wait for their verdict.
Source: DESIGN section 10, section 4 rules 8, 10 and 19.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, QuerySet

from orchestration.contracts.loop import Verdict
from orchestration.contracts.validation import Package
from orchestration.models import Assignment, Project, Task, ValidationPackage
from orchestration.models.statements import release_dependents
from orchestration.seats.registry import EXTERNAL
from orchestration.selectors.fixes import unfinished_locked, waits_for_fix
from orchestration.services.archive import write_archive
from orchestration.services.assignments import queue_assignment
from orchestration.services.clocks import RUNNING
from orchestration.services.control import command_success, is_in_loop
from orchestration.services.inbox import withdraw_open
from orchestration.services.integrity import stop_if_broken
from orchestration.services.integrity_looks import FaultKind
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_project, lock_task
from orchestration.services.loop import complete_project_if_done, fail_judged
from orchestration.services.moves import move_task
from orchestration.services.packages import build_package, package_of, store_package
from orchestration.services.readiness import make_ready, start_roots
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.unblocking import unblock
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import ASSIGNMENT_LIVE, ProjectStatus, Seat, TaskKind, TaskStatus

BATCH = 50
OUTPUTS_SHOWN = 50


def settle_root(work: Work, root: Task) -> list[Assignment]:
    """Judge a root that passed its review, or let it wait for its judge.

    What it locked and is being fixed, or may be, is judged once that ended.

    Locks: expects the root locked, in review; takes the project's row after it.
    """
    if root.kind == TaskKind.MESSAGE:
        return [] if _is_stopped(work, root) else pass_root(work, root, None)
    stands_still = is_in_loop(root) and root.project.status not in RUNNING
    if stands_still or waits_for_fix(root):
        wait_for_verdict(work, root)
        return []
    held = _package_in_hand(root)
    if held is not None:
        return conclude(work, root, _weigh_held(work, root, held))
    if is_judged_by_agent(root):
        _ask_validator(work, root)
        return []
    work.flush()
    if _is_stopped(work, root):
        return []
    package = build_package(root, work.now)
    return _act_on(work, root, store_package(work, root, package))


def wait_for_verdict(work: Work, root: Task) -> None:
    """Let a root in review wait for its judge; the end of what it waits for, or the sweep, asks."""
    root.awaits_verdict = True
    work.touch(root, "awaits_verdict")


def _package_in_hand(root: Task) -> ValidationPackage | None:
    """The package that came in for this attempt before it could count."""
    if not root.awaits_verdict:
        return None
    return _held_packages(root).order_by("pk").last()


def _held_packages(root: Task) -> QuerySet[ValidationPackage]:
    return ValidationPackage.objects.filter(
        task=root, attempt=root.attempt, concluded_at__isnull=True
    )


def _weigh_held(work: Work, root: Task, held: ValidationPackage) -> ValidationPackage:
    """Hold a package that waited against the rules as they find the root now.

    An overruled GO is stored anew: what came in stays as it was sent.
    """
    package, claimed = weigh(root, package_of(held), work)
    if not claimed:
        return held
    held.concluded_at = work.now
    work.touch(held, "concluded_at")
    return store_package(
        work, root, package,
        backend=held.backend,
        agent_id=held.agent_id,
        posted_by=held.posted_by,
        claimed=claimed,
        is_authoritative=held.is_authoritative,
        attachments=held.attachments,
    )  # fmt: skip


def is_judged_by_agent(root: Task) -> bool:
    """Whether an agent fills the validator seat of a root; direct tasks are judged by rules."""
    return is_in_loop(root) and root.project.policy.backends(Seat.VALIDATOR)[0] == EXTERNAL


def _ask_validator(work: Work, root: Task) -> None:
    """Queue the validator seat with what the rules found and what there is to judge."""
    wait_for_verdict(work, root)
    if _live_validators().filter(task=root).exists():
        return
    work.flush()
    found = build_package(root, work.now)
    outputs = root.outputs.filter(is_orphan=False).order_by("-pk")[:OUTPUTS_SHOWN]
    queue_assignment(
        work, root, Seat.VALIDATOR, root.project.policy,
        input={
            "stage": "validation",
            "title": root.title,
            "description": root.description,
            "specification": root.specification,
            "rules_package": found.model_dump(mode="json", exclude_defaults=True),
            "outputs": [
                {"id": str(one.pk), "title": one.title, "type": one.type, "sha256": one.sha256,
                 "summary": one.summary}
                for one in outputs
            ],
        },
        backend=EXTERNAL,
    )  # fmt: skip


def weigh(root: Task, package: Package, work: Work) -> tuple[Package, str]:
    """Hold a posted package against the rules: a GO cannot overrule what they found.

    Shape: the package that counts, and the verdict that was claimed where it was overruled.
    """
    if package.verdict is not Verdict.GO:
        return package, ""
    work.flush()
    found = build_package(root, work.now)
    if found.verdict is Verdict.GO:
        return package, ""
    posted = package.model_dump(mode="json", exclude_defaults=True)
    return found.model_copy(update={"evidence": (*found.evidence, posted)}), Verdict.GO.value


def conclude(work: Work, root: Task, row: ValidationPackage) -> list[Assignment]:
    """Act on a package: GO makes the root done, anything else ends the attempt.

    In a project that the look stops it is not acted on: the repaired root is judged anew.
    Locks: takes the project's row; the root was locked before it, so a deadlock is retried.
    """
    is_stopped = _is_stopped(work, root)
    if row.concluded_at is None:
        row.concluded_at = work.now
        work.touch(row, "concluded_at")
    elif root.awaits_verdict:
        # One that waited for its turn counts no more.
        for held in locked(_held_packages(root)).order_by("pk"):
            held.concluded_at = work.now
            work.touch(held, "concluded_at")
    return [] if is_stopped else _act_on(work, root, row)


def _act_on(work: Work, root: Task, row: ValidationPackage) -> list[Assignment]:
    if row.verdict == Verdict.GO:
        return pass_root(work, root, row)
    fail_judged(work, root, row)
    return []


def _is_stopped(work: Work, root: Task) -> bool:
    """Look at a root before its verdict moves it; stop its project when something is wrong.

    A move would explain a state that no service of ours wrote.
    """
    faults = stop_if_broken(work, lock_project(root.project_id), root)
    forced = [one.subject for one in faults if one.kind is FaultKind.HISTORY]
    if faults and not root.awaits_verdict and f"task:{root.pk}" not in forced:
        wait_for_verdict(work, root)
    return bool(faults)


def pass_root(work: Work, root: Task, row: ValidationPackage | None) -> list[Assignment]:
    """Make a root done, free what waited for it, start what comes next and issue the command.

    Locks: takes the project's row; the root was locked before it, so a deadlock is retried.
    """
    root.last_outcome = "done"
    root.awaits_verdict = False
    work.touch(root, "last_outcome", "awaits_verdict")
    with work.as_system():
        if root.status == TaskStatus.WORKING:
            # A package may come in before anything was planned here: what is asked for ends.
            work.flush()
            cancel_live(work, [root.pk], why="validated")
            withdraw_open(work, [root.pk], why="validated")
            move_task(work, root, TaskStatus.REVIEW, why="validated")
        move_task(work, root, TaskStatus.DONE)
        return after_done(work, root, row)


def free_dependents(work: Work, root: Task, project: Project) -> None:
    """Free what waited for a root that was just done; a waived one only where Sir said so.

    Locks: as `pass_root`.
    """
    waiting = [] if root.withholds_dependents else release_dependents(root.pk)
    if waiting:
        waiting.sort(key=lambda one: (one.rank, one.pk))
        for one in waiting:
            one.project = project
        make_ready(work, waiting)
        work.flush()


def after_done(
    work: Work, root: Task, row: ValidationPackage | None, *, has_freed: bool = False
) -> list[Assignment]:
    """Free what waited for a root that was just done, unless that was done, and let the loop go on.

    Locks: as `pass_root`.
    """
    unblock(work, root)
    work.flush()
    project = lock_project(root.project_id)
    root.project = project
    write_archive(work, root)
    root.failure_count = root.transient_failures = 0
    root.failure_context = []
    root.replan_at = None
    work.touch(root, "failure_count", "transient_failures", "failure_context", "replan_at")
    work.flush()
    if not has_freed:
        free_dependents(work, root, project)
    complete_project_if_done(work, project, root=root, package=row)
    start_roots(work, project)
    if project.status != ProjectStatus.SAFE_STOP:
        command_success(work, project, root, row)
    return []


def judge_waiting(work: Work, project_id: int) -> None:
    """Judge the roots of a project that waited while it was not active.

    A verdict that stops the project leaves the rest waiting.
    Locks: expects the project's row locked; takes the roots in id order.
    """
    rows = Task.objects.filter(
        project=project_id, awaits_verdict=True, status=TaskStatus.REVIEW.value
    )
    for root in locked(rows).order_by("pk"):
        root.project = lock_project(project_id)
        if root.project.status not in RUNNING:
            return
        settle_root(work, root)
        work.flush()


def _live_validators() -> QuerySet[Assignment]:
    return Assignment.objects.filter(
        seat=Seat.VALIDATOR.value, status__in=[state.value for state in ASSIGNMENT_LIVE]
    )


def unjudged_roots() -> Sequence[int]:
    """List roots of active projects that wait for a verdict which nobody was asked for."""
    rows = Task.objects.filter(
        ~Exists(_live_validators().filter(task=OuterRef("pk"))),
        ~Exists(unfinished_locked().filter(task__root=OuterRef("pk"))),
        awaits_verdict=True,
        status=TaskStatus.REVIEW.value,
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    )
    return list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])


@retry_on_deadlock
def judge_again(task_id: int) -> bool:
    """Judge one root that `unjudged_roots` found, or ask its judge again, if it still waits.

    Say whether it was judged or asked about.
    """
    with unit_of_work(SYSTEM) as work:
        root = lock_task(task_id)
        if not root.awaits_verdict or root.status != TaskStatus.REVIEW:
            return False
        settle_root(work, root)
        work.flush()
        is_asked = _live_validators().filter(task=root).exists()
    return is_asked or not root.awaits_verdict
