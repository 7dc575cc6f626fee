"""The end of a fix of a locked artifact: give it up, and judge the root that waited for it.

Source: DESIGN section 8 ("Locked artifacts"), section 10.
"""

from __future__ import annotations

from orchestration.models import Defect, Task
from orchestration.services.judging import settle_root
from orchestration.services.lookups import lock_task
from orchestration.services.moves import move_defect
from orchestration.services.work import Work, locked
from orchestration.states import DefectStatus, TaskStatus


def give_up_fix(work: Work, defect_id: int, *, why: str) -> None:
    """Void a defect of a locked artifact whose fix ended without one: the version stays as it is.

    Locks: the defect, after its fix task.
    """
    rows = Defect.objects.select_related("task").filter(
        pk=defect_id, status=DefectStatus.FIXING.value
    )
    for defect in locked(rows):
        move_defect(work, defect, DefectStatus.VOID, why=why or "its fix was cancelled")


def judge_behind(work: Work, defect_id: int | None) -> None:
    """Judge the root whose locked artifact a defect was about, if it waited for the defect's end.

    Locks: takes that root last; the caller retries on deadlock.
    """
    if defect_id is None:
        return
    work.flush()
    origin = Task.objects.filter(defects=defect_id).select_related("root").first()
    if origin is None:
        return
    seen = origin.root or origin
    if not seen.awaits_verdict or seen.status != TaskStatus.REVIEW:
        return
    root = lock_task(seen.pk)
    if root.awaits_verdict and root.status == TaskStatus.REVIEW:
        settle_root(work, root)
