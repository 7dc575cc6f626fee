"""Rows of Sir's inbox: open them with a digest of what is shown, withdraw them with their tree.

Deciding is `services.decisions`. What each kind offers is `services.options`.
Source: DESIGN section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from orchestration.contracts.options import QUESTION, Option, options_for
from orchestration.models import Decision, Defect, Plan, Project, Task
from orchestration.models.statements import open_decisions_of
from orchestration.rules.dag import canonical_digest
from orchestration.services.clocks import RUNNING, stop_deadline
from orchestration.services.moves import move_decision
from orchestration.services.notices import note_opened
from orchestration.services.work import Work, locked
from orchestration.states import DecisionKind, DecisionStatus

PRIORITY: Mapping[DecisionKind, int] = {
    DecisionKind.MAX_RETRIES: 1,
    DecisionKind.SAFE_STOP: 1,
    DecisionKind.MEDIUM_DEFECT: 2,
    DecisionKind.FINAL_REVIEW: 2,
    DecisionKind.PLAN_REJECTED: 3,
    DecisionKind.COMMAND_APPROVAL: 3,
    DecisionKind.WAITING_HUMAN: 4,
    DecisionKind.CLARIFICATION: 4,
    DecisionKind.BUDGET_EXCEEDED: 4,
    DecisionKind.HIGH_NOTICE: 5,
}
"""The inbox's groups, 1 first. A P0 `waiting_human` stands in group 1 too."""


def decision_digest(question: str, content: Mapping[str, Any], options: Sequence[Option]) -> str:
    """Digest what is signed: question, content and verdict codes; not age, counts or language."""
    verdicts = [option["verdict"] for option in options]
    return canonical_digest({"question": question, "content": content, "verdicts": verdicts})


def open_decision(
    work: Work,
    *,
    kind: DecisionKind,
    project: Project,
    task: Task | None,
    title: str,
    question: str,
    content: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    evidence: Sequence[Mapping[str, Any]] = (),
    defect: Defect | None = None,
    plan: Plan | None = None,
    is_p0: bool = False,
) -> Decision:
    """Open one row of the inbox; an open one of the same kind on the same thing is withdrawn first.

    Deadline and outcome come from today's policy: a re-asked question never keeps an old default.
    """
    standing = open_decisions(task=task, defect=defect, kind=kind, project=project)
    for row in standing:
        withdraw_decision(work, row, why="replaced")
    options = options_for(
        kind,
        dict(params or {}, has_fix=bool(content.get("fix"))),
        is_question=content.get("reason") == QUESTION,
    )
    rule = project.policy.expiry_rule(kind)
    work.flush()
    decision = Decision.objects.create(
        project=project,
        task=task,
        defect=defect,
        plan=plan,
        kind=kind.value,
        priority=1 if is_p0 else PRIORITY[kind],
        is_p0=is_p0 or PRIORITY[kind] == 1,
        digest=decision_digest(question, content, options),
        title=title[:300],
        question=question,
        content=dict(content),
        options=list(options),
        evidence=list(evidence),
        deadline=work.now + timedelta(seconds=rule.after_seconds) if rule else None,
        on_expiry=rule.model_dump(mode="json") if rule else None,
        version=len(standing) + 1,
        created_at=work.now,
    )
    if project.status not in RUNNING:
        stop_deadline(work, decision)
    note_opened(work, decision, project)
    _announce_opened(work, decision)
    return decision


def _announce_opened(work: Work, decision: Decision) -> None:
    """Record and announce a new item. Only an agent's question is asked by somebody."""
    with nullcontext() if work.actor.is_agent else work.as_system():
        work.record(
            "decision.opened",
            subject=f"decision:{decision.pk}",
            project_id=decision.project_id,
            task_id=decision.task_id,
            after={
                "kind": decision.kind,
                "digest": decision.digest,
                "question": decision.question,
            },
        )
    work.hint("inbox", None)
    work.hint(f"project:{decision.project_id}", decision.project_id)
    if decision.task_id is not None:
        work.hint(f"task:{decision.task_id}", decision.project_id)


def open_decisions(
    *,
    task: Task | None,
    defect: Defect | None = None,
    kind: DecisionKind | None = None,
    project: Project | None = None,
) -> list[Decision]:
    """Lock and list the open decisions of a defect, or of a task that are about no defect.

    Without a task, those that are about the whole project.
    """
    rows = Decision.objects.filter(status=DecisionStatus.OPEN.value, task=task, defect=defect)
    if task is None:
        rows = rows.filter(project=project)
    if kind is not None:
        rows = rows.filter(kind=kind.value)
    return list(locked(rows).order_by("pk"))


def withdraw_decision(work: Work, decision: Decision, *, why: str) -> None:
    """Take an open decision back; it stays readable."""
    decision.closed_reason = why[:80]
    work.touch(decision, "closed_reason")
    move_decision(work, decision, DecisionStatus.WITHDRAWN, why=why)


def withdraw_open(
    work: Work, task_ids: Iterable[int], *, why: str, with_locked: bool = False
) -> int:
    """Withdraw every open decision of some tasks, in the same transaction (rule 5).

    A notice that a High defect was fixed blocks nothing and stays; so does what is asked about a
    locked artifact, unless it goes `with_locked`.
    """
    but = DecisionKind.HIGH_NOTICE.value
    rows = open_decisions_of(list(task_ids), but=but, with_locked=with_locked)
    for row in rows:
        withdraw_decision(work, row, why=why)
    if rows:
        # Ending what is leased withdraws questions as well, and reads which are open.
        work.flush()
    return len(rows)
