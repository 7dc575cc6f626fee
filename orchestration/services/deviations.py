"""Deviations: leave a locked blueprint by adding, skipping or changing a step.

The blueprint stays as it was signed; a deviation stands beside it. A skipped step is cancelled with
reason `skipped` and satisfies what waits for it. A changed step is a new one, and the old one is
skipped; what has not started waits for the new one. What an agent asks for is audited by rules.
Source: DESIGN section 7 ("Leaving the plan"), section 4 rule 6.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.contracts.plan import Plan as PlanDocument
from orchestration.contracts.plan import PlanStep, parse_plan
from orchestration.contracts.results import DeviationInput
from orchestration.errors import Conflict, CountersignError, Fault, Forbidden, Invalid
from orchestration.models import (
    Assessment,
    AuditReport,
    Blueprint,
    Deviation,
    Task,
    TaskDependency,
)
from orchestration.rules.dag import assign_phases, definition_hashes
from orchestration.rules.plan_audit import AuditOutcome, Level, audit_plan
from orchestration.rules.profiles import known_roles
from orchestration.runner.workspace import artifact_exists
from orchestration.services.blueprints import (
    ask_for_commands,
    build_step,
    is_satisfied,
    step_facts,
    take_numbers,
)
from orchestration.services.holding import require_not_stopped
from orchestration.services.lookups import lineage_root, lock_task
from orchestration.services.readiness import make_ready
from orchestration.services.red_line_refusals import require_not_refused, step_texts
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.skipping import skip_step
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import TASK_TERMINAL, TaskStatus

NOT_STARTED = frozenset({TaskStatus.PENDING, TaskStatus.BLOCKED})


@dataclass(frozen=True, slots=True)
class Departed:
    """What a deviation did. Shape: `new_step` is None when a step was only skipped."""

    deviation: Deviation
    new_step: Task | None


@dataclass(slots=True)
class _Departure:
    """A deviation while it is worked out: the plan before and after it, the steps it touches."""

    task: Task
    blueprint: Blueprint
    asked: DeviationInput
    before: PlanDocument
    after: PlanDocument
    steps: dict[str, Task]
    old: Task | None

    @property
    def wanted(self) -> PlanStep | None:
        """The new step as the whole plan reads it."""
        return self.after.by_id[self.asked.new_step.id] if self.asked.new_step else None


@retry_on_deadlock
def record_deviation(
    *, task_id: int, asked: DeviationInput, actor: Actor, is_sir: bool
) -> Departed:
    """Leave a planned task's blueprint in one point.

    Errors: Conflict when nothing is locked, the task is not working, or the step has ended or (for
    an agent) started or asks for what Sir refused; Forbidden for an agent that would skip a step
    with `run` or `verify`, or add commands to a trusted plan; Invalid for an unknown step, a broken
    graph or what the audit finds.
    Locks: the planned task, then the step that goes.
    """
    with unit_of_work(actor) as work:
        task = lock_task(task_id)
        require_not_stopped(task.project)
        departure = _work_out(task, _only_what_counts(asked))
        if not is_sir:
            _require_agent_may(departure)
        audit = None if is_sir else _audit(departure)
        deviation = _store(work, departure, audit)
        added = _add_step(work, departure)
        if departure.old is not None:
            _skip_old(work, departure, added)
        if added is not None:
            _start(work, departure, added)
        work.flush()
    return Departed(deviation, added)


def _only_what_counts(asked: DeviationInput) -> DeviationInput:
    """Leave out the part that this kind of change does not have."""
    unused = {"added": "step", "skipped": "new_step"}.get(asked.change)
    return asked.model_copy(update={unused: None}) if unused is not None else asked


def _work_out(task: Task, asked: DeviationInput) -> _Departure:
    blueprint = task.blueprints.select_related("plan").order_by("-number").first()
    if blueprint is None:
        raise Conflict("This task has no locked blueprint to deviate from.", code="no_blueprint")
    root = lineage_root(task)
    if task.status != TaskStatus.WORKING or root.is_ending or root.is_replanning:
        raise Conflict(f"The task is {task.status}; its plan stands.", code="not_deviable")
    rows = task.children.filter(is_superseded=False, blueprint__isnull=False)
    steps = {row.step_key: row for row in rows}
    for row in steps.values():
        row.parent, row.project, row.root = task, task.project, root
    old = _step_that_goes(steps, asked)
    before = _plan_now(blueprint)
    document = _changed(before.to_document(), asked.step, _document(asked))
    return _Departure(task, blueprint, asked, before, parse_plan(document), steps, old)


def _document(asked: DeviationInput) -> Mapping[str, Any] | None:
    return asked.new_step.to_document() if asked.new_step is not None else None


def _step_that_goes(steps: Mapping[str, Task], asked: DeviationInput) -> Task | None:
    if asked.step is None:
        return None
    old = steps.get(asked.step)
    if old is None:
        message = f"{asked.step!r} is no step of this plan"
        raise Invalid(f"{message}.", errors=[Fault(path="step", message=message)])
    if old.status in TASK_TERMINAL:
        raise Conflict(f"The step is {old.status} already.", code="step_ended", allowed=[])
    return old


def _plan_now(blueprint: Blueprint) -> PlanDocument:
    """The blueprint with its earlier deviations applied, as the steps are now."""
    document: dict[str, Any] = dict(blueprint.plan.body)
    for row in blueprint.deviations.order_by("pk"):
        document = _changed(document, row.step_key or None, row.new_step)
    return PlanDocument.from_stored(document)


def _changed(
    document: Mapping[str, Any], old_key: str | None, new_step: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Put a new step into a plan; what needed the one it replaces needs the new one."""
    steps = [dict(step) for step in document["steps"]]
    if new_step is None:
        return {**document, "steps": steps}
    new_key = str(new_step["id"])
    if old_key is not None:
        steps = [step for step in steps if str(step["id"]) != old_key]
        for step in steps:
            needs = [str(one) for one in step.get("depends_on", ())]
            step["depends_on"] = [new_key if one == old_key else one for one in needs]
    return {**document, "steps": [*steps, dict(new_step)]}


def _require_agent_may(departure: _Departure) -> None:
    old, wanted = departure.old, departure.wanted
    if old is not None and (old.run or old.verify):
        raise Forbidden("Skipping a step that has run or verify needs Sir.", code="needs_sir")
    if old is not None and old.status == TaskStatus.WAITING_HUMAN:
        raise Forbidden("This step waits for Sir.", code="needs_sir")
    if old is not None and old.status not in NOT_STARTED:
        raise Conflict(f"The step is {old.status}; only Sir skips it now.", code="step_started")
    if wanted is not None:
        require_not_refused(departure.task, step_texts(wanted))
    if wanted is None or not departure.blueprint.plan.is_trusted:
        return
    policy = departure.task.project.policy
    if not all(policy.commands.allows(command.argv) for command in wanted.commands):
        raise Forbidden(
            "This plan's commands were trusted as they were; adding others needs Sir.",
            code="needs_sir",
        )


def _audit(departure: _Departure) -> AuditOutcome:
    """Audit the plan as it would be; only what the deviation brings in can refuse it.

    Errors: Invalid listing those findings.
    """
    standing = {(one.code, one.text) for one in _findings(departure, departure.before).findings}
    outcome = _findings(departure, departure.after)
    brought = [
        one
        for one in outcome.findings
        if one.level is Level.REVISE and (one.code, one.text) not in standing
    ]
    if brought:
        raise Invalid(
            "The audit refuses this deviation.",
            code="deviation_refused",
            errors=[Fault(path=f"new_step.{one.check}", message=one.text) for one in brought],
        )
    return outcome


def _findings(departure: _Departure, plan: PlanDocument) -> AuditOutcome:
    project = departure.task.project
    return audit_plan(
        plan,
        policy_allow=project.policy.commands.allow,
        known_roles=known_roles(),
        tools_available=lambda program: _has_tool(project.workspace, program),
        planner=departure.blueprint.plan.backend,
        task_text=departure.task.description or departure.task.title,
    )


def _has_tool(workspace: str, program: str) -> bool:
    if shutil.which(program) is not None:
        return True
    try:
        return bool(workspace) and artifact_exists(Path(workspace), program) is not None
    except CountersignError:
        return False


def _store(work: Work, departure: _Departure, audit: AuditOutcome | None) -> Deviation:
    asked, task = departure.asked, departure.task
    row = Deviation.objects.create(
        blueprint=departure.blueprint,
        change=asked.change,
        step_key=asked.step or "",
        new_step=_document(asked),
        reason=asked.reason,
        actor=work.actor.name,
    )
    if audit is not None:
        said = f"{asked.change} {asked.step or (asked.new_step.id if asked.new_step else '')}"
        document = audit.to_document()
        checks = [{"name": "deviation", "ok": True, "finding": said}, *document["checks"]]
        AuditReport.objects.create(
            plan=departure.blueprint.plan,
            verdict=document["verdict"],
            checks=checks,
            suggestions=document["suggestions"],
            backend="rules",
        )
    work.record(
        "deviation.recorded",
        subject=f"deviation:{row.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "change": row.change,
            "step": row.step_key,
            "new_step": row.new_step,
            "audit": str(audit.verdict) if audit is not None else "by Sir",
        },
        why=asked.reason,
    )
    return row


def _add_step(work: Work, departure: _Departure) -> Task | None:
    """Create the new step with its edges. It starts later, when the old one is out of the way."""
    wanted, task = departure.wanted, departure.task
    if wanted is None:
        return None
    plan = departure.blueprint.plan
    row = build_step(
        work, task, lineage_root(task), departure.blueprint, wanted,
        number=take_numbers(task.project, 1)[0],
        phase=assign_phases(departure.after)[wanted.id],
        digest=definition_hashes(departure.after)[wanted.id],
        is_trusted=plan.is_trusted,
    )  # fmt: skip
    needed = [departure.steps[key] for key in wanted.depends_on]
    row.remaining_dependencies = sum(not is_satisfied(one) for one in needed)
    row.save(force_insert=True)
    TaskDependency.objects.bulk_create(
        [TaskDependency(task=row, requires=one) for one in dict.fromkeys(needed)]
    )
    if row.is_assessed:
        Assessment.objects.create(task=row, stage="S0", outcome="direct", rule="planned_step")
    work.record(
        "task.pending",
        subject=f"task:{row.pk}",
        project_id=row.project_id,
        task_id=row.pk,
        after=step_facts(row, wanted.depends_on),
        why=f"deviation: {departure.asked.reason}",
    )
    return row


def _skip_old(work: Work, departure: _Departure, added: Task | None) -> None:
    """Skip the step that goes; with a new one in its place, what waits will wait for that one."""
    old = lock_task(departure.old.pk, project=departure.task.project) if departure.old else None
    if old is None:
        return
    old.parent, old.root = departure.task, lineage_root(departure.task)
    if added is not None:
        edges = TaskDependency.objects.filter(
            requires=old.pk, task__status=TaskStatus.PENDING.value, task__is_superseded=False
        )
        dependents = sorted(edges.values_list("task_id", flat=True))
        edges.update(requires=added)
        work.record(
            "task.replaced",
            subject=f"task:{old.pk}",
            project_id=old.project_id,
            task_id=old.pk,
            after={"by": added.step_key, "dependents": dependents},
            why=departure.asked.reason,
        )
        if added.step_key == old.step_key:
            old.is_superseded = True
            work.touch(old, "is_superseded")
    skip_step(work, old, departure.task, reason=departure.asked.reason)


def _start(work: Work, departure: _Departure, added: Task) -> None:
    """Ask for its commands where they need it, else let the new step start when it may."""
    task = departure.task
    departure.steps[added.step_key] = added
    waiting = ask_for_commands(
        work, task, departure.blueprint.plan, _still_there(departure), departure.steps
    )
    may_start = not added.remaining_dependencies and added.phase <= task.open_phase
    if may_start and added.step_key not in waiting:
        make_ready(work, [added])


def _still_there(departure: _Departure) -> PlanDocument:
    """The plan without the steps that no row stands for any more."""
    kept = [step for step in departure.after.steps if step.id in departure.steps]
    return departure.after.model_copy(update={"steps": tuple(kept)})
