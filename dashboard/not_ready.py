"""Why a pending task does not start, with what it waits for by name.

Source: UI.md section 2 ("Pending, why"), DESIGN section 4 (`ready`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.presenters import not_ready_words
from orchestration.models import Task, TaskDependency
from orchestration.selectors.root_queue import MAX_PLACES, RootQueue, read_root_queue
from orchestration.selectors.tasks import not_ready_reason
from orchestration.states import NotReadyReason, TaskStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SHOWN_NEEDS = 3
BEHIND: dict[str, str | StrPromise] = {
    "sir": _("queued, place %(place)s, behind %(key)s, which waits for you"),
    "agent": _("queued, place %(place)s, behind %(key)s, which waits for an agent"),
    "": _("queued, place %(place)s, behind %(key)s"),
}


def root_reason_words(task: Task, queue: RootQueue | None) -> str:
    """Why a root on the list does not start; without names where that would cost a query a row."""
    reason = not_ready_reason(task)
    if reason is None:
        return ""
    if reason == NotReadyReason.QUEUED_ROOT:
        return _queue_words(task, queue or RootQueue())
    if reason == NotReadyReason.DEPENDENCIES:
        return gettext("needs earlier tasks")
    return not_ready_words(reason)


def reason_words(task: Task) -> str:
    """Why one task does not start, with the names of what it needs. Costs a few queries."""
    reason = not_ready_reason(task)
    if reason == NotReadyReason.DEPENDENCIES:
        return not_ready_words(reason, {"keys": _needs(task)})
    if reason == NotReadyReason.PHASE and task.parent is not None:
        is_earlier = task.phase > task.parent.open_phase
        return not_ready_words(reason, {"phase": task.parent.open_phase} if is_earlier else None)
    if reason is None or task.parent is not None:
        return "" if reason is None else not_ready_words(reason)
    return root_reason_words(task, read_root_queue(task.project))


def _needs(task: Task) -> str:
    """Name the first of what a task still needs: steps by key, roots by their readable key."""
    rows = TaskDependency.objects.filter(task=task).exclude(requires__status=TaskStatus.DONE.value)
    found = [row.requires for row in rows.select_related("requires").order_by("pk")[:SHOWN_NEEDS]]
    for one in found:
        one.project = task.project
    return ", ".join(one.step_key or str(one) for one in found)


def _queue_words(task: Task, queue: RootQueue) -> str:
    """The place in the queue, and behind whom: one that waits for somebody before any other."""
    place = queue.places.get(task.pk)
    if place is None:
        is_far = len(queue.places) >= MAX_PLACES
        far = gettext("queued, more than %(n)s before it") % {"n": MAX_PLACES}
        return far if is_far else not_ready_words(NotReadyReason.QUEUED_ROOT)
    held = queue.holders
    chosen = next((one for one in held if one.waits_for), held[0] if held else None)
    if chosen is None:
        return not_ready_words(NotReadyReason.QUEUED_ROOT, {"place": place})
    return str(BEHIND[chosen.waits_for]) % {"place": place, "key": str(chosen.task)}
