"""Fixes of locked artifacts: lock the next version, and verify again whoever read the old one.

A consumer's own commands are run again in a check task; one that fails is a defect of what that
consumer locked.
Source: DESIGN section 8 ("Locked artifacts"), section 4 rule 21.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Max

from orchestration.contracts.archive import StaleState
from orchestration.models import Artifact, ArtifactRead, Defect, Output, StaleConsumer, Task
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.seats.authority import refusal_of
from orchestration.services.artifacts import lock_artifacts
from orchestration.services.flow_documents import hold_document, keep_documents
from orchestration.services.inbox import open_decision
from orchestration.services.intake import begin_roots
from orchestration.services.locked_defects import make_root, open_locked
from orchestration.services.lookups import lock_task
from orchestration.services.moves import move_defect
from orchestration.services.profile_gate import require_document
from orchestration.services.work import Work
from orchestration.states import (
    Complexity,
    DecisionKind,
    DefectStatus,
    Severity,
    TaskStatus,
)

NO_CHECK = "no command of its own checks it"


def is_recheck(task: Task) -> bool:
    """Whether a task only checks a consumer again. Read from its row alone."""
    return task.fixes_id is not None and bool(task.run)


def end_fix(work: Work, task: Task, outputs: Sequence[Output], files: Mapping[str, bytes]) -> str:
    """Lock what replaces a locked artifact, or note that a consumer passed again.

    Return why the work is no fix, or the empty string.
    """
    if is_recheck(task):
        settle_recheck(work, task, ())
        return ""
    return lock_fixed(work, task, outputs, files)


def lock_fixed(
    work: Work, task: Task, outputs: Sequence[Output], files: Mapping[str, bytes]
) -> str:
    """Lock what a fix task made as the next version of the artifact; mark its consumers stale.

    Return why the work is no fix, or the empty string.
    Locks: takes the step that made it, after the fix task, then the document that it stands for;
    the caller retries on deadlock.
    """
    defect = Defect.objects.select_related("artifact").filter(fix_tasks=task.pk).first()
    old = defect.artifact if defect is not None else None
    if defect is None or old is None:
        return "its defect is about no artifact"
    if defect.status != DefectStatus.FIXING:
        # It ended while its fix was made: the version stays as it is.
        work.record(
            "fix.unneeded",
            subject=f"task:{task.pk}",
            project_id=task.project_id,
            task_id=task.pk,
            why=f"its defect is {defect.status}",
        )
        return ""
    origin = lock_task(old.task_id, project=task.project)
    named = [one for one in outputs if (one.path or one.title) == old.name]
    if not named and len(outputs) == 1 and not outputs[0].path:
        # One text handed in under another title is meant for what was asked.
        named = [outputs[0]]
    if origin.role:
        hold_document(origin, old.name)
    faults = _document_faults(origin, old.name, named, files)
    if faults:
        return faults
    made = lock_artifacts(work, origin, named, files, name=old.name, has_versions=True)
    if not made:
        return f"nothing new was handed in under the name {old.name!r}"
    if origin.role:
        keep_documents(work, origin, made)
    defect.task = origin
    move_defect(work, defect, DefectStatus.FIXED, why=f"{old.name} v{made[0].version}")
    move_defect(work, defect, DefectStatus.VERIFIED)
    work.flush()
    mark_stale(work, origin, defect, old, made[0])
    return ""


def _document_faults(
    origin: Task, name: str, outputs: Sequence[Output], files: Mapping[str, bytes]
) -> str:
    """Say what is wrong with a document of a workflow that was made anew; empty where nothing is.

    It is read by machines: its stage would not have handed it in like this either.
    """
    if not origin.role or not outputs:
        return ""
    newest = outputs[-1]
    data = files.get(newest.path) if newest.path else newest.content.encode()
    try:
        require_document(origin, name, data or b"")
    except DocumentInvalid as error:
        return f"{error.detail} " + "; ".join(one["message"] for one in error.errors)
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
    task = make_root(
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
        open_locked(work, consumer, artifact, document, raised_by="rules", low="fix")
