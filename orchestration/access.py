"""The only door from an outside id to an object: what somebody may see, and how to find it.

What is hidden and what does not exist answer alike: NotFound. Whether somebody may *do* a thing to
what is seen is asked elsewhere.
Source: DESIGN sections 14 and 16, STYLE section 9 (`visible_x`, `access_x`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Model, Q, QuerySet

from orchestration.errors import NotFound
from orchestration.models import (
    Agent,
    Artifact,
    Assignment,
    Decision,
    Experience,
    Mail,
    MailRecipient,
    Project,
    Task,
    ValidationPackage,
    WikiPage,
)
from orchestration.models.rows import fetch_rows
from orchestration.models.statements import agent_project_ids, group_names
from orchestration.states import AssignmentStatus, Seat

Viewer = Agent | AbstractBaseUser | AnonymousUser
M = TypeVar("M", bound=Model)
ROW_ID = re.compile(r"[0-9]{1,18}\Z")
"""Ids as they come from outside; longer ones fit no column."""


class HumanRole(StrEnum):
    """The two roles of people: groups of this name."""

    SIR = "sir"
    VIEWER = "viewer"


def role_of(viewer: Viewer) -> HumanRole | None:
    """Return a person's role, the higher of two; None for agents and for people without one."""
    if not isinstance(viewer, User) or not viewer.is_active:
        return None
    known: HumanRole | str | None = getattr(viewer, "_countersign_role", "")
    if known == "":
        names = group_names(viewer.pk)
        known = next((role for role in HumanRole if role.value in names), None)
        viewer._countersign_role = known  # type: ignore[attr-defined]  # once a request
    return HumanRole(known) if known is not None else None


def row_id(name: str) -> int | None:
    """Read an outside id, or None when it cannot be one."""
    return int(name) if ROW_ID.match(name) else None


def project_ids_of(agent: Agent) -> frozenset[int] | None:
    """Return the projects an agent is limited to, or None when it is not limited."""
    known: frozenset[int] | None = getattr(agent, "_countersign_projects", None)
    if known is None:
        known = frozenset(agent_project_ids(agent.pk))
        agent._countersign_projects = known  # type: ignore[attr-defined]  # once a request
    return known or None


def visible_projects(viewer: Viewer) -> QuerySet[Project]:
    """List the projects somebody may see: people with a role all, an agent its own."""
    rows = Project.objects.all()
    if isinstance(viewer, Agent):
        limited = project_ids_of(viewer)
        return rows if limited is None else rows.filter(pk__in=limited)
    return rows if role_of(viewer) is not None else rows.none()


def access_project(viewer: Viewer, name: str) -> Project:
    """Find a project by id or slug. An id wins over a slug that looks like one.

    Errors: NotFound.
    """
    found_id = row_id(name)
    found = fetch_rows(Project, "id = %s", [found_id]) if found_id is not None else []
    found += fetch_rows(Project, "slug = %s", [name])
    seen = next((row for row in found if may_see_project(viewer, row.pk)), None)
    if seen is None:
        raise NotFound("There is no such project.")
    return seen


def may_see_project(viewer: Viewer, project_id: int) -> bool:
    """Whether a project is among those that somebody may see."""
    if isinstance(viewer, Agent):
        limited = project_ids_of(viewer)
        return limited is None or project_id in limited
    return role_of(viewer) is not None


def access_task(project: Project, name: str) -> Task:
    """Find a task of a visible project by id, readable key (`DEMO-12`) or a root's outside key.

    Errors: NotFound.
    """
    found_id = row_id(name)
    known = [found_id, project.pk]
    own = fetch_rows(Task, "id = %s AND project_id = %s", known) if found_id is not None else []
    found = own[0] if own else None
    rows = Task.objects.select_related("assignee").filter(project=project)
    if found is None:
        prefix, _, number_text = name.rpartition("-")
        number = row_id(number_text)
        if prefix.upper() == project.key_prefix and number is not None:
            found = rows.filter(number=number).first()
    if found is None and name:
        found = rows.filter(external_key=name, parent__isnull=True).first()
    if found is None:
        raise NotFound("There is no such task.")
    found.project = project
    return found


def access_assignment(viewer: Viewer, name: str) -> Assignment:
    """Find an assignment in a visible project. Errors: NotFound."""
    rows = Assignment.objects.select_related("task", "project", "agent")
    return _found(rows.filter(project__in=visible_projects(viewer)), name, "assignment")


def access_artifact(viewer: Viewer, name: str) -> Artifact:
    """Find a locked artifact in a visible project. Errors: NotFound."""
    rows = Artifact.objects.select_related("task", "project")
    return _found(rows.filter(project__in=visible_projects(viewer)), name, "artifact")


def access_package(task: Task, name: str) -> ValidationPackage:
    """Find a validation package of a visible task. Errors: NotFound."""
    return _found(ValidationPackage.objects.filter(task=task), name, "package")


def access_experience(project: Project, name: str) -> Experience:
    """Find an experience of a visible project. Errors: NotFound."""
    return _found(Experience.objects.filter(project=project), name, "experience")


def access_page(project: Project, name: str) -> WikiPage:
    """Find a wiki page of a visible project by its name, else by id. Errors: NotFound."""
    rows = WikiPage.objects.filter(project=project)
    return rows.filter(name=name).first() or _found(rows, name, "page")


def visible_decisions(viewer: Viewer) -> QuerySet[Decision]:
    """List the inbox rows somebody may see. Agents see none: nobody acts for a human."""
    if role_of(viewer) is None:
        return Decision.objects.none()
    return Decision.objects.all()


def access_decision(viewer: Viewer, name: str) -> Decision:
    """Find a row of the inbox. Errors: NotFound."""
    rows = visible_decisions(viewer).select_related("project", "task", "decided_by", "defect")
    return _found(rows, name, "decision")


def visible_mail(viewer: Viewer) -> QuerySet[Mail]:
    """List the mail somebody may read: people with a role all, an agent its own."""
    rows = Mail.objects.filter(project__in=visible_projects(viewer))
    if not isinstance(viewer, Agent):
        return rows
    received = MailRecipient.objects.filter(agent=viewer).values("mail")
    return rows.filter(Q(sender_agent=viewer) | Q(pk__in=received))


def access_mail(viewer: Viewer, message_id: str, project: Project | None = None) -> Mail:
    """Find a mail by its message_id; an auditor finds the intent that it was asked about.

    Errors: NotFound, also where an id means mail of several projects and `project` is none of them.
    """
    rows = Mail.objects.select_related("conversation", "project", "task", "sender_agent")
    rows = rows.filter(message_id=message_id)
    seen = rows.filter(pk__in=visible_mail(viewer).values("pk"))
    several = list(seen[:2])
    if len(several) > 1:
        several = list(seen.filter(project=project)) if project is not None else []
    found = several[0] if several else None
    if found is None and isinstance(viewer, Agent):
        asked = Assignment.objects.filter(
            agent=viewer,
            seat=Seat.AUDITOR.value,
            status=AssignmentStatus.LEASED.value,
            input__message_id=message_id,
        )
        found = rows.filter(project__in=asked.values("project")).first()
    if found is None:
        raise NotFound("There is no such mail.")
    return found


def access_any_task(viewer: Viewer, name: str) -> Task:
    """Find a task by id or readable key among everything that somebody may see.

    Errors: NotFound, also where a key means several tasks.
    """
    rows = Task.objects.select_related("project", "assignee").filter(
        project__in=visible_projects(viewer)
    )
    found_id = row_id(name)
    if found_id is not None:
        found = rows.filter(pk=found_id).first()
    else:
        prefix, _, number_text = name.rpartition("-")
        number = row_id(number_text) if prefix else None
        several: list[Task] = []
        if number is not None:
            several = list(rows.filter(project__key_prefix__iexact=prefix, number=number)[:2])
        found = several[0] if len(several) == 1 else None
    if found is None:
        raise NotFound("There is no such task.")
    return found


def access_decision_id(viewer: Viewer, name: str) -> int:
    """Return the id that names a row of the inbox, without reading it. Errors: NotFound."""
    found_id = row_id(name)
    if found_id is None or role_of(viewer) is None:
        raise NotFound("There is no such decision.")
    return found_id


def _found(rows: QuerySet[M], name: str, noun: str) -> M:
    found_id = row_id(name)
    found = rows.filter(pk=found_id).first() if found_id is not None else None
    if found is None:
        raise NotFound(f"There is no such {noun}.")
    return found
