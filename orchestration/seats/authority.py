"""What may run or be applied on our machine, checked at the last moment before it does.

A command runs when it is on the allow-list, when the trusted plan of its step holds it, or when Sir
approved its digest for that step. A fix is applied when it is the trusted plan's own, when Sir
signed exactly this fix, or when it is nothing but commands that may run. Everything else that
agents propose is work for the external fixer.
Source: DESIGN section 8 ("Commands on our machine").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from orchestration.contracts.plan import ProposedFix
from orchestration.models import Blueprint, Decision, Deviation, StaleConsumer, Task
from orchestration.rules.commands import command_digest
from orchestration.rules.dag import canonical_digest
from orchestration.seats.sandboxing import NO_SANDBOX, is_sandbox_missing
from orchestration.seats.test_commands import confirmed_digests
from orchestration.states import DecisionKind, DecisionStatus

NO_WORKSPACE = "not possible: this project has no workspace"
UNSIGNED_PATCH = "not possible: neither the trusted plan nor Sir gave this patch"
NO_FIX = "this defect proposes no fix"


def refusal_of(task: Task, commands: Sequence[Mapping[str, Any]]) -> str:
    """Why commands of a step may not run here, or the empty string."""
    if not task.project.workspace:
        return NO_WORKSPACE
    if is_sandbox_missing(task):
        return NO_SANDBOX
    refused = _first_unauthorised(task, commands)
    return f"not possible: not approved: {' '.join(refused['argv'])}" if refused else ""


def refusal_of_fix(task: Task, defect: Mapping[str, Any]) -> str:
    """Why the fix of a defect may not be applied here, or the empty string.

    Shape: `defect` is what a fixer is handed, with its `id` and `proposed_fix`.
    """
    fix = fix_of(defect)
    if fix is None:
        return NO_FIX
    if not task.project.workspace:
        return NO_WORKSPACE
    commands = [one.to_document() for one in fix.commands]
    if is_own_fix(task, defect["proposed_fix"]) or _is_signed(task, defect):
        return NO_SANDBOX if commands and is_sandbox_missing(task) else ""
    return UNSIGNED_PATCH if fix.patch.strip() else refusal_of(task, commands)


def fix_of(defect: Mapping[str, Any]) -> ProposedFix | None:
    """Read the fix that a defect proposes, if there is anything to apply."""
    proposed = defect.get("proposed_fix")
    if not proposed:
        return None
    fix = ProposedFix.from_stored(proposed)
    return None if fix.is_empty else fix


def _first_unauthorised(
    task: Task, commands: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Find a command that is not on the allow-list and neither trusted nor approved as planned."""
    policy = task.project.policy
    task = _owner(task)
    unlisted = [one for one in commands if not policy.commands.allows(one["argv"])]
    if not unlisted:
        return None
    planned = _planned_digests(task)
    if task.parent is None or not is_trusted_step(task):
        approved = frozenset(task.parent.approved_digests if task.parent is not None else ())
        planned &= approved | confirmed_digests(task)
    return next((one for one in unlisted if command_digest(one) not in planned), None)


def _owner(task: Task) -> Task:
    """The step whose plan a task's commands are from: its own, or that which it fixes or checks."""
    if task.fixes_id is None:
        return task
    checked = StaleConsumer.objects.select_related("task__parent").filter(check_task=task).first()
    if checked is not None:
        return checked.task
    return Task.objects.select_related("parent").get(defects=task.fixes_id)


def _planned_digests(task: Task) -> frozenset[str]:
    """Digest every command that the step's own plan holds."""
    fix = _planned_fix(task) or {}
    return frozenset(map(command_digest, (*task.run, *task.verify, *fix.get("commands", ()))))


def _planned_fix(task: Task) -> Mapping[str, Any] | None:
    fix: Mapping[str, Any] | None = (task.on_failure or {}).get("fix")
    return fix


def is_own_fix(task: Task, proposed: Mapping[str, Any]) -> bool:
    """Whether a fix is, word for word, the one that the trusted plan gives its step."""
    planned = _planned_fix(task)
    if not planned or canonical_digest(planned) != canonical_digest(proposed):
        return False
    return is_trusted_step(task)


def is_trusted_step(task: Task) -> bool:
    """Whether a step stands in its blueprint as a trusted plan or Sir's own deviation put it there.

    A step that an agent added or changed is not trusted, though its plan is.
    """
    if task.blueprint_id is None:
        return False
    by_agent = Deviation.objects.filter(
        blueprint=OuterRef("pk"), new_step__id=task.step_key
    ).exclude(actor__startswith="human:")
    trusted = Blueprint.objects.filter(pk=task.blueprint_id, plan__is_trusted=True)
    return trusted.exclude(Exists(by_agent)).exists()


def _is_signed(task: Task, defect: Mapping[str, Any]) -> bool:
    """Whether Sir approved exactly this fix for exactly this defect."""
    return Decision.objects.filter(
        task_id=task.pk,
        defect_id=int(defect["id"]),
        kind=DecisionKind.MEDIUM_DEFECT.value,
        status=DecisionStatus.DECIDED.value,
        verdict="approve",
        decided_by_policy="",
        content__fix_digest=canonical_digest(defect["proposed_fix"]),
    ).exists()
