"""The delivery archive of a root, its changelog entry, and the final report of a project.

An archive is written once a root, in the transaction that makes it done, from facts in the database
only; its Markdown and JSON are locked artifacts of the root, and so are the artifacts that its GO
came with. What Sir waived gets a waiver record.
Source: DESIGN section 10, FORMATS ("Delivery archive").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from orchestration.contracts.archive import WITH_EXCEPTIONS, ArchiveDocument
from orchestration.contracts.loop import Verdict
from orchestration.errors import Conflict
from orchestration.models import (
    AuditEvent,
    ChangelogEntry,
    Decision,
    DeliveryArchive,
    Project,
    Task,
    ValidationPackage,
)
from orchestration.models.prepared import Prepared
from orchestration.models.rows import new_row
from orchestration.rules.archive_text import archive_markdown, cell, changelog_entry
from orchestration.rules.archive_words import words_of
from orchestration.rules.markdown_text import code, plain, table
from orchestration.selectors.archive_document import decided_by, read_archive
from orchestration.selectors.archive_facts import ARCHIVE_NAMES
from orchestration.services.artifacts import lock_document
from orchestration.services.changelog import marker_of, write_changelog_on_commit
from orchestration.services.experiences import learn_from_archive
from orchestration.services.work import Work
from orchestration.states import (
    DecisionKind,
    DecisionStatus,
    Route,
    TaskKind,
    TaskStatus,
)

MARKDOWN_NAME, JSON_NAME = sorted(ARCHIVE_NAMES, reverse=True)
ATTACHED = "all_artifacts_from_current_loop"
"""What a package calls the artifacts of its loop; they are kept as attachments of the archive."""


def is_archived(root: Task) -> bool:
    """Whether a root gets an archive: no message, and nothing that was done directly."""
    is_direct = root.route == Route.DIRECT or not (root.is_planned or root.route)
    return root.parent_id is None and root.kind == TaskKind.TASK and not is_direct


def write_archive(work: Work, root: Task) -> DeliveryArchive | None:
    """Write a done root's archive, or its waiver record; None where it gets none.

    Locks: expects the root and its project locked. Call it before the root's failures are reset.
    """
    if not is_archived(root):
        return None
    work.flush()
    number = len(_archives(root.pk)) + 1
    with work.as_system():
        # Before the facts are read: the archive lists what it holds.
        _lock_attachments(work, root)
        document = read_archive(root, number=number, at=work.now)
        archive = _lock(work, root, document)
        _add_entry(work, root, archive, document)
        learn_from_archive(work, root, document)
    work.flush()
    return archive


@Prepared
def _archives(root_id: int) -> QuerySet[Any, Any]:
    return DeliveryArchive.objects.filter(task=root_id).order_by("number").values_list("pk")


def _lock_attachments(work: Work, root: Task) -> None:
    """Lock what the sender of the GO made in this loop, as it was sent."""
    for attempt, verdict, attachments in _newest_package(root.pk):
        sent = attachments.get(ATTACHED)
        if sent and verdict == Verdict.GO and attempt == root.attempt:
            data = json.dumps(sent, ensure_ascii=False, indent=2).encode("utf-8", "replace")
            lock_document(work, root, f"{ATTACHED}.json", data)
            work.flush()


@Prepared
def _newest_package(root_id: int) -> QuerySet[Any, Any]:
    rows = ValidationPackage.objects.filter(task=root_id).order_by("-pk")
    return rows.values_list("attempt", "verdict", "attachments")[:1]


def _lock(work: Work, root: Task, document: ArchiveDocument) -> DeliveryArchive:
    """Lock both documents as artifacts of the root, and note them as its archive."""
    text = archive_markdown(document).encode("utf-8", "replace")
    markdown = lock_document(work, root, MARKDOWN_NAME, text)
    stored = lock_document(work, root, JSON_NAME, document.model_dump_json(indent=2).encode())
    archive = new_row(
        DeliveryArchive,
        project_id=root.project_id,
        task=root,
        number=document.head.version,
        kind=document.head.kind.value,
        has_exceptions=document.audit.state == WITH_EXCEPTIONS,
        markdown=markdown,
        document=stored,
        created_at=work.now,
    )
    work.insert([archive])
    work.record(
        "archive.written",
        subject=f"archive:{archive.pk}",
        project_id=root.project_id,
        task_id=root.pk,
        after={
            "kind": archive.kind,
            "number": archive.number,
            "state": document.audit.state,
            "markdown_sha256": markdown.content_id,
            "json_sha256": stored.content_id,
        },
    )
    return archive


def _add_entry(work: Work, root: Task, archive: DeliveryArchive, document: ArchiveDocument) -> None:
    """Store the changelog entry; the file is written after the commit, where there is one."""
    entry = new_row(
        ChangelogEntry,
        project_id=root.project_id,
        archive=archive,
        title=root.title,
        body=changelog_entry(document, marker=marker_of(archive.pk)),
        created_at=work.now,
        written_at=None,
    )
    if not root.project.workspace:
        entry.written_at = work.now
        entry.problem = "this project has no workspace; the entry is part of the archive"
    else:
        write_changelog_on_commit(root.project_id)
    work.insert([entry])


def archive_of(task: Task) -> DeliveryArchive:
    """The newest archive of a task. Errors: Conflict while none was written."""
    rows = DeliveryArchive.objects.filter(task=task).order_by("number")
    found = rows.select_related("markdown__content", "document__content", "changelog_entry").last()
    if found is None:
        raise Conflict(
            "No archive was written for this task: that happens when a planned root is done.",
            code="no_archive",
        )
    return found


def final_report(project: Project) -> str:
    """Write a project's final report as Markdown: done, waived and cancelled roots, with reasons.

    Expects what the caller changed to be flushed.
    """
    words = words_of(project.language)
    roots = list(
        Task.objects.filter(project=project, parent__isnull=True, kind=TaskKind.TASK.value)
        .order_by("rank", "pk")
        .only("pk", "number", "title", "status", "cancel_reason", "external_key")
    )
    archives = {
        row.task_id: row
        for row in DeliveryArchive.objects.filter(project=project).order_by("number")
    }
    waived = _waivers(project)
    gone = [root for root in roots if root.status == TaskStatus.CANCELLED]
    done = [root for root in roots if root.status == TaskStatus.DONE]
    is_clean = not waived and not any(row.has_exceptions for row in archives.values())
    counts = words["report_counts"].format(
        done=len(done), waived=len([root for root in done if root.pk in waived]),
        cancelled=len(gone),
    )  # fmt: skip
    at = timezone.now().isoformat(timespec="seconds")
    parts = [
        f"# {words['report']}",
        words["report_line"].format(project=project.slug, at=at),
        f"**{'PASSED' if is_clean and not gone else WITH_EXCEPTIONS}**",
        counts,
        _done(words, project, [root for root in done if root.pk not in waived], archives),
        _reasons(words, project, "report_waived", [root for root in done if root.pk in waived],
                 waived),
        _reasons(words, project, "report_cancelled", gone, _cancellations(gone)),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _done(
    words: Mapping[str, str],
    project: Project,
    roots: Sequence[Task],
    archives: Mapping[int, DeliveryArchive],
) -> str:
    rows = []
    for root in roots:
        archive = archives.get(root.pk)
        state = "–"
        if archive is not None:
            state = f"v{archive.number}"
            state += f" · {WITH_EXCEPTIONS}" if archive.has_exceptions else ""
        rows.append((code(_key(project, root)), cell(root.title), state))
    drawn = table((words["task"], words["title"], words["archived"]), rows)
    return f"## {words['report_done']}\n\n{drawn}" if rows else ""


def _reasons(
    words: Mapping[str, str],
    project: Project,
    head: str,
    roots: Sequence[Task],
    said: Mapping[int, tuple[str, str]],
) -> str:
    rows = []
    for root in roots:
        by, why = said.get(root.pk, ("", ""))
        given = plain(why or words["no_reason"], 2000)
        rows.append((code(_key(project, root)), cell(root.title), cell(by), given))
    drawn = table((words["task"], words["title"], words["by"], words["why"]), rows)
    return f"## {words[head]}\n\n{drawn}" if rows else ""


def _key(project: Project, root: Task) -> str:
    return root.external_key or f"{project.key_prefix}-{root.number}"


def _waivers(project: Project) -> dict[int, tuple[str, str]]:
    """Who waived which roots of a project, and why."""
    rows = Decision.objects.filter(
        project=project,
        kind=DecisionKind.MAX_RETRIES.value,
        status=DecisionStatus.DECIDED.value,
        verdict="waive",
        task__isnull=False,
    ).select_related("decided_by")
    return {row.task_id: (decided_by(row), row.reason) for row in rows if row.task_id is not None}


def _cancellations(roots: Sequence[Task]) -> dict[int, tuple[str, str]]:
    """Who cancelled roots, and why, as the trail has it; imported ones say so."""
    found = {root.pk: ("", root.cancel_reason) for root in roots}
    rows = AuditEvent.objects.filter(task__in=list(found), kind="task.cancelled").order_by("pk")
    for task_id, actor, why in rows.values_list("task_id", "actor", "why"):
        if task_id is not None:
            found[task_id] = (actor, why or found[task_id][1])
    return found
