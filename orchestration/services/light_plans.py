"""Light plans: the short list that an executor sends when it starts a medium task.

Source: DESIGN section 6 ("Light plan"), section 8 ("Red lines").
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.models import Assignment, Plan, Task
from orchestration.services.loop import fail_leaf, settle_ending
from orchestration.services.moves import move_assignment
from orchestration.services.red_line_refusals import refusal_of_texts
from orchestration.services.red_lines import plan_meets_red_line
from orchestration.services.work import Work
from orchestration.states import AssignmentStatus, PlanStatus


def store_light_plan(work: Work, task: Task, held: Assignment, steps: Sequence[str]) -> None:
    """Keep an executor's light plan as an unaudited plan; its length is the estimate.

    A plan that crosses a red line goes to Sir before the work goes on. One that asks again for what
    he refused does not: it fails as one try.
    """
    plan = Plan.objects.create(
        task=task,
        attempt=task.attempt,
        revision=task.plans.filter(attempt=task.attempt).count() + 1,
        status=PlanStatus.DRAFT.value,
        is_light=True,
        backend="external",
        agent_id=held.agent_id,
        body={"steps": [{"id": str(n), "action": text} for n, text in enumerate(steps, 1)]},
    )
    work.record(
        "plan.drafted",
        subject=f"plan:{plan.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"revision": plan.revision, "is_light": True, "steps": len(steps)},
    )
    task.estimated_steps = len(steps)
    work.touch(task, "estimated_steps")
    refusal = refusal_of_texts(task, steps)
    if refusal is None:
        plan_meets_red_line(work, task, held, steps)
        return
    why = f"this plan crosses a red line that Sir refused: {refusal}"
    move_assignment(work, held, AssignmentStatus.FAILED, why=why)
    fail_leaf(work, task, why=why, failure_class="rejected_by_sir")
    settle_ending(work, task)
