"""Projects: create, change the policy, pause and resume, wake up for new work.

Source: DESIGN sections 2 and 4 (project machine, rule 8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from orchestration.broadcast import AGENTS_TOPIC
from orchestration.errors import Conflict, Fault, IllegalTransition, Invalid, ProjectSuspended
from orchestration.models import Assignment, Decision, Project, Task
from orchestration.policy import DEFAULT_POLICY, Policy, merge_documents
from orchestration.runner.workspace import allowed_workspace
from orchestration.services.cancelling import cancel_open_tasks
from orchestration.services.clocks import start_clocks, suspend_project
from orchestration.services.control import ask_if_stalled
from orchestration.services.holding import require_not_stopped
from orchestration.services.inbox import withdraw_decision
from orchestration.services.integrity import is_asked
from orchestration.services.judging import judge_waiting
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_project, require_version
from orchestration.services.loop import complete_project_if_done
from orchestration.services.moves import move_project
from orchestration.services.readiness import start_roots
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, locked, unit_of_work
from orchestration.states import (
    ASSIGNMENT_LIVE,
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    ProjectStatus,
)

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?\Z")


def create_project(
    *,
    slug: str,
    actor: Actor,
    name: str = "",
    description: str = "",
    workspace: str | None = None,
    policy: Mapping[str, Any] | None = None,
    extra_roots: tuple[Path, ...] = (),
    language: str = "en",
) -> Project:
    """Create a project. Without a workspace it gets a directory of its own in the first root.

    Errors: Invalid for a bad slug, PolicyInvalid, WorkspaceError, Conflict when the slug is taken.
    """
    if not SLUG.match(slug):
        raise Invalid(
            "a slug is 1 to 60 of a-z, 0-9 and -, neither first nor last a -",
            errors=[{"path": "slug", "message": f"{slug!r} is not a slug"}],
        )
    require_language(language)
    document = dict(policy or {})
    DEFAULT_POLICY.merged(document)
    roots = (*settings.COUNTERSIGN_WORKSPACE_ROOTS, *extra_roots)
    wanted = workspace or str(Path(roots[0]) / slug)
    directory = allowed_workspace(Path(wanted), roots)
    directory.mkdir(parents=True, exist_ok=True)
    with unit_of_work(actor) as work:
        try:
            with transaction.atomic():
                project = Project.objects.create(
                    slug=slug,
                    name=name or slug,
                    description=description,
                    key_prefix=key_prefix(slug),
                    policy_json=json.dumps(document),
                    workspace=str(directory),
                    language=language,
                )
        except IntegrityError as error:
            raise Conflict(f"the project {slug!r} exists already", code="slug_taken") from error
        work.record(
            "project.created",
            subject=f"project:{project.pk}",
            project_id=project.pk,
            after={"slug": slug, "workspace": project.workspace},
        )
    return project


def key_prefix(slug: str) -> str:
    """Make the readable prefix of a project's task keys: its first letters, upper case."""
    letters = re.sub(r"[^a-z0-9]", "", slug)
    return (letters[:8] or "p").upper()


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """What to change of a project; None leaves a part as it is. `policy` is merged in."""

    name: str | None = None
    description: str | None = None
    language: str | None = None
    policy: Mapping[str, Any] | None = None


def update_project(
    *, project_id: int, change: ProjectChange, actor: Actor, seen_version: int | None = None
) -> Project:
    """Change a project's name, description, language or policy, all or none.

    Errors: Invalid for an empty name or an unknown language, PolicyInvalid, Stale when
    `seen_version` is not the stored version; Conflict in safe stop.
    """
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        require_not_stopped(project)
        require_version(project, seen_version)
        _rename(work, project, change)
        if change.policy is not None:
            _merge_policy(work, project, change.policy)
        project.version += 1
        project.updated_at = work.now
        work.touch(project, "version", "updated_at")
        work.hint(f"project:{project.pk}", project.pk, project.version)
    return project


def _rename(work: Work, project: Project, change: ProjectChange) -> None:
    """Change what people read of a project."""
    wanted = {
        name: value
        for name in ("name", "description", "language")
        if (value := getattr(change, name)) is not None and value != getattr(project, name)
    }
    if "name" in wanted and not wanted["name"].strip():
        raise Invalid(
            "A project needs a name.", errors=[Fault(path="name", message="must not be empty")]
        )
    if "language" in wanted:
        require_language(wanted["language"])
    if not wanted:
        return
    before = {name: getattr(project, name) for name in wanted}
    for name, value in wanted.items():
        setattr(project, name, value)
    work.touch(project, *wanted)
    work.record(
        "project.changed",
        subject=f"project:{project.pk}",
        project_id=project.pk,
        before=before,
        after=wanted,
    )


def require_language(language: str) -> None:
    """Refuse a language that nothing is translated into. Errors: Invalid."""
    known = [code for code, _ in settings.LANGUAGES]
    if language not in known:
        message = f"must be one of {', '.join(known)}"
        raise Invalid(f"The language {message}.", errors=[Fault(path="language", message=message)])


def _merge_policy(work: Work, project: Project, patch: Mapping[str, Any]) -> None:
    before = json.loads(project.policy_json)
    after = merge_documents(before, patch)
    Policy.parse(after)
    project.policy_json = json.dumps(after)
    project.policy_version += 1
    work.touch(project, "policy_json", "policy_version")
    work.record(
        "project.policy_changed",
        subject=f"project:{project.pk}",
        project_id=project.pk,
        before=before,
        after=after,
    )


@retry_on_deadlock
def pause_project(
    *, project_id: int, actor: Actor, reason: str = "", seen_version: int | None = None
) -> Project:
    """Suspend a project: leased work may finish, nothing new starts, all clocks stand still.

    Errors: IllegalTransition when it is neither active nor already suspended; Stale.
    """
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        require_version(project, seen_version)
        if not project.is_paused_by_sir:
            project.is_paused_by_sir = True
            work.touch(project, "is_paused_by_sir")
        if project.status != ProjectStatus.SUSPENDED:
            suspend_project(work, project, why=reason or "paused by Sir")
    return project


@retry_on_deadlock
def resume_project(
    *, project_id: int, actor: Actor, reason: str = "", seen_version: int | None = None
) -> Project:
    """Make a suspended project active again and wake the workers; its clocks go on.

    Errors: IllegalTransition when it is not suspended; Stale.
    """
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        require_version(project, seen_version)
        if project.status == ProjectStatus.ACTIVE:
            return project
        if project.status != ProjectStatus.SUSPENDED:
            raise IllegalTransition(
                f"only a suspended project resumes; this one is {project.status}",
                current=project.status,
            )
        project = activate(work, project, why=reason or "resumed")
        ask_if_stalled(work, project)
    return project


@retry_on_deadlock
def archive_project(
    *, project_id: int, actor: Actor, reason: str = "", seen_version: int | None = None
) -> Project:
    """Put a project away for good: its work and its questions end, everything stays readable.

    What has not ended is cancelled. In safe stop the tasks stay as they were found: a move would
    explain a state that nobody wrote.

    Errors: IllegalTransition when it is archived already; Stale.
    Locks: the project, then its unfinished tasks and those with open questions, in id order.
    """
    why = "the project is archived"
    with unit_of_work(actor) as work:
        project = lock_project(project_id)
        require_version(project, seen_version)
        is_intact = project.status != ProjectStatus.SAFE_STOP
        move_project(work, project, ProjectStatus.ARCHIVED, why=reason or "archived by Sir")
        if is_intact:
            cancel_open_tasks(work, project.pk, why=f"{why}: {reason}" if reason else why)
            work.flush()
        live = Q(assignments__status__in=[state.value for state in ASSIGNMENT_LIVE])
        asked = Q(decisions__status=DecisionStatus.OPEN.value)
        rows = Task.objects.filter(live | asked, project=project).distinct()
        ids = sorted(rows.values_list("pk", flat=True))
        list(locked(Task.objects.filter(pk__in=ids)).order_by("pk"))
        cancel_live(work, ids, why=why)
        questions = Decision.objects.filter(project=project, status=DecisionStatus.OPEN.value)
        for row in locked(questions).order_by("pk"):
            withdraw_decision(work, row, why=why)
    return project


def activate(work: Work, project: Project, *, why: str) -> Project:
    """Move a project to active, start its clocks and whatever waits; all done, it is completed.

    Shape: the project as it is then: what waited for its verdict may have stopped or ended it.
    Locks: the project's row.
    """
    move_project(work, project, ProjectStatus.ACTIVE, why=why)
    project.is_paused_by_sir = False
    work.touch(project, "is_paused_by_sir")
    start_clocks(work, project)
    work.flush()
    judge_waiting(work, project.pk)
    work.flush()
    project = lock_project(project.pk)
    start_roots(work, project)
    work.flush()
    complete_project_if_done(work, project)
    work.wake(settings.COUNTERSIGN_CONCURRENCY)
    work.hint(AGENTS_TOPIC, None)
    return project


def require_active(project: Project) -> None:
    """Raise unless work may be claimed in a project.

    Errors: ProjectSuspended naming its state.
    """
    if project.status not in (ProjectStatus.ACTIVE, ProjectStatus.COMPLETED):
        raise ProjectSuspended(
            f"the project is {project.status}", project_status=str(project.status)
        )


def reopen_for_work(work: Work, project: Project) -> None:
    """Let a completed project become active again: new work of any kind came in.

    Errors: Conflict for an archived project, for one in safe stop, and for a completed one in
    which something is wrong: it had no move to safe stop, and starts nothing all the same.
    """
    if project.status == ProjectStatus.COMPLETED:
        if is_asked(project, DecisionKind.SAFE_STOP):
            raise Conflict(
                "something is wrong in this project; Sir is asked first", code="project_safe_stop"
            )
        move_project(work, project, ProjectStatus.ACTIVE, why="new work")
    elif project.status in (ProjectStatus.ARCHIVED, ProjectStatus.SAFE_STOP):
        raise Conflict(f"the project is {project.status}", code=f"project_{project.status}")


def draining_count(project_id: int) -> int:
    """Count the leases that still live in a project that is not active."""
    return Assignment.objects.filter(
        project_id=project_id, status=AssignmentStatus.LEASED.value
    ).count()


def task_counts(project_id: int) -> Mapping[str, int]:
    """Count a project's root tasks by state."""
    counts: dict[str, int] = {}
    rows = Task.objects.filter(project_id=project_id, parent__isnull=True, kind="task")
    for status in rows.values_list("status", flat=True):
        counts[status] = counts.get(status, 0) + 1
    return counts
