"""One door for every verdict: UI, API, bulk and expiry all call `decide_decision`.

A conditional move on open + version + digest + not expired; one row a decision; the resumed work is
written in the same transaction.
Source: DESIGN section 9.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from orchestration.contracts.options import NO_REASON
from orchestration.errors import (
    AlreadyDecided,
    Conflict,
    CountersignError,
    DecisionClosed,
    Forbidden,
    Invalid,
    NotFound,
    Stale,
)
from orchestration.models import Decision, DecisionView, Project
from orchestration.models.rows import fetch_rows
from orchestration.models.statements import place_of_decision
from orchestration.rules.diffs import parse_diff
from orchestration.services.clocks import RUNNING
from orchestration.services.inbox import decision_digest
from orchestration.services.integrity import TreeBroken, stop_over
from orchestration.services.lookups import lock_project, lock_task
from orchestration.services.moves import move_decision
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.verdicts import apply_verdict
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import DecisionKind, DecisionStatus, ProjectStatus

logger = logging.getLogger(__name__)
MAX_REASON_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict as it is sent: what was decided, and what exactly was seen."""

    verdict: str
    seen_version: int
    seen_digest: str
    reason: str = ""
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a verdict. `is_repeat` marks the identical repeat of the standing one."""

    decision: Decision
    is_repeat: bool


def decide_decision(
    *, decision_id: int, verdict: Verdict, actor: Actor, user_id: int | None, policy_id: str = ""
) -> Outcome:
    """Record one verdict and resume the work behind it, in one transaction.

    Where something is wrong with what it would move, the item stays open and the project stops.

    Errors, in this order: NotFound; AlreadyDecided with the standing verdict; DecisionClosed when
    expired or withdrawn; Stale for an old version or digest; Invalid for a verdict this kind does
    not offer or a missing reason; TreeBroken; Forbidden for an agent.
    Locks: project, task's parent, task, decision.
    """
    if user_id is None and not policy_id:
        raise Forbidden("only a person decides", code="humans_only")
    try:
        return _decide(decision_id, verdict, actor, user_id, policy_id)
    except DecisionClosed:
        if policy_id or not settle_overdue(decision_id):
            raise
        # The policy has decided meanwhile: the answer names it.
        return _decide(decision_id, verdict, actor, user_id, policy_id)
    except TreeBroken as broken:
        stop_over(broken, source="decision")
        raise


def is_overdue(decision: Decision) -> bool:
    """Whether an open item's deadline has passed while its project's clocks ran."""
    is_open = decision.status == DecisionStatus.OPEN and decision.project.status in RUNNING
    return is_open and decision.deadline is not None and decision.deadline <= timezone.now()


def settle_overdue(decision_id: int) -> bool:
    """Carry out the named policy of an overdue item; the sweep and whoever looks at it do so.

    Shape: whether a verdict or another end stands now. A policy that cannot be carried out is
    logged, and the item stays as it is.
    """
    decision = Decision.objects.select_related("project").filter(pk=decision_id).first()
    if decision is None or not is_overdue(decision):
        return decision is not None and decision.status == DecisionStatus.DECIDED
    rule = decision.on_expiry or {}
    policy_id = str(rule.get("policy_id", ""))
    verdict = Verdict(
        verdict=str(rule.get("outcome", "")),
        seen_version=decision.version,
        seen_digest=decision.digest,
        reason=f"expired under policy {policy_id}",
    )
    try:
        decide_decision(
            decision_id=decision_id, verdict=verdict, actor=Actor(f"policy:{policy_id}"),
            user_id=None, policy_id=policy_id,
        )  # fmt: skip
    except CountersignError as error:
        logger.info("decision %s did not expire: %s", decision_id, error.detail)
        return False
    return True


@retry_on_deadlock
def _decide(
    decision_id: int, verdict: Verdict, actor: Actor, user_id: int | None, policy_id: str
) -> Outcome:
    with unit_of_work(actor) as work:
        decision = _lock_in_order(decision_id)
        if decision.status == DecisionStatus.DECIDED:
            return _repeat_or_refuse(decision, verdict, user_id)
        _require_open(work, decision)
        _require_seen(decision, verdict)
        option = _require_option(decision, verdict)
        _require_showable(decision, verdict)
        decision.verdict = verdict.verdict
        decision.reason = verdict.reason.strip()
        decision.payload = dict(verdict.payload or {})
        decision.decided_by_id = user_id
        decision.decided_by_policy = policy_id
        work.touch(decision, "verdict", "reason", "payload", "decided_by", "decided_by_policy")
        move_decision(work, decision, DecisionStatus.DECIDED, why=decision.reason)
        work.flush()
        apply_verdict(work, decision, option["verdict"])
    return Outcome(decision, is_repeat=False)


def _lock_in_order(decision_id: int) -> Decision:
    """Lock project, parent, task and then the decision, and attach them to it."""
    place = place_of_decision(decision_id)
    if place is None:
        raise NotFound("There is no such decision.")
    project_id, task_id, parent_id = place
    project: Project = lock_project(project_id)
    parent = lock_task(parent_id, project=project) if parent_id is not None else None
    task = lock_task(task_id, project=project) if task_id is not None else None
    if task is not None and parent is not None:
        task.parent = parent
    decision = fetch_rows(Decision, "id = %s", [decision_id], lock=True)[0]
    decision.project, decision.task = project, task
    return decision


def standing_of(decision: Decision) -> dict[str, Any]:
    """The verdict that stands, for whoever came second."""
    by = decision.decided_by.get_username() if decision.decided_by else ""
    return {
        "verdict": decision.verdict,
        "decided_by": by or decision.decided_by_policy,
        "decided_at": decision.decided_at.isoformat() if decision.decided_at else None,
        "reason": decision.reason,
        "status": decision.status,
    }


def _repeat_or_refuse(decision: Decision, verdict: Verdict, user_id: int | None) -> Outcome:
    """Answer the identical repeat with success; anything else gets the standing verdict."""
    same = (
        decision.verdict == verdict.verdict
        and decision.reason == verdict.reason.strip()
        and decision.payload == dict(verdict.payload or {})
        and decision.decided_by_id == user_id
    )
    if same:
        return Outcome(decision, is_repeat=True)
    standing = standing_of(decision)
    raise AlreadyDecided(
        f"already decided: {standing['verdict']} by {standing['decided_by']}", standing=standing
    )


def _require_open(work: Work, decision: Decision) -> None:
    if decision.status != DecisionStatus.OPEN:
        raise DecisionClosed(
            f"this item was {decision.status}: {decision.closed_reason}",
            standing=standing_of(decision),
        )
    runs = decision.project.status in RUNNING
    late = runs and decision.deadline is not None and decision.deadline <= work.now
    if late and not work.actor.name.startswith("policy:"):
        raise DecisionClosed("this item has expired", standing=standing_of(decision))
    is_stopped = decision.project.status == ProjectStatus.SAFE_STOP
    if is_stopped and decision.kind != DecisionKind.SAFE_STOP:
        raise Conflict("The project is in safe stop; only its own question is open.",
                       code="project_safe_stop")  # fmt: skip
    if decision.project.status == ProjectStatus.ARCHIVED:
        raise DecisionClosed("the project is archived", standing=standing_of(decision))


def _require_seen(decision: Decision, verdict: Verdict) -> None:
    """Raise unless what was shown is what is stored; the digest is computed afresh."""
    digest = decision_digest(decision.question, decision.content, decision.options)
    if digest != decision.digest:
        raise Invalid(
            "the stored content of this item does not match its digest; it cannot be signed"
        )
    if verdict.seen_version != decision.version or verdict.seen_digest != digest:
        raise Stale(
            "the item changed since it was shown",
            version=decision.version,
            digest=decision.digest,
        )


def _require_option(decision: Decision, verdict: Verdict) -> Mapping[str, Any]:
    offered = {option["verdict"]: option for option in decision.options}
    option: Mapping[str, Any] | None = offered.get(verdict.verdict)
    if option is None:
        raise Invalid(
            f"this item offers {', '.join(offered)}",
            errors=[{"path": "verdict", "message": f"{verdict.verdict!r} is not offered"}],
        )
    if len(verdict.reason) > MAX_REASON_CHARACTERS:
        raise Invalid("the reason is too long", errors=[{"path": "reason", "message": "too long"}])
    needs_words = option["requires_reason"] or (
        verdict.verdict == "answer" and decision.content.get("reason") == "question"
    )
    if needs_words and not verdict.reason.strip():
        raise Invalid(
            f"{verdict.verdict} needs a reason",
            errors=[{"path": "reason", "message": "is required for this verdict"}],
        )
    return option


def _require_showable(decision: Decision, verdict: Verdict) -> None:
    """Raise when a clean yes is given to a fix that no page can show whole.

    Errors: Invalid naming what cannot be read.
    """
    patch = (decision.content.get("fix") or {}).get("patch")
    if verdict.verdict in NO_REASON and isinstance(patch, str) and patch.strip():
        parse_diff(patch)


def mark_seen(*, decision_id: int, user_id: int, actor: Actor) -> DecisionView:
    """Note that a person has seen an item; nothing is decided by it."""
    with unit_of_work(actor) as work:
        view, _ = DecisionView.objects.get_or_create(decision_id=decision_id, user_id=user_id)
        if view.seen_at is None:
            view.seen_at = work.now
            work.touch(view, "seen_at")
    return view


def save_draft(*, decision_id: int, user_id: int, text: str, actor: Actor) -> DecisionView:
    """Keep a person's typed, unsent words on an item.

    Errors: Invalid when longer than a reason may be.
    """
    if len(text) > MAX_REASON_CHARACTERS:
        raise Invalid("the draft is too long")
    with unit_of_work(actor) as work:
        view, _ = DecisionView.objects.get_or_create(decision_id=decision_id, user_id=user_id)
        view.draft = text
        work.touch(view, "draft")
    return view
