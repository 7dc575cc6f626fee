"""What an executor reports while it runs, and the upgrade that may follow from it.

Source: DESIGN section 6 ("Dynamic upgrade").
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.models import Agent, Task
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import held_lease, lock_with_parent, require_at_work
from orchestration.services.upgrade import upgrade_if_due
from orchestration.services.work import Actor, unit_of_work


@dataclass(frozen=True, slots=True)
class Progress:
    """What an executor reports about its run. Shape: as `POST …/progress`."""

    step: int | None = None
    new_domain: str = ""
    is_uncertain: bool = False
    note: str = ""


@retry_on_deadlock
def report_progress(
    *, task_id: int, progress: Progress, agent: Agent, actor: Actor, lease_token: str = ""
) -> tuple[Task, bool]:
    """Count a step, a new domain or doubt; return the task and whether it was upgraded.

    Errors: LeaseLost (code `upgraded` after an upgrade).
    """
    with unit_of_work(actor) as work:
        task = lock_with_parent(task_id)
        held = held_lease(task, agent, lease_token)
        require_at_work(task)
        held.has_progress = True
        work.touch(held, "has_progress")
        task.actual_steps = max(task.actual_steps + 1, progress.step or 0)
        task.is_uncertain = task.is_uncertain or progress.is_uncertain
        if progress.new_domain and progress.new_domain not in task.reported_domains:
            task.reported_domains = [*task.reported_domains, progress.new_domain]
        work.touch(task, "actual_steps", "is_uncertain", "reported_domains")
        work.record(
            "task.progress",
            subject=f"task:{task.pk}",
            project_id=task.project_id,
            task_id=task.pk,
            after={"actual_steps": task.actual_steps, "new_domain": progress.new_domain},
            why=progress.note,
        )
        upgraded = upgrade_if_due(work, task)
    return task, upgraded
