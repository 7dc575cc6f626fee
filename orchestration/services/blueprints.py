"""A locked blueprint's steps as child tasks: new ones made in bulk, unchanged ones kept.

Source: DESIGN section 7 (lock, definition hash), section 4 rules 4 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.plan import Plan as PlanDocument
from orchestration.contracts.plan import PlanStep, VerificationCommand
from orchestration.models import (
    Assessment,
    Assignment,
    Blueprint,
    Plan,
    Project,
    Task,
    TaskDependency,
)
from orchestration.models.inserts import insert_rows
from orchestration.models.rows import fetch_rows, new_row
from orchestration.models.statements import add_to_sequence
from orchestration.rules.commands import command_digest
from orchestration.rules.dag import assign_phases, definition_hashes
from orchestration.rules.flow_stages import is_box_plan
from orchestration.rules.plan import highest_risk, step_words
from orchestration.selectors.fixes import open_fixes
from orchestration.selectors.outages import unchecked_steps
from orchestration.services.blockers import ask_behind
from orchestration.services.inbox import open_decision, withdraw_open
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_lineage_root
from orchestration.services.moves import supersede_task, void_defects
from orchestration.services.readiness import make_ready
from orchestration.services.work import Work, locked
from orchestration.states import (
    ASSIGNMENT_LIVE,
    SKIPPED_REASON,
    SUPERSEDED_REASON,
    TASK_HOLDS_SLOT,
    Complexity,
    DecisionKind,
    RiskLevel,
    Route,
    Seat,
    TaskStatus,
)

RUNNING = TASK_HOLDS_SLOT | {TaskStatus.REVIEW}


def create_steps(
    work: Work, task: Task, blueprint: Blueprint, plan: Plan, parsed: PlanDocument
) -> None:
    """Make the child tasks of a new blueprint, keep the unchanged ones, and start what may start.

    Locks: expects the planned task locked; takes its project (for the numbers) and old children.
    """
    hashes = definition_hashes(parsed)
    phases = assign_phases(parsed)
    kept = keep_unchanged(work, task, blueprint, hashes)
    fresh = [step for step in parsed.steps if step.id not in kept]
    numbers = take_numbers(task.project, len(fresh))
    root = lock_lineage_root(task)
    rows = [
        build_step(
            work, task, root, blueprint, step,
            number=number, phase=phases[step.id], digest=hashes[step.id],
            is_trusted=plan.is_trusted,
        )
        for step, number in zip(fresh, numbers, strict=True)
    ]  # fmt: skip
    by_key = {row.step_key: row for row in rows} | kept
    _count_dependencies(work, parsed, by_key)
    insert_rows(rows)
    _link(parsed, by_key, kept)
    _record_created(work, rows, parsed, why=f"blueprint {blueprint.number}")
    _inherit(work, task, root, parsed, by_key)
    waiting = ask_for_commands(work, task, plan, parsed, by_key)
    offered = _offered(task) if kept else frozenset()
    first = [row for key, row in by_key.items() if key not in waiting and row.pk not in offered]
    _start_first(work, task, first)


def take_numbers(project: Project, count: int) -> range:
    """Reserve a run of task numbers of a project. Locks: the project's row, by the update."""
    last = add_to_sequence(project.pk, count)
    return range(last - count + 1, last + 1)


def build_step(
    work: Work,
    parent: Task,
    root: Task,
    blueprint: Blueprint,
    step: PlanStep,
    *,
    number: int,
    phase: int,
    digest: str,
    is_trusted: bool,
) -> Task:
    """Build one unsaved child task from a step.

    A step with `run`, from a playbook, or with `delegate: false` is direct and low; every other is
    assessed on its own text when its turn comes.
    """
    is_flow = is_box_plan(step.role or "", step.id) and not step.run
    direct = not is_flow and (bool(step.run) or is_trusted or not step.delegate)
    risk = step.risk_level.value if step.risk_level else (RiskLevel.LOW.value if direct else "")
    is_risky = risk in (RiskLevel.HIGH.value, RiskLevel.CRITICAL.value)
    title, description = step_words(step)
    return new_row(
        Task,
        project=parent.project,
        number=number,
        title=title,
        description=description,
        parent=parent,
        root=root,
        blueprint=blueprint,
        step_key=step.id,
        definition_hash=digest,
        phase=phase,
        depth=parent.depth + 1,
        route=Route.WORKFLOW.value if is_flow else Route.DIRECT.value if direct else "",
        is_planned=is_flow,
        complexity=(Complexity.HIGH if is_risky else Complexity.LOW).value if direct else "",
        risk_level=risk,
        is_assessed=direct or is_flow,
        role=step.role or "",
        scope=list(step.scope or step.written_paths),
        expected_artifacts=[_plain(one) for one in step.expected_artifacts],
        run=[_plain(one) for one in step.run],
        verify=[_plain(one) for one in step.verify],
        on_failure=_plain(step.on_failure) if step.on_failure else None,
        writes=list(step.writes),
        risks=list(step.risks),
        resources=list(step.resources),
        is_irreversible=step.irreversible,
        is_delegated=step.delegate,
        estimate_minutes=step.estimate_minutes,
        estimated_steps=1 if direct else None,
        created_at=work.now,
        updated_at=work.now,
    )


def _plain(model: Any) -> dict[str, Any]:
    document: dict[str, Any] = model.to_document()
    return document


def keep_unchanged(
    work: Work, task: Task, blueprint: Blueprint, hashes: Mapping[str, str]
) -> dict[str, Task]:
    """Re-parent the unchanged old steps and supersede the others (rule 4). Return the kept ones.

    Kept = same key and same definition hash, and done, not yet started, or still running: a plan
    that Sir sent back over its commands lets running steps finish. A done step whose checks met an
    outage is done again: nothing else would check it.
    """
    standing = "parent_id = %s AND blueprint_id IS NOT NULL AND NOT is_superseded ORDER BY id"
    old = fetch_rows(Task, standing, [task.pk], lock=True)
    kept: dict[str, Task] = {}
    dropped: list[Task] = []
    unchecked = unchecked_steps(task.pk) if old else frozenset()
    for row in old:
        row.project = task.project
        unchanged = hashes.get(row.step_key) == row.definition_hash
        untouched = row.status == TaskStatus.PENDING and row.tries == 0
        runs = row.status in RUNNING and not row.is_planned
        is_done = row.status == TaskStatus.DONE and row.pk not in unchecked
        if unchanged and (is_done or untouched or runs):
            row.blueprint = blueprint
            work.touch(row, "blueprint")
            kept[row.step_key] = row
        else:
            dropped.append(row)
    supersede(work, dropped)
    return kept


def supersede(work: Work, rows: Sequence[Task]) -> None:
    """Mark old steps as superseded: open ones are cancelled, done ones only marked.

    With what they locked go the tasks that fix it.
    """
    ids = [row.pk for row in rows]
    if not ids:
        return
    subtree = [*ids, *descendant_ids(ids)]
    fixes = open_fixes(subtree)
    subtree += [*fixes, *descendant_ids(fixes)]
    # The tasks first: what is asked about one is asked under its lock.
    below = list(locked(Task.objects.filter(pk__in=subtree).exclude(pk__in=ids)).order_by("pk"))
    cancel_live(work, subtree, why=SUPERSEDED_REASON)
    withdraw_open(work, subtree, why=SUPERSEDED_REASON, with_locked=True)
    void_defects(work, subtree, why=SUPERSEDED_REASON, with_locked=True)
    for row in (*rows, *below):
        supersede_task(work, row, why=SUPERSEDED_REASON)
    for row in (*rows, *below):
        ask_behind(work, row)


def descendant_ids(task_ids: Sequence[int]) -> list[int]:
    """List the ids of everything below some tasks, level by level."""
    found: list[int] = []
    level = list(task_ids)
    while level:
        level = list(Task.objects.filter(parent_id__in=level).values_list("pk", flat=True))
        found += level
    return found


def is_satisfied(task: Task) -> bool:
    """Whether a step counts as finished for its dependents and its phase."""
    return task.status == TaskStatus.DONE or (
        task.status == TaskStatus.CANCELLED and task.cancel_reason == SKIPPED_REASON
    )


def _count_dependencies(work: Work, parsed: PlanDocument, by_key: Mapping[str, Task]) -> None:
    """Set how many unmet dependencies each step waits for."""
    for step in parsed.steps:
        row = by_key[step.id]
        unmet = sum(not is_satisfied(by_key[needed]) for needed in step.depends_on)
        row.remaining_dependencies = unmet
        if row.pk is not None:
            work.touch(row, "remaining_dependencies")


def _link(parsed: PlanDocument, by_key: Mapping[str, Task], kept: Mapping[str, Task]) -> None:
    """Write the edges of the plan; those of kept steps are written anew."""
    if kept:
        TaskDependency.objects.filter(task__in=kept.values()).delete()
    edges = [
        new_row(TaskDependency, task=by_key[step.id], requires=by_key[needed])
        for step in parsed.steps
        for needed in step.depends_on
    ]
    insert_rows(edges)


def _record_created(work: Work, rows: Sequence[Task], parsed: PlanDocument, *, why: str) -> None:
    """Write the creation events and the S0 records of new steps, in bulk."""
    needs = {step.id: list(step.depends_on) for step in parsed.steps}
    work.insert(
        [
            new_row(
                Assessment,
                task=row,
                stage="S0",
                outcome="direct",
                rule="planned_step",
                created_at=work.now,
            )
            for row in rows
            if row.is_assessed
        ]
    )
    for row in rows:
        work.record(
            "task.pending",
            subject=f"task:{row.pk}",
            project_id=row.project_id,
            task_id=row.pk,
            after=step_facts(row, needs[row.step_key]),
            why=why,
        )


def step_facts(row: Task, needs: Sequence[str]) -> dict[str, Any]:
    """What the creation event says of a step: enough to draw the board from the trail alone."""
    return {
        "status": row.status,
        "step": row.step_key,
        "parent": row.parent_id,
        "number": row.number,
        "title": row.title,
        "phase": row.phase,
        "needs": list(needs),
    }


def _inherit(
    work: Work, task: Task, root: Task, parsed: PlanDocument, by_key: Mapping[str, Task]
) -> None:
    """Open the first phase, end the stop of the last attempt, and take the steps' highest risk."""
    open_rows = [row for row in by_key.values() if not is_satisfied(row)]
    task.open_phase = min((row.phase for row in open_rows), default=1)
    fields = ["open_phase"]
    if task.route == Route.WORKFLOW:
        task.risk_level = highest_risk(parsed).value
        complexities = [Complexity(row.complexity or Complexity.LOW) for row in by_key.values()]
        task.complexity = max(complexities, key=list(Complexity).index).value
        fields += ["risk_level", "complexity"]
    task.estimated_steps = len(parsed.steps)
    work.touch(task, *fields, "estimated_steps")
    if root.is_replanning:
        root.is_replanning = False
        work.touch(root, "is_replanning")


def needs_approval(
    plan: Plan, project: Project, approved: Sequence[str], command: VerificationCommand
) -> bool:
    """Whether Sir has to see a command before it may run on our machine."""
    if plan.is_trusted or project.policy.commands.allows(command.argv):
        return False
    return command_digest(command.to_document()) not in approved


def ask_for_commands(
    work: Work, task: Task, plan: Plan, parsed: PlanDocument, by_key: Mapping[str, Task]
) -> set[str]:
    """Open one `command_approval` for all commands outside the allow-list (rule 12).

    Return the keys of the steps that wait for it.
    """
    waiting: set[str] = set()
    listed: list[dict[str, Any]] = []
    for step in parsed.steps:
        commands = [
            one
            for one in step.commands
            if needs_approval(plan, task.project, task.approved_digests, one)
        ]
        if not commands or is_satisfied(by_key[step.id]):
            continue
        waiting.add(step.id)
        listed += [_shown(step, one) for one in commands]
    _settle_kept(work, by_key, waiting)
    if not waiting:
        return waiting
    ids = [by_key[key].pk for key in waiting]
    Task.objects.filter(pk__in=ids).update(is_awaiting_commands=True)
    for key in waiting:
        by_key[key].is_awaiting_commands = True
    open_decision(
        work,
        kind=DecisionKind.COMMAND_APPROVAL,
        project=task.project,
        task=task,
        plan=plan,
        title=f"{len(listed)} commands outside the allow-list",
        question=f"May these {len(listed)} commands run on this machine?",
        content={"commands": listed, "steps": sorted(waiting)},
        params={"count": len(listed), "frees": len(waiting)},
    )
    return waiting


def _shown(step: PlanStep, command: VerificationCommand) -> dict[str, Any]:
    """What Sir sees of one command, and the digest that his word is bound to."""
    return {
        "step": step.id,
        "action": step.action,
        "argv": list(command.argv),
        "cwd": command.cwd,
        "digest": command_digest(command.to_document()),
    }


def _settle_kept(work: Work, by_key: Mapping[str, Task], waiting: set[str]) -> None:
    """Free kept steps whose commands are approved by now."""
    for key, row in by_key.items():
        if row.is_awaiting_commands and key not in waiting:
            row.is_awaiting_commands = False
            work.touch(row, "is_awaiting_commands")


def _offered(task: Task) -> frozenset[int]:
    """The steps that have an executor's assignment already; a new one has none."""
    live = Assignment.objects.filter(
        task__parent=task, seat=Seat.EXECUTOR.value, status__in=ASSIGNMENT_LIVE
    )
    return frozenset(live.values_list("task_id", flat=True))


def _start_first(work: Work, task: Task, rows: Sequence[Task]) -> None:
    ready = [
        row
        for row in rows
        if row.status == TaskStatus.PENDING
        and not row.remaining_dependencies
        and row.phase <= task.open_phase
    ]
    for row in ready:
        row.parent, row.root = task, task.root or task
    make_ready(work, ready)
