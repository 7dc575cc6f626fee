"""Defects of locked artifacts: the step stays done, a fix task makes the next version, and whoever
read the old one is verified again.

Who fixes has a task of its own, with the checks of the step it fixes; what it hands in passes
verification and QA like any work, and is locked as the next version of the artifact. The old
version stays readable. A consumer's own commands are run again in a check task; one that fails is a
defect of what that consumer locked.
Source: DESIGN section 8 ("Locked artifacts"), section 4 rule 21.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Max

from orchestration.contracts.archive import StaleState
from orchestration.errors import Conflict
from orchestration.models import Artifact, ArtifactRead, Defect, Output, StaleConsumer, Task
from orchestration.rules.severity import Approver, gate
from orchestration.seats.authority import refusal_of
from orchestration.services.artifacts import lock_artifacts
from orchestration.services.defects import notify_sir
from orchestration.services.inbox import open_decision
from orchestration.services.intake import NewTask, begin_roots, new_root
from orchestration.services.lookups import lock_project, lock_task
from orchestration.services.moves import move_defect
from orchestration.services.projects import reopen_for_work
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import (
    Complexity,
    DecisionKind,
    DefectStatus,
    Route,
    Severity,
    TaskKind,
    TaskStatus,
)

NO_CHECK = "no command of its own checks it"


@retry_on_deadlock
def report_defect(
    *, artifact_id: int, document: Mapping[str, Any], actor: Actor, low: str = "accept"
) -> Defect:
    """Open a graded defect on a locked artifact; its severity decides who approves the fix.

    Errors: Conflict for a version that a newer one replaced, and for a step that is not done.
    Locks: the project, then the step that locked it.
    """
    with unit_of_work(actor) as work:
        artifact = Artifact.objects.get(pk=artifact_id)
        project = lock_project(artifact.project_id)
        origin = lock_task(artifact.task_id, project=project)
        _require_standing(artifact, origin)
        defect = _open(work, origin, artifact, document, raised_by=actor.name, low=low)
        work.flush()
    return defect


def _require_standing(artifact: Artifact, origin: Task) -> None:
    rows = Artifact.objects.filter(task=origin, name=artifact.name)
    newest = rows.order_by("-version").values_list("pk", "version").first()
    if newest is not None and newest[0] != artifact.pk:
        raise Conflict(
            f"version {newest[1]} replaced this one; report the defect there",
            code="version_replaced",
            newest=str(newest[0]),
        )
    if origin.status != TaskStatus.DONE:
        raise Conflict(f"its step is {origin.status}; its review finds defects", code="not_done")


def _open(
    work: Work, origin: Task, artifact: Artifact, document: Mapping[str, Any], *, raised_by: str,
    low: str,
) -> Defect:  # fmt: skip
    """Store one defect and pass it through its severity's gate."""
    defect = Defect.objects.create(
        task=origin,
        artifact=artifact,
        severity=document["severity"],
        category=document.get("category", "defect"),
        title=str(document["title"])[:300],
        description=document.get("description", ""),
        evidence=document.get("evidence") or {},
        proposed_fix=document.get("proposed_fix"),
        source_key=f"artifact:{artifact.pk}",
        impact=consumers_of(artifact),
        raised_by=raised_by,
        created_at=work.now,
        updated_at=work.now,
    )
    work.record(
        "defect.open",
        subject=f"defect:{defect.pk}",
        project_id=origin.project_id,
        task_id=origin.pk,
        after={"status": "open", "severity": defect.severity, "title": defect.title,
               "artifact": artifact.pk},
    )  # fmt: skip
    rule = gate(Severity(defect.severity))
    if rule.waits_for_sir:
        move_defect(work, defect, DefectStatus.AWAITING_SIR)
        _ask(work, origin, artifact, defect)
    elif rule.approver is Approver.QA and low == "accept":
        move_defect(work, defect, DefectStatus.ACCEPTED_AS_IS, why="a Low defect, accepted")
    else:
        move_defect(work, defect, DefectStatus.FIX_APPROVED, why="approved by rule")
        if rule.notifies_sir:
            notify_sir(work, origin, defect)
        start_fix(work, origin, defect)
    return defect


def _ask(work: Work, origin: Task, artifact: Artifact, defect: Defect) -> None:
    """Ask Sir about a Medium defect: what is wrong, and which tasks and artifacts it reaches."""
    open_decision(
        work,
        kind=DecisionKind.MEDIUM_DEFECT,
        project=origin.project,
        task=origin,
        defect=defect,
        title=defect.title,
        question=f"Have {artifact.name} v{artifact.version}, locked by step "
        f"{origin.step_key or origin}, fixed?",
        content={
            "about": "locked",
            "description": defect.description,
            "evidence": defect.evidence,
            "fix": None,
            "severity": defect.severity,
            "artifact": {"id": str(artifact.pk), "name": artifact.name,
                         "version": artifact.version, "sha256": artifact.content_id},
            "impact": defect.impact,
        },
        params={"about": "locked", "step": origin.step_key or str(origin),
                "blocks": len(defect.impact)},
        evidence=[defect.evidence],
    )  # fmt: skip


def decide_locked(work: Work, defect: Defect, verdict: str, *, reason: str) -> None:
    """Do what Sir says about a defect of a locked artifact.

    Locks: expects project, step and defect locked.
    """
    target = {
        "approve": DefectStatus.FIX_APPROVED,
        "accept_as_is": DefectStatus.ACCEPTED_AS_IS,
        "reject": DefectStatus.REJECTED,
    }[verdict]
    defect.guidance = reason
    work.touch(defect, "guidance")
    move_defect(work, defect, target, why=reason)
    work.flush()
    if target is DefectStatus.FIX_APPROVED:
        start_fix(work, defect.task, defect)


def consumers_of(artifact: Artifact) -> list[dict[str, object]]:
    """List who read any version of an artifact, and who read what those locked, and so on.

    Shape: `{task, step_key, title, status, effect, artifacts}`; one bounded query a level.
    """
    seen: set[int] = {artifact.task_id}
    rows = ArtifactRead.objects.filter(
        artifact__task=artifact.task_id, artifact__name=artifact.name
    )
    level = sorted({pk for pk in rows.values_list("task_id", flat=True) if pk not in seen})
    while level:
        seen.update(level)
        below = ArtifactRead.objects.filter(artifact__task__in=level)
        level = sorted({pk for pk in below.values_list("task_id", flat=True) if pk not in seen})
    seen.discard(artifact.task_id)
    made: dict[int, list[str]] = {}
    locked = Artifact.objects.filter(task__in=seen).order_by("pk")
    for task_id, name, version in locked.values_list("task_id", "name", "version"):
        made.setdefault(task_id, []).append(f"{name} v{version}")
    found = Task.objects.filter(pk__in=seen, is_superseded=False).order_by("phase", "pk")
    return [
        {
            "task": str(row.pk),
            "step_key": row.step_key,
            "title": row.title,
            "status": row.status,
            "effect": "to_reverify" if row.status == TaskStatus.DONE else "freed",
            "artifacts": made.get(row.pk, []),
        }
        for row in found
    ]


def start_fix(work: Work, origin: Task, defect: Defect) -> Task:
    """Make the task that fixes a locked artifact: a root of its own, with its step's checks.

    It inherits the count of failures of what it fixes.
    Locks: expects the project locked.
    """
    artifact = defect.artifact
    if artifact is None:
        raise Conflict("this defect is about no artifact", code="no_artifact")
    is_path = artifact.output is not None and bool(artifact.output.path)
    root = origin.root or origin
    task = _make_root(
        work,
        origin,
        title=f"Fix {artifact.name}: {defect.title}",
        text=_fix_text(artifact, defect, origin),
        defect=defect,
        verify=origin.verify,
        expected_artifacts=[{"path": artifact.name}] if is_path else [],
        scope=[artifact.name] if is_path else [],
        facts=[f"It replaces artifact {artifact.pk}, readable at "
               f"/api/artifacts/{artifact.pk}/content."],
        failure_count=root.failure_count,
        complexity=origin.complexity or Complexity.LOW.value,
        risk_level=origin.risk_level,
    )  # fmt: skip
    move_defect(work, defect, DefectStatus.FIXING, why=f"by {task}")
    work.flush()
    begin_roots(work, origin.project, [task])
    return task


def _fix_text(artifact: Artifact, defect: Defect, origin: Task) -> str:
    lines = [
        f"Fix a {defect.severity} defect of the locked artifact {artifact.name} "
        f"(version {artifact.version}, made by {origin}). Hand in the whole of it again under the "
        "same name; it is locked as the next version.",
        f"Defect: {defect.title}",
        defect.description,
        f"Guidance: {defect.guidance}" if defect.guidance else "",
    ]
    fix = (defect.proposed_fix or {}).get("description")
    lines.append(f"Proposed fix: {fix}" if fix else "")
    return "\n\n".join(line for line in lines if line)


def _make_root(
    work: Work, origin: Task, *, title: str, text: str, defect: Defect, **fields: Any
) -> Task:
    project = origin.project
    reopen_for_work(work, project)
    new = NewTask(text=text, title=title[:300], route=Route.DIRECT.value)
    task = new_root(work, project, new, TaskKind.TASK)
    fields["fixes"] = defect
    for name, value in fields.items():
        setattr(task, name, value)
    work.touch(task, *fields)
    work.flush()
    return task


def is_recheck(task: Task) -> bool:
    """Whether a task only checks a consumer again. Read from its row alone."""
    return task.fixes_id is not None and bool(task.run)


def lock_fixed(
    work: Work, task: Task, outputs: Sequence[Output], files: Mapping[str, bytes]
) -> str:
    """Lock what a fix task made as the next version of the artifact; mark its consumers stale.

    Return why the work is no fix, or the empty string.
    Locks: takes the step that made it, after the fix task; the caller retries on deadlock.
    """
    defect = Defect.objects.select_related("artifact").filter(fix_tasks=task.pk).first()
    old = defect.artifact if defect is not None else None
    if defect is None or old is None:
        return "its defect is about no artifact"
    origin = lock_task(old.task_id, project=task.project)
    named = [one for one in outputs if (one.path or one.title) == old.name]
    if not named and len(outputs) == 1 and not outputs[0].path:
        # One text handed in under another title is meant for what was asked.
        named = [outputs[0]]
    made = lock_artifacts(work, origin, named, files, name=old.name, has_versions=True)
    if not made:
        return f"nothing new was handed in under the name {old.name!r}"
    defect.task = origin
    move_defect(work, defect, DefectStatus.FIXED, why=f"{old.name} v{made[0].version}")
    move_defect(work, defect, DefectStatus.VERIFIED)
    work.flush()
    mark_stale(work, origin, defect, old, made[0])
    return ""


def mark_stale(work: Work, origin: Task, defect: Defect, old: Artifact, new: Artifact) -> None:
    """Mark every step stale that is done and read an older version; have each verified again."""
    reads = ArtifactRead.objects.filter(artifact__task=origin, artifact__name=old.name)
    readers = set(reads.filter(artifact__version__lt=new.version).values_list("task_id", flat=True))
    rows = Task.objects.filter(
        pk__in=readers, status=TaskStatus.DONE.value, is_superseded=False
    ).exclude(pk=origin.pk)
    unchecked: list[dict[str, object]] = []
    for consumer in rows.select_related("parent", "root").order_by("pk"):
        consumer.project = origin.project
        if consumer.parent is not None:
            consumer.parent.project = origin.project
        why = refusal_of(consumer, consumer.verify) if consumer.verify else NO_CHECK
        state = StaleState.UNCHECKED if why else StaleState.STALE
        stale = StaleConsumer.objects.create(
            task=consumer, replaced=old, artifact=new, state=state.value, note=why[:300],
            created_at=work.now, settled_at=work.now if why else None,
        )  # fmt: skip
        work.record(
            "consumer.stale",
            subject=f"task:{consumer.pk}",
            project_id=origin.project_id,
            task_id=consumer.pk,
            after={"artifact": new.pk, "state": state.value},
            why=why,
        )
        if why:
            unchecked.append({"task": str(consumer.pk), "step_key": consumer.step_key,
                              "title": consumer.title, "why": why})  # fmt: skip
        else:
            stale.check_task = _start_recheck(work, consumer, defect, new)
            stale.save(update_fields=["check_task"])
    if unchecked:
        _tell_unchecked(work, origin, defect, new, unchecked)


def _start_recheck(work: Work, consumer: Task, defect: Defect, new: Artifact) -> Task:
    """Run a consumer's own commands again, as a task whose failure is a finding."""
    task = _make_root(
        work,
        consumer,
        title=f"Verify {consumer} again with {new.name} v{new.version}",
        text=f"Run the checks of {consumer} again: it read an older {new.name} than "
        f"v{new.version}.",
        defect=defect,
        run=consumer.verify,
        on_failure={"severity": Severity.HIGH.value},
        complexity=Complexity.LOW.value,
    )
    begin_roots(work, consumer.project, [task])
    return task


def _tell_unchecked(
    work: Work, origin: Task, defect: Defect, new: Artifact, unchecked: list[dict[str, object]]
) -> None:
    open_decision(
        work,
        kind=DecisionKind.HIGH_NOTICE,
        project=origin.project,
        task=origin,
        defect=defect,
        title=f"{new.name} v{new.version}: {len(unchecked)} readers could not be checked again",
        question="These steps read the old version, and nothing of theirs checks them.",
        content={
            "description": "\n".join(f"- {one['step_key']} {one['title']}" for one in unchecked),
            "evidence": {},
            "fix": None,
            "severity": defect.severity,
            "consumers": unchecked,
        },
    )


def settle_recheck(work: Work, task: Task, found: Iterable[Mapping[str, Any]]) -> None:
    """Note what a check task found; a failure is a High defect of what its consumer locked."""
    stale = StaleConsumer.objects.select_related("task").filter(check_task=task).first()
    if stale is None:
        return
    failures = list(found)
    stale.state = (StaleState.FAILED if failures else StaleState.VERIFIED).value
    stale.settled_at = work.now
    work.touch(stale, "state", "settled_at")
    work.record(
        f"consumer.{stale.state}",
        subject=f"task:{stale.task_id}",
        project_id=task.project_id,
        task_id=stale.task_id,
        after={"artifact": stale.artifact_id, "state": stale.state},
    )
    if not failures:
        return
    consumer = lock_task(stale.task_id, project=task.project)
    newest = Artifact.objects.filter(task=consumer).aggregate(newest=Max("pk"))["newest"]
    artifact = Artifact.objects.filter(pk=newest).first()
    if artifact is None:
        return
    document = {
        "severity": Severity.HIGH.value,
        "title": f"fails with the new version of what it read: {failures[0]['title']}",
        "description": str(failures[0].get("description", "")),
        "evidence": failures[0].get("evidence") or {},
    }
    with work.as_system():
        _open(work, consumer, artifact, document, raised_by="rules", low="fix")
