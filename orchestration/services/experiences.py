"""Experiences that the system writes by itself: from archives and from failed attempts.

Each is written once a project: the same lesson again changes nothing. What holds agents' words is
unreviewed until somebody has seen it, though the system wrote it down.
Source: DESIGN section 12 ("Experiences are written from archives and failures").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from orchestration.contracts.archive import ArchiveDocument
from orchestration.models import Experience, Project, Task
from orchestration.rules.archive_words import words_of
from orchestration.services.knowledge import add_experience
from orchestration.services.work import Work
from orchestration.states import ExperienceKind

MAX_BODY = 4_000
MAX_CAUSE = 2_000
_OWN_WORDS = frozenset({"check_failed", "timeout", "lease_expired", "config_error", "environment"})
"""Classes of failure whose cause our own rules and runner wrote."""
_COUNTS_NOTHING = frozenset({"cancelled_by_sir", "guidance"})


def learn_from_archive(work: Work, root: Task, document: ArchiveDocument) -> Experience | None:
    """Write down how a root was done and what went wrong on the way; None when that is known."""
    words = words_of(document.head.language)
    lessons = document.audit.lessons
    lines = [document.problem.solution, *(f"- {one.source}: {one.text}" for one in lessons)]
    body = "\n".join(lines)
    title = words["lesson_title"].format(task=document.head.task, title=document.head.title)
    return _learn(
        work,
        root,
        kind=ExperienceKind.ARCHIVE,
        title=title,
        body=f"{body[:MAX_BODY]}\n\n{words['by_system']}",
        said=f"{document.head.title}\n{body}",
        has_agents_words=bool(lessons),
    )


def learn_from_failure(work: Work, root: Task, cause: Mapping[str, Any]) -> Experience | None:
    """Write down why an attempt of a root failed; None when that is known, or teaches nothing."""
    kind, why = str(cause.get("class", "")), str(cause.get("root_cause", "")).strip()
    if not why or kind in _COUNTS_NOTHING:
        return None
    words = words_of(root.project.language)
    body = words["failure_body"].format(
        attempt=root.attempt, task=str(root), kind=kind, cause=why[:MAX_CAUSE]
    )
    return _learn(
        work,
        root,
        kind=ExperienceKind.FAILURE,
        title=words["failure_title"].format(title=root.title),
        body=f"{body}\n\n{words['by_system']}",
        said=f"{root.title}\n{kind}\n{why}",
        has_agents_words=kind not in _OWN_WORDS,
    )


def _learn(
    work: Work, root: Task, *, kind: ExperienceKind, title: str, body: str, said: str,
    has_agents_words: bool,
) -> Experience | None:  # fmt: skip
    """Write one experience in the system's name, unless it is there already."""
    normal = " ".join(said.split()).casefold()
    digest = hashlib.sha256(f"{kind}\n{normal}".encode()).hexdigest()
    project: Project = root.project
    if Experience.objects.filter(project=project, digest=digest).exists():
        return None
    try:
        with work.as_system(), transaction.atomic():
            return add_experience(
                work, project, title=title, body=body, kind=kind, task=root, digest=digest,
                has_agents_words=has_agents_words,
            )  # fmt: skip
    except IntegrityError:
        # Somebody else learned the same at this moment.
        return None
