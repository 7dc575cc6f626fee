"""What must hold at the end of any run, whatever went wrong on the way.

Source: DESIGN sections 3, 4 and 13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from django.db.models import Count, F, Q

from orchestration.models import (
    Artifact,
    Assignment,
    AuditEvent,
    ControlCommand,
    Decision,
    DeliveryArchive,
    Project,
    Task,
)
from orchestration.services.audit import seal_events, verify_chain
from orchestration.services.integrity_looks import find_faults
from orchestration.simulation.oracle import Oracle
from orchestration.simulation.script import ProjectScript, RootScript
from orchestration.states import (
    ASSIGNMENT_LIVE,
    TASK_TERMINAL,
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    TaskStatus,
)

SHOWN = 5
WAIVED = "waived: "
ENDED = [state.value for state in TASK_TERMINAL]
AT_WORK = frozenset({"working", "review", "waiting_human", "blocked"})


def broken_invariants(project: Project, script: ProjectScript, oracle: Oracle) -> list[str]:
    """Check everything; name what does not hold."""
    parts = (
        _unfinished(project),
        _not_as_scripted(project, script),
        _left_hanging(project),
        _locked_twice(project),
        _not_in_the_trail(project),
        _too_many_at_once(project),
        _chain(),
        _faults(project),
        _not_completed(project, oracle),
    )
    broken = [problem for part in parts for problem in part]
    if not oracle.is_over():
        broken.append("the oracle is not at the end: verdicts are missing")
    return broken


def _named(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        yield f"{title}: {', '.join(rows[:SHOWN])}{more}"


def _unfinished(project: Project) -> Iterator[str]:
    """Every task has ended, or waits for Sir with an item in his inbox."""
    asked = Decision.objects.filter(project=project, status=DecisionStatus.OPEN.value)
    rows = Task.objects.filter(project=project).exclude(status__in=ENDED)
    # What failed has ended too where a newer plan stands in its place, where its spawner was told,
    # and where Sir has waived its root.
    given_up = (
        Q(is_superseded=True) | Q(blueprint__isnull=True) | Q(root__last_outcome__startswith=WAIVED)
    )
    rows = rows.exclude(Q(status="failed") & Q(parent__isnull=False) & given_up)
    rows = rows.exclude(pk__in=asked.values("task_id"))
    yield from _named("neither ended nor waiting for Sir", [
        f"{one} {one.status}" for one in rows.select_related("project").order_by("pk")
    ])  # fmt: skip


def _not_as_scripted(project: Project, script: ProjectScript) -> Iterator[str]:
    """Each root ended as it was written, after as many attempts."""
    wrong = []
    rows = Task.objects.filter(project=project, parent__isnull=True)
    failed = dict(
        AuditEvent.objects.filter(project=project, kind="task.failed", task__parent__isnull=True)
        .order_by()
        .values_list("task_id")
        .annotate(Count("pk"))
    )
    behind = {
        one for root in script.roots.values() if root.ends == "cancelled"
        for one in script.behind(root.key)
    }  # fmt: skip
    for task in rows.order_by("pk"):
        root = script.roots[task.external_key]
        if root.key in behind and task.status == TaskStatus.CANCELLED:
            continue
        problem = _root_problem(root, task, failed.get(task.pk, 0))
        if problem:
            wrong.append(f"{root.key} {problem}")
    yield from _named("not as scripted", wrong)


def _root_problem(root: RootScript, task: Task, failed: int) -> str:
    wanted = "cancelled" if root.ends == "cancelled" else "done"
    if task.status != wanted:
        return f"is {task.status}, scripted {wanted}"
    if (root.ends == "waived") != task.last_outcome.startswith(WAIVED):
        return f"ended as {task.last_outcome!r}, scripted {root.ends}"
    if failed != len(root.failures):
        return f"failed {failed} times, scripted {len(root.failures)}"
    return ""


def _left_hanging(project: Project) -> Iterator[str]:
    """What has ended holds no lease and asks nothing."""
    live = [state.value for state in ASSIGNMENT_LIVE]
    rows = Assignment.objects.filter(project=project, status__in=live, task__status__in=ENDED)
    yield from _named("live work of ended tasks", [str(pk) for pk in _pks(rows)])
    asked = Decision.objects.filter(
        project=project, status=DecisionStatus.OPEN.value, task__status__in=ENDED
    ).exclude(kind="high_notice")
    yield from _named("open items of ended tasks", [str(pk) for pk in _pks(asked)])
    busy = Task.objects.filter(project=project, status__in=["claimed", "working"], is_planned=False)
    leased = Assignment.objects.filter(project=project, status=AssignmentStatus.LEASED.value)
    unheld = busy.exclude(pk__in=leased.values("task_id"))
    yield from _named("at work, and nobody holds it", [str(pk) for pk in _pks(unheld)])


def _pks(rows: object) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))  # type: ignore[attr-defined]


def _locked_twice(project: Project) -> Iterator[str]:
    """No step is done twice, none locks twice, and no key of a plan is done in two rows."""
    done = AuditEvent.objects.filter(project=project, kind="task.done").order_by()
    twice = done.values("task_id").annotate(times=Count("pk")).filter(times__gt=1)
    yield from _named("done twice", [str(row["task_id"]) for row in twice])
    steps = Task.objects.filter(
        project=project, is_superseded=False, blueprint__isnull=False, status="done"
    ).order_by()
    keys = steps.values("parent_id", "step_key").annotate(rows=Count("pk")).filter(rows__gt=1)
    yield from _named("two rows of one step", [f"{r['parent_id']}/{r['step_key']}" for r in keys])
    locked = AuditEvent.objects.filter(project=project, kind="artifact.locked").order_by()
    again = (
        locked.values("task_id", "after__name", "after__version")
        .annotate(times=Count("pk"))
        .filter(times__gt=1)
    )
    yield from _named("locked twice", [f"{r['task_id']} {r['after__name']}" for r in again])
    if locked.count() != Artifact.objects.filter(project=project).count():
        yield "the trail locks another number of artifacts than there are"
    # A task of a plan has one version of each of its outputs, but for fixes.
    versions = Artifact.objects.filter(project=project, version__gt=1, task__parent__isnull=False)
    unfixed = versions.filter(task__defects__isnull=True)
    yield from _named("a second version without a fix", [str(pk) for pk in _pks(unfixed)])
    unlocked = steps.filter(is_planned=False, artifacts__isnull=True)
    yield from _named("done without a locked artifact", [str(pk) for pk in _pks(unlocked)])


def _not_in_the_trail(project: Project) -> Iterator[str]:
    """Every state is the last one that the trail tells, and the counts are the trail's."""
    for model, noun in ((Task, "task"), (Assignment, "assignment")):
        told: dict[str, str] = {}
        events = AuditEvent.objects.filter(
            project=project, subject__startswith=f"{noun}:", after__has_key="status"
        )
        for subject, kind, status in events.order_by("pk").values_list(
            "subject", "kind", "after__status"
        ):
            if kind == f"{noun}.{status}":
                told[subject] = status
        rows = model.objects.filter(project=project).order_by("pk").values_list("pk", "status")
        stored = {f"{noun}:{pk}": status for pk, status in rows}
        wrong = [name for name in stored if told.get(name) != stored[name]]
        yield from _named(f"{noun}s whose state the trail does not tell", wrong)
        if Counter(told.values()) != Counter(stored.values()):
            yield f"the trail counts other {noun}s than there are"
    events = AuditEvent.objects.filter(project=project)
    commands = ControlCommand.objects.filter(project=project).count()
    if events.filter(kind="loop.commanded").count() != commands:
        yield "the trail counts other control commands than there are"
    archives = DeliveryArchive.objects.filter(project=project).count()
    if events.filter(kind="archive.written").count() != archives:
        yield "the trail counts other archives than there are"


def _too_many_at_once(project: Project) -> Iterator[str]:
    """Planned roots ran one at a time, and no plan had more steps at work than it may."""
    limits = project.policy.limits
    events = (
        AuditEvent.objects.filter(
            project=project, kind__startswith="task.", after__has_key="status"
        )
        .order_by("pk")
        .annotate(parent_id=F("task__parent_id"), is_planned=F("task__is_planned"))
    )
    roots: set[int] = set()
    steps: dict[int, set[int]] = {}
    most_roots = most_steps = 0
    for pk, parent_id, is_planned, status in events.values_list(
        "task_id", "parent_id", "is_planned", "after__status"
    ):
        if parent_id is None and is_planned:
            (roots.add if status in AT_WORK else roots.discard)(pk)
            most_roots = max(most_roots, len(roots))
        elif parent_id is not None and not is_planned:
            held = steps.setdefault(parent_id, set())
            (held.add if status in ("claimed", "working") else held.discard)(pk)
            most_steps = max(most_steps, len(held))
    if most_roots > limits.concurrent_roots:
        yield f"{most_roots} planned roots ran at once"
    if most_steps > limits.parallel_children:
        yield f"{most_steps} children of one task ran at once"


def _chain() -> Iterator[str]:
    while seal_events():
        pass
    _, fault = verify_chain()
    if fault is not None:
        yield f"the audit chain is broken at {fault.position}: {fault.problem}"


def _not_completed(project: Project, oracle: Oracle) -> Iterator[str]:
    """The project says that it is completed when the oracle is at the end."""
    status = Project.objects.values_list("status", flat=True).get(pk=project.pk)
    if oracle.is_over() and status != ProjectStatus.COMPLETED:
        yield f"every root has ended, and the project is {status}"


def _faults(project: Project) -> Iterator[str]:
    """The look of safe stop finds nothing: what the engine wrote itself is never a fault."""
    yield from _named("faults", [one.detail for one in find_faults(project.pk)])
