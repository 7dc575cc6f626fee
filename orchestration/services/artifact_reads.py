"""Read a locked artifact and record who read it: impact follows these rows.

Source: DESIGN section 8 ("Locked artifacts").
"""

from __future__ import annotations

from orchestration.models import Agent, Artifact, ArtifactRead, Assignment, Project
from orchestration.services.holding import require_not_stopped
from orchestration.services.work import Actor, locked, unit_of_work
from orchestration.states import AssignmentStatus


def read_artifact(
    *, artifact_id: int, agent: Agent | None, actor: Actor, assignment_id: int | None = None
) -> bytes:
    """Return an artifact's bytes; an agent's read is recorded for what it is working on.

    That is the assignment it names, else the newest one it holds in the project. A task never
    counts as a reader of its own artifact.
    Errors: Conflict in safe stop for a read that would have to be recorded: what is read may be
    the very thing that is wrong, and a reader that nobody knows of is checked by nobody.
    """
    artifact = Artifact.objects.select_related("content").get(pk=artifact_id)
    if agent is not None:
        held = Assignment.objects.filter(
            agent=agent, project_id=artifact.project_id, status=AssignmentStatus.LEASED.value
        )
        if assignment_id is not None:
            held = held.filter(pk=assignment_id)
        current = held.order_by("leased_at", "pk").last()
        if current is not None and current.task_id != artifact.task_id:
            _record(artifact, current, actor)
    return bytes(artifact.content.data)


def _record(artifact: Artifact, current: Assignment, actor: Actor) -> None:
    """Record one reader of an artifact, once."""
    if ArtifactRead.objects.filter(artifact=artifact, task_id=current.task_id).exists():
        return
    with unit_of_work(actor) as work:
        # A stop locks every lease whose clock runs, so one that came first is seen here.
        locked(Assignment.objects.filter(pk=current.pk)).get()
        require_not_stopped(Project.objects.get(pk=artifact.project_id))
        _, is_new = ArtifactRead.objects.get_or_create(
            artifact=artifact, task_id=current.task_id, defaults={"assignment": current}
        )
        if is_new:
            work.record(
                "artifact.read",
                subject=f"artifact:{artifact.pk}",
                project_id=artifact.project_id,
                task_id=current.task_id,
                after={"name": artifact.name, "version": artifact.version},
            )
