"""The outer layers: L4, an independent agent's cross-check, and L5, Sir's final review.

L4 without an agent who may and can do it becomes L5; so does any layer of high complexity that
could not run. Critical risk always goes to Sir.
Source: DESIGN section 8 ("Layers"), section 9 (`final_review`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.models import Decision, Output, Task, Verification
from orchestration.rules.dag import canonical_digest
from orchestration.rules.flow_stages import is_confirmed_by_sir, is_run_by_us
from orchestration.rules.tool_record import BY, NONE, SELF_REPORTED
from orchestration.rules.trust import declared_trust, proven_trust, unvalidated
from orchestration.seats.registry import EXTERNAL
from orchestration.services.agent_claims import eligible_agents
from orchestration.services.assignments import queue_assignment
from orchestration.services.inbox import open_decision
from orchestration.services.moves import move_task
from orchestration.services.verification import Layer, record_layers
from orchestration.services.work import Work
from orchestration.states import (
    ASSIGNMENT_LIVE,
    Complexity,
    DecisionKind,
    DecisionStatus,
    LayerOutcome,
    RiskLevel,
    Seat,
    TaskStatus,
)

CROSS_CHECK = "cross_check"
NO_CROSS_VERIFIER = "not possible: no independent agent is connected for a cross-check"
SHOWN_CONTENT = 20_000
"""Characters of an output's content that a final review shows and signs; the digest covers all."""


def needs_outer(task: Task) -> bool:
    """Whether a task's work goes beyond L3 at all."""
    return is_deep(task) or is_confirmed_by_sir(task.role) or _is_run_by_us(task)


def _is_run_by_us(task: Task) -> bool:
    return is_run_by_us(task.role, task.step_key)


def is_deep(task: Task) -> bool:
    """Whether complexity or risk ask for the outer layers."""
    return task.complexity == Complexity.HIGH or task.risk_level == RiskLevel.CRITICAL


def ask_outer_layers(
    work: Work, task: Task, outputs: Sequence[Output], *, refusal: str = ""
) -> bool:
    """Ask for the next outer layer that is due. Return whether the task waits for it.

    Locks: expects the task locked.
    """
    if not needs_outer(task):
        return False
    done = layer_outcomes(task)
    if "L4" not in done and not task.is_planned and is_deep(task):
        live = task.assignments.filter(
            seat=Seat.CROSS_VERIFIER.value, status__in=[state.value for state in ASSIGNMENT_LIVE]
        )
        if live.exists():
            return True
        if eligible_agents(task, Seat.CROSS_VERIFIER, work.now):
            _ask_agent(work, task, outputs, refusal)
            return True
        done["L4"] = LayerOutcome.NOT_POSSIBLE
        missing = Layer("L4", LayerOutcome.NOT_POSSIBLE, findings=(NO_CROSS_VERIFIER,))
        record_layers(work, task, [missing], outputs[-1] if outputs else None)
    if "L5" in done or not _needs_sir(task, done):
        return False
    open_final_review(work, task, outputs)
    return True


def layer_outcomes(task: Task) -> dict[str, LayerOutcome]:
    """Say how each layer ended on the work as it is now; the worst outcome of a layer counts."""
    rows = Verification.objects.filter(
        task=task, attempt=task.attempt, fix_round__gte=last_change(task)
    )
    found: dict[str, LayerOutcome] = {}
    for layer, outcome in rows.order_by("pk").values_list("layer", "outcome"):
        known = found.get(layer)
        if known in (None, LayerOutcome.PASSED) or outcome == LayerOutcome.FAILED:
            found[layer] = LayerOutcome(outcome)
    return found


def last_change(task: Task) -> int:
    """The fix round in which the work changed last; 0 as handed in."""
    if not task.fix_round:
        return 0
    last = task.assignments.filter(
        attempt=task.attempt, seat=Seat.FIXER.value, input__mode="fix"
    ).last()
    return int(last.input["fix_round"]) if last is not None else 0


def _needs_sir(task: Task, done: Mapping[str, LayerOutcome]) -> bool:
    if task.risk_level == RiskLevel.CRITICAL or is_confirmed_by_sir(task.role):
        return True
    # Tests that we could not run are nobody's word but the agent's own.
    must_run = task.complexity == Complexity.HIGH or _is_run_by_us(task)
    return LayerOutcome.NOT_POSSIBLE in done.values() and must_run


def _ask_agent(work: Work, task: Task, outputs: Sequence[Output], refusal: str) -> None:
    queue_assignment(
        work, task, Seat.CROSS_VERIFIER, task.project.policy,
        input={
            "stage": CROSS_CHECK,
            "fix_round": task.fix_round,
            "title": task.title,
            "description": task.description,
            "outputs": [_told(one) for one in outputs],
            "claims": _claims(outputs),
            "to_validate": _open_claims(task, outputs),
            "refusal": refusal,
        },
        backend=EXTERNAL,
    )  # fmt: skip


def _told(output: Output) -> dict[str, Any]:
    return {
        "id": str(output.pk),
        "title": output.title,
        "type": output.type,
        "version": output.version,
        "path": output.path,
        "sha256": output.sha256,
        "summary": output.summary,
    }


def _claims(outputs: Sequence[Output]) -> list[dict[str, Any]]:
    return [dict(claim) for one in outputs for claim in one.assertions]


def _open_claims(task: Task, outputs: Sequence[Output]) -> list[str]:
    return unvalidated(_claims(outputs), RiskLevel(task.risk_level or RiskLevel.LOW))


def cross_check_layer(*, agrees: bool, findings: Sequence[str], by: str) -> Layer:
    """Shape what a cross-verifier said as layer L4."""
    outcome = LayerOutcome.PASSED if agrees else LayerOutcome.FAILED
    return Layer("L4", outcome, name=by, findings=tuple(findings), grade=SELF_REPORTED)


def final_review_layer(by: str) -> Layer:
    """Shape Sir's approval as layer L5."""
    return Layer("L5", LayerOutcome.PASSED, name=by, grade=NONE)


def open_final_review(work: Work, task: Task, outputs: Sequence[Output]) -> None:
    """Send work to Sir for his last look (L5), with its claims, checks and content.

    Locks: expects the task locked, in review.
    """
    standing = Decision.objects.filter(
        task=task, kind=DecisionKind.FINAL_REVIEW.value, status=DecisionStatus.OPEN.value
    )
    if standing.exists():
        return
    task.asked_from = TaskStatus.REVIEW.value
    work.touch(task, "asked_from")
    work.flush()
    claims = _claims(outputs)
    with work.as_system():
        move_task(work, task, TaskStatus.WAITING_HUMAN, detail="final review by Sir")
        open_decision(
            work,
            kind=DecisionKind.FINAL_REVIEW,
            project=task.project,
            task=task,
            title=task.title,
            question="Is the result what you wanted?",
            content={
                "reason": "final_review",
                "description": task.description,
                "risk_level": task.risk_level,
                "outputs": [_shown(one) for one in outputs],
                "claims": [{name: one.get(name) for name in ("claim", "confidence", "proof")}
                           for one in claims],
                "declared_trust": round(declared_trust(claims), 4),
                "proven_trust": round(proven_trust(claims), 4),
                "unvalidated": _open_claims(task, outputs),
                "findings": _findings(task),
            },
            params={"step": task.step_key or str(task)},
        )  # fmt: skip


def _shown(output: Output) -> dict[str, Any]:
    marks = [{name: one.get(name) for name in ("kind", "code", "params", "text", "grade", BY)
              if name in one}
             for one in output.marks]  # fmt: skip
    return _told(output) | {
        "content": output.content[:SHOWN_CONTENT],
        "is_cut": len(output.content) > SHOWN_CONTENT,
        "content_digest": canonical_digest({"content": output.content}),
        "marks": marks,
    }


def _findings(task: Task) -> list[str]:
    """Say which layers could not run, and why: it is what brings the work here."""
    rows = Verification.objects.filter(
        task=task, attempt=task.attempt, fix_round__gte=last_change(task)
    ).order_by("pk")
    return [
        f"{row.layer}: {finding}"
        for row in rows
        if row.outcome == LayerOutcome.NOT_POSSIBLE
        for finding in row.findings
    ]
