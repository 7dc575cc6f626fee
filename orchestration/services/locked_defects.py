"""Defects of locked artifacts: the step stays done, and a fix task makes the next version.

Who fixes has a task of its own, with the checks of the step it fixes; `services.locked_fixes` locks
what it makes. The old version stays readable.
Source: DESIGN section 8 ("Locked artifacts"), section 4 rule 21.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.errors import Conflict
from orchestration.models import Artifact, Defect, Task
from orchestration.rules.severity import Approver, gate
from orchestration.selectors.consumers import readers_of
from orchestration.services.defects import notify_sir
from orchestration.services.holding import lock_writable_project
from orchestration.services.inbox import open_decision
from orchestration.services.intake import NewTask, begin_roots, new_root
from orchestration.services.lookups import lock_task
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

    Errors: Conflict for a version that a newer one replaced, for a step that is not done, and in a
    project that is archived or in safe stop.
    Locks: the project, then the step that locked it.
    """
    with unit_of_work(actor) as work:
        artifact = Artifact.objects.get(pk=artifact_id)
        project = lock_writable_project(artifact.project_id)
        origin = lock_task(artifact.task_id, project=project)
        _require_standing(artifact, origin)
        defect = open_locked(work, origin, artifact, document, raised_by=actor.name, low=low)
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


def open_locked(
    work: Work, origin: Task, artifact: Artifact, document: Mapping[str, Any], *, raised_by: str,
    low: str,
) -> Defect:  # fmt: skip
    """Store one defect of a locked artifact and pass it through its severity's gate."""
    impact = readers_of(artifact)
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
        impact=impact.listed,
        impact_total=impact.total,
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
            "impact_total": defect.impact_total,
        },
        params={"about": "locked", "step": origin.step_key or str(origin),
                "blocks": defect.impact_total},
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
    task = make_root(
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


def make_root(
    work: Work, origin: Task, *, title: str, text: str, defect: Defect, **fields: Any
) -> Task:
    """Make a root of its own about a defect of a locked artifact. Locks: expects the project's."""
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
