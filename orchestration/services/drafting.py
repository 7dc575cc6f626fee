"""Store a well-formed plan as a draft; what becomes of it is `services.planning`.

Source: DESIGN section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.contracts.plan import parse_plan
from orchestration.models import Plan, Task
from orchestration.models.rows import new_row
from orchestration.models.statements import count_of
from orchestration.rules.dag import canonical_digest
from orchestration.rules.plan import constraints_in, criteria_in, require_coverage
from orchestration.services.work import Work


def draft_plan(
    work: Work,
    task: Task,
    document: Mapping[str, Any],
    *,
    backend: str,
    agent_id: int | None = None,
    is_trusted: bool = False,
    strict: bool = False,
) -> Plan:
    """Store a well-formed plan as the next draft revision of a task.

    Errors: PlanInvalid listing every fault, every acceptance criterion of the task's specification
    that no check covers and every performance constraint without a metric among them.
    """
    parsed = parse_plan(document, strict=strict)
    if task.specification:
        require_coverage(
            parsed,
            criteria=criteria_in(task.specification),
            performance_constraints=constraints_in(task.specification),
        )
    body = parsed.to_document()
    plan = new_row(
        Plan,
        task=task,
        attempt=task.attempt,
        revision=next_revision(task),
        backend=backend,
        agent_id=agent_id,
        body=body,
        digest=canonical_digest(body),
        is_trusted=is_trusted,
        created_at=work.now,
    )
    work.insert([plan])
    work.record(
        "plan.drafted",
        subject=f"plan:{plan.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "revision": plan.revision,
            "digest": plan.digest,
            "backend": backend,
            "steps": len(parsed.steps),
        },
    )
    return plan


def next_revision(task: Task) -> int:
    """Number the next revision of this attempt."""
    return count_of(Plan, task.pk, attempt=task.attempt) + 1
