"""Co-creation: a document on a task that several agents write, each on the version it read.

Every version is kept with who wrote it; who wrote on an old one is refused and reads again.
Source: DESIGN section 12 ("Modes"), CASES A-28.
"""

from __future__ import annotations

import hashlib

from django.db import IntegrityError, transaction

from orchestration.contracts.mail import SharedDocumentInput
from orchestration.errors import Fault, Invalid, NotFound, Stale
from orchestration.models import SharedDocument, SharedDocumentVersion, Task
from orchestration.services.holding import require_not_stopped
from orchestration.services.lookups import lock_task
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, locked, unit_of_work

MAX_NAME_CHARACTERS = 200
MAX_DOCUMENTS = 100
"""Shared documents of one task."""


@retry_on_deadlock
def write_shared_document(
    *,
    task_id: int,
    name: str,
    document: SharedDocumentInput,
    seen_version: int | None,
    actor: Actor,
) -> tuple[SharedDocumentVersion, bool]:
    """Write the next version of a document, or its first. Return it and whether it is new.

    The repeat of one's own newest version changes nothing. `seen_version` None or 0 means that the
    document is not there yet.
    Errors: Stale with the stored version; Invalid for a name or a document too many.
    Locks: the task, then the document.
    """
    _require_name(name)
    with unit_of_work(actor) as work:
        task = lock_task(task_id)
        require_not_stopped(task.project)
        row = locked(SharedDocument.objects.filter(task=task, name=name)).first()
        seen = seen_version or 0
        stored = row.version if row is not None else 0
        if stored != seen:
            repeated = _own_repeat(row, document, seen, actor)
            if repeated is not None:
                return repeated, False
            raise Stale(f"the document is at version {stored}", version=stored)
        if row is None:
            row = _create(work, task, name)
        else:
            row.version += 1
            row.updated_at = work.now
            work.touch(row, "version", "updated_at")
        return _add_version(work, task, row, document), True


def _require_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        message = f"must be 1 to {MAX_NAME_CHARACTERS} printable characters"
        raise Invalid(f"The name {message}.", errors=[Fault(path="name", message=message)])


def _own_repeat(
    row: SharedDocument | None, document: SharedDocumentInput, seen: int, actor: Actor
) -> SharedDocumentVersion | None:
    """Find the newest version where it is the caller's own, written on what it saw, word for word.

    Its answer was lost on the way.
    """
    if row is None or row.version != seen + 1:
        return None
    newest: SharedDocumentVersion = row.versions.get(version=row.version)
    same = newest.author == actor.name and newest.sha256 == _digest(document.content)
    return newest if same else None


def _create(work: Work, task: Task, name: str) -> SharedDocument:
    if task.shared_documents.count() >= MAX_DOCUMENTS:
        raise Invalid(f"A task has at most {MAX_DOCUMENTS} shared documents.")
    try:
        with transaction.atomic():
            return SharedDocument.objects.create(
                task=task, name=name, created_at=work.now, updated_at=work.now
            )
    except IntegrityError:
        raise Stale("the document is there already", version=1) from None


def _add_version(
    work: Work, task: Task, row: SharedDocument, document: SharedDocumentInput
) -> SharedDocumentVersion:
    version = SharedDocumentVersion.objects.create(
        document=row,
        version=row.version,
        content=document.content,
        sha256=_digest(document.content),
        author=work.actor.name,
        change_note=document.change_note,
        created_at=work.now,
    )
    work.record(
        "shared_document.written",
        subject=f"shared_document:{row.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"name": row.name, "version": row.version, "sha256": version.sha256},
        why=document.change_note,
    )
    work.hint(f"task:{task.pk}", task.project_id)
    work.hint(f"project:{task.project_id}", task.project_id)
    return version


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def read_version(task: Task, name: str, number: int | None = None) -> SharedDocumentVersion:
    """Read a version of a document, the newest unless one is named. Errors: NotFound."""
    rows = SharedDocumentVersion.objects.select_related("document").filter(
        document__task=task, document__name=name
    )
    if number is not None:
        rows = rows.filter(version=number)
    found = rows.order_by("-version").first()
    if found is None:
        raise NotFound("There is no such shared document.")
    return found
