"""Reads for the master list: a project's roots in its order or sorted, narrowed, by pages of 100.

A page costs the same whether the list has ten rows or 100,000: the states are counted from an
index, and the ids of a page are taken from an index before the rows are read.
Source: UI.md section 5.4, DESIGN section 4 (master-list view).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, Count, IntegerField, Q, QuerySet, When
from django.db.models.functions import Coalesce

from orchestration.models import Project, Task
from orchestration.selectors.board import AT_WORK, waiting_decisions
from orchestration.selectors.trees import TreeFacts, read_trees
from orchestration.states import SKIPPED_REASON, TaskKind, TaskStatus

MASTER_PAGE = 100
T = TaskStatus
IN_PROGRESS = (T.CLAIMED, T.WORKING, T.REVIEW, T.BLOCKED, T.WAITING_HUMAN, T.FAILED, T.FATAL)
IS_FINISHED = Q(status=T.DONE.value) | Q(status=T.CANCELLED.value, cancel_reason=SKIPPED_REASON)
GROUPS: Sequence[tuple[Sequence[str], str]] = (
    ([one.value for one in IN_PROGRESS], "rank"),
    ([T.PENDING.value], "rank"),
    ([T.DONE.value], "-number"),
    ([T.CANCELLED.value], "-number"),
)
"""The order of the list: groups of states, and what orders each of them."""
SORTS: Mapping[str, Sequence[str]] = {
    "": (),
    "key": ("number",),
    "-key": ("-number",),
    "title": ("title", "number"),
    "-title": ("-title", "-number"),
    "changed": ("-updated_at", "-number"),
    "-changed": ("updated_at", "number"),
}
"""What a reader may sort by; empty is the list's own order."""
UNREAD = (
    "description", "specification", "scope", "facts", "constraints", "expected_artifacts",
    "verify", "run", "on_failure", "writes", "risks", "resources", "reported_domains",
    "approved_digests", "failure_context",
)  # fmt: skip
"""Columns that no row of the list shows."""


@dataclass(frozen=True, slots=True)
class MasterFilter:
    """What the reader narrowed and sorted the list by; empty means everything in its order."""

    status: str = ""
    text: str = ""
    sort: str = ""

    @property
    def is_narrowed(self) -> bool:
        """Whether some rows may be left out."""
        return bool(self.status or self.text)


@dataclass(slots=True)
class MasterTask:
    """One root with what its row shows. `stage` is S0, S1, S2 or S3."""

    task: Task
    steps_done: int = 0
    steps_total: int = 0
    waiting: int = 0
    needs_agent: bool = False

    @property
    def stage(self) -> str:
        """How far the method has come."""
        if not self.task.is_assessed:
            return "S0"
        if self.task.is_planned and not self.steps_total:
            return "S2"
        return "S3"


def roots_of(project: Project) -> QuerySet[Task]:
    """The tasks on a project's master list."""
    return Task.objects.filter(project=project, parent__isnull=True, kind=TaskKind.TASK.value)


def list_master(
    project: Project, wanted: MasterFilter | None = None, *, page: int = 1
) -> tuple[list[MasterTask], int]:
    """List one page of the master list as its rows, and the number of all tasks that match."""
    tasks, total = list_roots(project, wanted, page=page)
    return describe_roots(tasks), total


def list_roots(
    project: Project,
    wanted: MasterFilter | None = None,
    *,
    page: int = 1,
    counts: Mapping[str, int] | None = None,
) -> tuple[list[Task], int]:
    """List one page of the master list and the number of all tasks that match.

    Order: in progress, pending, done, cancelled; the first two by rank, the others newest first.
    Shape: `counts` of the whole list, where the caller has them already.
    """
    wanted = wanted or MasterFilter()
    rows = roots_of(project)
    if wanted.status:
        rows = rows.filter(status=wanted.status)
    if wanted.text:
        rows = rows.filter(_names(project, wanted.text))
    if counts is None or wanted.is_narrowed:
        counts = _count_by_status(rows)
    start = (max(page, 1) - 1) * MASTER_PAGE
    if wanted.sort:
        order = SORTS[wanted.sort]
        ids = rows.order_by(*order).values("pk")[start : start + MASTER_PAGE]
        tasks = list(Task.objects.filter(pk__in=ids).defer(*UNREAD).order_by(*order))
    else:
        tasks = _in_list_order(rows, counts, start)
    return tasks, sum(counts.values())


def _names(project: Project, text: str) -> Q:
    found = Q(title__icontains=text) | Q(external_key__iexact=text)
    prefix, _, number = text.strip().rpartition("-")
    if number.isdigit() and len(number) < 10 and prefix.upper() in ("", project.key_prefix):
        found |= Q(number=int(number))
    return found


def _count_by_status(rows: QuerySet[Task]) -> Mapping[str, int]:
    return dict(rows.order_by().values_list("status").annotate(n=Count("*")))


def _in_list_order(rows: QuerySet[Task], counts: Mapping[str, int], start: int) -> list[Task]:
    """Take a page from the groups it touches, in one statement."""
    left, parts = MASTER_PAGE, []
    for statuses, order in GROUPS:
        size = sum(counts.get(status, 0) for status in statuses)
        taken = min(max(size - start, 0), left)
        if taken:
            parts.append(_part(rows.filter(status__in=statuses), order, start, start + taken))
        start, left = max(start - size, 0), left - taken
    if not parts:
        return []
    return sorted(parts[0].union(*parts[1:], all=True), key=_place)


def _part(members: QuerySet[Task], order: str, start: int, end: int) -> QuerySet[Task]:
    """Take some members of a group. Those by number are passed over in the index alone."""
    if order.lstrip("-") == "number":
        numbers = members.order_by(order).values("number")[start:end]
        found = members.filter(number__in=numbers)
    else:
        ids = members.order_by(order, "pk").values("pk")[start:end]
        found = Task.objects.filter(pk__in=ids)
    return found.defer(*UNREAD).order_by()


def _place(task: Task) -> tuple[int, int, int]:
    group = next(at for at, (statuses, _order) in enumerate(GROUPS) if task.status in statuses)
    return group, task.rank if group < 2 else -task.number, task.pk


def describe_roots(
    tasks: Sequence[Task], trees: Mapping[int, TreeFacts] | None = None
) -> list[MasterTask]:
    """Add steps, what waits for Sir in the whole subtree, and who has to come, to some roots.

    Shape: `trees` of these roots at least, where the caller has read them already.
    """
    found = {task.pk: MasterTask(task) for task in tasks}
    steps = (
        Task.objects.filter(parent__in=found, is_superseded=False)
        .values("parent")
        .annotate(total=Count("pk"), done=Count("pk", filter=IS_FINISHED))
    )
    for parent, total, finished in steps.values_list("parent", "total", "done"):
        if parent is not None:
            found[parent].steps_total, found[parent].steps_done = total, finished
    known = read_trees(found) if trees is None else trees
    for pk, row in found.items():
        row.waiting, row.needs_agent = known[pk].asked, known[pk].needs_agent
    return list(found.values())


def count_by_status(project: Project) -> Mapping[str, int]:
    """Count the roots of a project by their state."""
    return _count_by_status(roots_of(project))


def done_of(counts: Mapping[str, int]) -> tuple[int, int]:
    """The number of done roots, and of all that are not cancelled."""
    total = sum(n for status, n in counts.items() if status != T.CANCELLED)
    return counts.get(T.DONE.value, 0), total


def pick_root(project: Project, wanted: str) -> Task | None:
    """The root that the board shows: the wanted one, else one that waits for Sir, one at work, one
    that is not finished, or the newest; of two alike the planned one.
    """
    rows = roots_of(project)
    if wanted.isdigit() and len(wanted) < 19:
        found = rows.filter(pk=int(wanted)).first()
        if found is not None:
            return found
    top = Coalesce("task__root", "task")
    asked = waiting_decisions().filter(project=project, task__isnull=False)
    choices = (
        rows.filter(pk__in=asked.order_by().annotate(top=top).values("top")),
        rows.filter(status__in=AT_WORK),
        rows.filter(status__in=[one.value for one in (*IN_PROGRESS, T.PENDING)]),
    )
    group = Case(When(status=T.PENDING.value, then=1), default=0, output_field=IntegerField())
    for some in choices:
        found = some.order_by("-is_planned", group, "rank", "pk").first()
        if found is not None:
            return found
    for status in (T.DONE.value, T.CANCELLED.value):
        closed = rows.filter(status=status).order_by("-number")
        found = closed.filter(is_planned=True).first() or closed.first()
        if found is not None:
            return found
    return None
