"""Reads for Sir's inbox: what is open and in which order, what was decided, who has seen what.

Order: groups by priority; inside, what blocks most work first, then age.
Source: DESIGN section 9, UI.md section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from orchestration.access import Viewer, visible_decisions
from orchestration.errors import NotFound
from orchestration.models import Decision, DecisionView, Task
from orchestration.selectors.blocked import WaitingWork, load_waiting_work
from orchestration.selectors.master import UNREAD
from orchestration.states import DecisionKind, DecisionStatus, TaskStatus

STOPS = frozenset({DecisionKind.MAX_RETRIES.value, DecisionKind.SAFE_STOP.value})
OPEN = DecisionStatus.OPEN.value
HISTORY_PAGE = 50
ORDERING = (
    "project_id", "kind", "priority", "created_at", "task_id",
)  # fmt: skip
"""The columns that the order of the inbox and the count of what waits are made of."""
TOP = Coalesce("task__root", "task")
"""The root of a decision's task; a thousand tasks are not made for it."""
COUNTED_BY_CONTENT = frozenset(
    {DecisionKind.COMMAND_APPROVAL.value, DecisionKind.PLAN_REJECTED.value}
)
UNREAD_OF_TASKS = tuple(
    f"{path}__{name}"
    for path in ("task", "task__root", "task__parent", "task__parent__parent")
    for name in UNREAD
)
"""Of a row's tasks only keys and titles are shown; the rest is half of the page's time."""
UNREAD_OF_ROWS = (
    *UNREAD_OF_TASKS, "options", "evidence", "on_expiry", "project__policy_json",
    "project__description", "defect__description", "defect__evidence", "defect__proposed_fix",
    "defect__rounds", "defect__impact",
)  # fmt: skip
"""A row shows neither a policy nor a finding; a hundred of them are read and parsed in 10 ms."""
RELATED = ("project", "task__root", "task__parent__parent", "defect", "decided_by")


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """What the reader narrowed the list to; empty means everything."""

    kind: str = ""
    project: str = ""
    blocks_only: bool = False
    text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is narrowed."""
        return not (self.kind or self.project or self.blocks_only or self.text)


@dataclass(frozen=True, slots=True)
class InboxItem:
    """One open decision with what waits behind it and whether this reader has seen it."""

    decision: Decision
    blocks: int
    is_unseen: bool


def open_count() -> int:
    """How many decisions are open, over all projects."""
    return Decision.objects.filter(status=OPEN).count()


def list_open(*, user_id: int, wanted: InboxFilter | None = None) -> list[InboxItem]:
    """List the open decisions in the order of the inbox. Costs the same queries at any length.

    Shape: the decisions know what orders them; `with_cards` reads the rest of those that are shown.
    """
    found = _narrow(Decision.objects.filter(status=OPEN), wanted or InboxFilter())
    rows = list(found.annotate(top_id=TOP).only(*ORDERING).order_by("pk"))
    _add_contents(rows)
    blocks = count_blocked(rows)
    seen = _seen_ids(user_id)
    items = [InboxItem(row, blocks[row.pk], row.pk not in seen) for row in rows]
    if wanted is not None and wanted.blocks_only:
        items = [one for one in items if one.blocks]
    return sorted(
        items, key=lambda one: (one.decision.priority, -one.blocks, one.decision.created_at)
    )


def _add_contents(rows: Sequence[Decision]) -> None:
    """Read what few kinds are counted by in one statement, not row by row."""
    counted = [row.pk for row in rows if row.kind in COUNTED_BY_CONTENT]
    found = Decision.objects.filter(pk__in=counted).values_list("pk", "content") if counted else ()
    contents = dict(found)
    for row in rows:
        if row.pk in contents:
            row.content = contents[row.pk]


def with_cards(items: Sequence[InboxItem]) -> list[InboxItem]:
    """Read the whole decisions of some items, with what their rows show, in one statement.

    One that was closed meanwhile stays with what it was.
    """
    full = {row.pk: row for row in _with_relations().filter(pk__in=[i.decision.pk for i in items])}
    return [replace(one, decision=full[one.decision.pk]) for one in items]


def _with_relations() -> QuerySet[Decision]:
    return Decision.objects.select_related(*RELATED).defer(*UNREAD_OF_ROWS).order_by("pk")


def _narrow(rows: QuerySet[Decision], wanted: InboxFilter) -> QuerySet[Decision]:
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    if wanted.project:
        rows = rows.filter(project__slug=wanted.project)
    if wanted.text:
        rows = rows.filter(_says(wanted.text))
    return rows


def _says(text: str) -> Q:
    """Match a decision by title, reason, step, or the readable key of its task or root."""
    found = (
        Q(title__icontains=text)
        | Q(reason__icontains=text)
        | Q(question__icontains=text)
        | Q(task__step_key__iexact=text)
    )
    prefix, _, number = text.strip().rpartition("-")
    if number.isdigit() and len(number) < 10:
        key = Q(task__number=int(number)) | Q(task__root__number=int(number))
        found |= Q(project__key_prefix__iexact=prefix) & key
    return found


def _seen_ids(user_id: int) -> frozenset[int]:
    views = DecisionView.objects.filter(
        user_id=user_id, decision__status=OPEN, seen_at__isnull=False
    )
    return frozenset(views.values_list("decision_id", flat=True))


def waiting_behind(rows: Sequence[Decision]) -> WaitingWork:
    """Load the unfinished work that decisions may hold up."""
    projects = sorted({row.project_id for row in rows})
    roots = sorted({pk for row in rows if (pk := _top_of(row)) is not None})
    return load_waiting_work(roots, projects)


def _top_of(row: Decision) -> int | None:
    """The root of a decision's task, from the row where the statement brought it."""
    if "top_id" in row.__dict__:
        known: int | None = row.__dict__["top_id"]
        return known
    return row.task.lineage_root_id if row.task is not None else None


def count_blocked(
    rows: Sequence[Decision], waiting: WaitingWork | None = None
) -> Mapping[int, int]:
    """Count, for each decision, the tasks that wait behind it."""
    work = waiting if waiting is not None else waiting_behind(rows)
    stopped = _count_waiting([row.project_id for row in rows if row.kind in STOPS])
    return {row.pk: _blocked_by(row, work, stopped) for row in rows}


def _blocked_by(row: Decision, work: WaitingWork, stopped: Mapping[int, int]) -> int:
    if row.kind in STOPS:
        return stopped.get(row.project_id, 0)
    if row.task_id is None or row.kind == DecisionKind.HIGH_NOTICE:
        return 0
    behind = {one.id for one in work.behind(row.task_id)}
    if row.kind == DecisionKind.COMMAND_APPROVAL:
        for step in work.children_named(row.task_id, row.content.get("steps", ())):
            behind |= {step.id, *(one.id for one in work.behind(step.id))}
    planned = 0
    if row.kind == DecisionKind.PLAN_REJECTED:
        planned = len((row.content.get("plan") or {}).get("steps", ()))
    return len(behind) + planned


def _count_waiting(project_ids: Sequence[int]) -> Mapping[int, int]:
    """Count the tasks of stopped projects that could go on if the stop were lifted."""
    if not project_ids:
        return {}
    rows = Task.objects.filter(
        project__in=project_ids, status=TaskStatus.PENDING.value, is_superseded=False
    )
    return dict(rows.values_list("project").annotate(Count("pk")))


def read_decision(viewer: Viewer, decision_id: int) -> Decision:
    """Read one decision, open or closed, with what its card shows.

    Errors: NotFound.
    """
    found = (
        visible_decisions(viewer)
        .select_related(*RELATED, "plan", "task__assignee")
        .filter(pk=decision_id)
        .first()
    )
    if found is None:
        raise NotFound("There is no such decision.")
    if found.task is not None:
        found.task.project = found.project
    return found


def list_siblings(
    viewer: Viewer, decision: Decision, *, keys: Sequence[int] | None = None
) -> list[Decision]:
    """List the other items about a decision's task and the steps beside it.

    Those that are open, or those of `keys`, closed ones too; oldest first. A root's siblings are
    the other roots of its project.
    """
    task = decision.task
    if task is None:
        return []
    rows = visible_decisions(viewer).filter(
        project=decision.project_id, task__isnull=False, task__parent=task.parent_id
    )
    rows = rows.filter(status=OPEN) if keys is None else rows.filter(pk__in=keys)
    return list(rows.exclude(pk=decision.pk).select_related(*RELATED).order_by("pk"))


def read_view(decision_id: int, user_id: int) -> DecisionView | None:
    """What one reader has seen of a decision, with the text not yet sent."""
    return DecisionView.objects.filter(decision_id=decision_id, user_id=user_id).first()


def successor_of(decision: Decision) -> Decision | None:
    """The open item that took a withdrawn one's place, if there is one."""
    rows = Decision.objects.filter(status=OPEN, kind=decision.kind, pk__gt=decision.pk)
    if decision.defect_id is not None:
        return rows.filter(defect_id=decision.defect_id).last()
    return rows.filter(task_id=decision.task_id).last() if decision.task_id else None


# --- History --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """What the reader narrowed the history to."""

    verdict: str = ""
    kind: str = ""
    project: str = ""
    by: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One closed decision. Units: `took` from first sight to verdict, None when nobody looked."""

    decision: Decision
    took: timedelta | None


def list_history(
    wanted: HistoryFilter, *, before: int | None = None
) -> tuple[list[HistoryItem], int | None]:
    """List closed decisions, newest first, and the cursor of the next page, if there is one."""
    rows = _with_relations().exclude(status=OPEN).order_by("-decided_at", "-pk")
    rows = _narrow(rows, InboxFilter(kind=wanted.kind, project=wanted.project, text=wanted.text))
    if wanted.verdict:
        known = wanted.verdict in tuple(DecisionStatus)
        rows = rows.filter(status=wanted.verdict) if known else rows.filter(verdict=wanted.verdict)
    if wanted.by:
        rows = rows.filter(decided_by__username=wanted.by)
    last = Decision.objects.filter(pk=before, decided_at__isnull=False).first() if before else None
    if last is not None:
        same = Q(decided_at=last.decided_at, pk__lt=last.pk)
        rows = rows.filter(Q(decided_at__lt=last.decided_at) | same)
    found = list(rows[: HISTORY_PAGE + 1])
    shown = found[:HISTORY_PAGE]
    looked = _first_looks(shown)
    items = [HistoryItem(row, _took(row, looked)) for row in shown]
    return items, (shown[-1].pk if len(found) > HISTORY_PAGE else None)


def _first_looks(rows: Sequence[Decision]) -> Mapping[tuple[int, int], datetime]:
    views = DecisionView.objects.filter(
        decision__in=[row.pk for row in rows], seen_at__isnull=False
    ).values_list("decision_id", "user_id", "seen_at")
    return {(decision, user): at for decision, user, at in views if at is not None}


def _took(row: Decision, looked: Mapping[tuple[int, int], datetime]) -> timedelta | None:
    if row.decided_by_id is None or row.decided_at is None:
        return None
    at = looked.get((row.pk, row.decided_by_id))
    return max(row.decided_at - at, timedelta()) if at is not None else None


def list_deciders() -> list[str]:
    """Names of the people who have decided something."""
    rows = Decision.objects.filter(decided_by__isnull=False).order_by("decided_by__username")
    return list(rows.values_list("decided_by__username", flat=True).distinct())


@dataclass(frozen=True, slots=True)
class InboxDay:
    """What today was, for the empty inbox. Units: `median_took` from first sight to verdict."""

    clear_since: datetime | None
    decided_today: int
    median_took: timedelta | None


def read_day(user_id: int) -> InboxDay:
    """Count one person's verdicts of today and how long they took."""
    closed = Decision.objects.exclude(status=OPEN).order_by("-decided_at")
    since = closed.values_list("decided_at", flat=True).first()
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    today = list(closed.filter(decided_by=user_id, decided_at__gte=midnight))
    looked = _first_looks(today)
    took = [one.total_seconds() for row in today if (one := _took(row, looked)) is not None]
    return InboxDay(since, len(today), timedelta(seconds=median(took)) if took else None)


def has_decided(user_id: int) -> bool:
    """Whether a person ever gave a verdict."""
    return Decision.objects.filter(decided_by=user_id).exists()
