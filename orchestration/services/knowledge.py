"""Write and review what is known: experiences and wiki pages, each with its search terms.

What Sir or the system writes counts at once; what an agent writes is unreviewed until Sir or a
reviewer, who is not its author, accepts it. A rejected one stays readable and is found no more.
Source: DESIGN section 12 ("Experiences are written from archives and failures").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from orchestration.errors import Conflict, Fault, Forbidden, Invalid, NotFound, Stale
from orchestration.models import (
    Agent,
    Experience,
    KnowledgeTerm,
    Project,
    Task,
    WikiPage,
    WikiVersion,
)
from orchestration.models.inserts import insert_states
from orchestration.rules.search_terms import document_terms
from orchestration.services.holding import lock_writable_project
from orchestration.services.work import Actor, Work, locked, unit_of_work
from orchestration.states import ExperienceKind, KnowledgeStatus

PATH_STEPS = frozenset({".", ".."})
"""Browsers take these out of an address: nobody could read such a page."""

KNOWLEDGE_TOPIC = "knowledge"
_UNREVIEWED: dict[str, object] = {
    "status": KnowledgeStatus.UNREVIEWED.value, "reviewed_by": "", "reviewed_at": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageText:
    """What somebody writes on a page. `title` and `summary` empty: as they stand."""

    body: str
    title: str = ""
    summary: str = ""


def write_experience(
    *,
    project: Project,
    title: str,
    body: str,
    actor: Actor,
    agent: Agent | None = None,
    task: Task | None = None,
) -> Experience:
    """Write down an experience; an agent's is unreviewed.

    Errors: Conflict for a project that is archived or in safe stop.
    Locks: the project.
    """
    with unit_of_work(actor) as work:
        lock_writable_project(project.pk)
        return add_experience(
            work, project, title=title, body=body, kind=ExperienceKind.NOTE, agent=agent, task=task
        )


def add_experience(
    work: Work,
    project: Project,
    *,
    title: str,
    body: str,
    kind: ExperienceKind,
    agent: Agent | None = None,
    task: Task | None = None,
    digest: str = "",
    has_agents_words: bool = False,
) -> Experience:
    """Store an experience with its terms inside the caller's transaction.

    `digest` names what the system writes by itself; `has_agents_words` leaves it unreviewed.
    """
    row = Experience.objects.create(
        project=project,
        task=task,
        kind=kind.value,
        title=title[:300],
        body=body,
        digest=digest,
        author=work.actor.name,
        agent=agent,
        created_at=work.now,
        **(_UNREVIEWED if has_agents_words else _first_status(work)),
    )
    _index(row, title=title, text=body)
    _record(work, row, "experience.written", {"kind": kind.value, "title": row.title})
    return row


def write_page(
    *,
    project: Project,
    name: str,
    text: PageText,
    actor: Actor,
    agent: Agent | None = None,
    seen_version: int | None = None,
) -> WikiPage:
    """Write a wiki page: a new one, or a new version of the one of this name.

    Errors: Stale when `seen_version` is not the stored version; Conflict when two write the same
    new name at once, and for a project that is archived or in safe stop; Invalid for a new name
    that is a step of a path.
    Locks: the project, then the page.
    """
    with unit_of_work(actor) as work:
        lock_writable_project(project.pk)
        page: WikiPage | None = locked(WikiPage.objects.filter(project=project, name=name)).first()
        standing = page.version if page is not None else 0
        if seen_version is not None and seen_version != standing:
            raise Stale(f"seen version {seen_version}, stored {standing}", version=standing)
        page = (
            _change_page(work, page, text, agent)
            if page
            else _new_page(work, project, name, text, agent)
        )
        WikiVersion.objects.create(
            page=page,
            number=page.version,
            title=page.title,
            summary=page.summary,
            body=page.body,
            author=work.actor.name,
            created_at=work.now,
        )
        _index(page, title=f"{page.name} {page.title}", text=f"{page.summary}\n{page.body}")
        _record(
            work, page, "wiki.written",
            {"name": page.name, "title": page.title, "version": page.version},
        )  # fmt: skip
    return page


def _new_page(
    work: Work, project: Project, name: str, text: PageText, agent: Agent | None
) -> WikiPage:
    if name in PATH_STEPS:
        message = f"{name!r} is not a name of a page"
        raise Invalid(f"{message}.", errors=[Fault(path="name", message=message)])
    try:
        with transaction.atomic():
            return WikiPage.objects.create(
                project=project,
                name=name,
                title=text.title or name,
                summary=text.summary,
                body=text.body,
                author=work.actor.name,
                agent=agent,
                created_at=work.now,
                updated_at=work.now,
                **_first_status(work),
            )
    except IntegrityError as error:
        raise Conflict(f"the page {name!r} was just written", code="page_taken") from error


def _change_page(work: Work, page: WikiPage, text: PageText, agent: Agent | None) -> WikiPage:
    page.title, page.summary = text.title or page.title, text.summary or page.summary
    page.body, page.author, page.agent = text.body, work.actor.name, agent
    page.version += 1
    page.updated_at = work.now
    for name, value in _first_status(work).items():
        setattr(page, name, value)
    page.save()
    return page


def _first_status(work: Work) -> dict[str, object]:
    """What a text is worth when it is written: an agent's waits for somebody's eyes."""
    if work.actor.is_agent:
        return _UNREVIEWED
    return {
        "status": KnowledgeStatus.ACCEPTED.value,
        "reviewed_by": work.actor.name,
        "reviewed_at": work.now,
    }


def review_experience(
    *, experience_id: int, verdict: KnowledgeStatus, actor: Actor, reason: str = "",
    seen_version: int | None = None,
) -> Experience:  # fmt: skip
    """Accept or reject an experience; the same verdict again changes nothing.

    Errors: NotFound; Forbidden for its own author; Stale; Conflict as `write_experience`.
    Locks: the project, then the experience.
    """
    with unit_of_work(actor) as work:
        rows = Experience.objects.filter(pk=experience_id)
        _lock_home(rows)
        row = locked(rows).first()
        if row is None:
            raise NotFound("There is no such experience.")
        _review(work, row, "experience", verdict, reason, seen_version)
        found: Experience = row
    return found


def review_page(
    *, page_id: int, verdict: KnowledgeStatus, actor: Actor, reason: str = "",
    seen_version: int | None = None,
) -> WikiPage:  # fmt: skip
    """Accept or reject the newest version of a page; the same verdict again changes nothing.

    Errors: NotFound; Forbidden for its author; Stale when another version was seen; Conflict as
    `write_page`.
    Locks: the project, then the page.
    """
    with unit_of_work(actor) as work:
        rows = WikiPage.objects.filter(pk=page_id)
        _lock_home(rows)
        row = locked(rows).first()
        if row is None:
            raise NotFound("There is no such page.")
        _review(work, row, "wiki", verdict, reason, seen_version)
        found: WikiPage = row
    return found


def _lock_home(rows: QuerySet[Any]) -> None:
    """Lock the project of what is reviewed; the caller refuses what is not there."""
    project_id = rows.values_list("project_id", flat=True).first()
    if project_id is not None:
        lock_writable_project(project_id)


def _review(
    work: Work,
    row: Experience | WikiPage,
    noun: str,
    verdict: KnowledgeStatus,
    reason: str,
    seen_version: int | None,
) -> None:
    if seen_version is not None and seen_version != row.version:
        raise Stale(f"seen version {seen_version}, stored {row.version}", version=row.version)
    if work.actor.is_agent and row.author == work.actor.name:
        raise Forbidden("Nobody reviews their own words.", code="own_words")
    before = row.status
    if before == verdict:
        return
    row.status = verdict.value
    row.reviewed_by, row.reviewed_at = work.actor.name, work.now
    work.touch(row, "status", "reviewed_by", "reviewed_at")
    if verdict is KnowledgeStatus.REJECTED:
        row.terms.all().delete()
    elif before == KnowledgeStatus.REJECTED:
        is_page = isinstance(row, WikiPage)
        title = f"{row.name} {row.title}" if isinstance(row, WikiPage) else row.title
        summary = f"{row.summary}\n" if isinstance(row, WikiPage) and is_page else ""
        _index(row, title=title, text=f"{summary}{row.body}")
    _record(work, row, f"{noun}.{verdict.value}", {"version": row.version}, why=reason, was=before)


def _index(row: Experience | WikiPage, *, title: str, text: str) -> None:
    """Write the terms that find a document, in place of those it had."""
    is_page = isinstance(row, WikiPage)
    if is_page:
        row.terms.all().delete()
    insert_states(
        KnowledgeTerm,
        [
            {
                "project_id": row.project_id,
                "experience_id": None if is_page else row.pk,
                "page_id": row.pk if is_page else None,
                "term": term,
                "weight": weight,
            }
            for term, weight in document_terms(title, text).items()
        ],
    )


def _record(
    work: Work,
    row: Experience | WikiPage,
    kind: str,
    facts: dict[str, object],
    *,
    why: str = "",
    was: str = "",
) -> None:
    noun = "wiki_page" if isinstance(row, WikiPage) else "experience"
    work.record(
        kind,
        subject=f"{noun}:{row.pk}",
        project_id=row.project_id,
        task_id=row.task_id if isinstance(row, Experience) else None,
        before={"status": was} if was else None,
        after={"status": row.status, **facts},
        why=why,
    )
    work.hint(f"{KNOWLEDGE_TOPIC}:{row.project_id}", row.project_id, row.version)
