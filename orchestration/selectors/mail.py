"""Reads of mail: with everything that its shape shows, in a fixed number of queries."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from orchestration.models import Mail, MailRecipient, SharedDocument, Task

SHOWN_MAIL = 30


def with_parts(rows: QuerySet[Mail]) -> QuerySet[Mail]:
    """Load what a mail is shown with."""
    return rows.select_related("conversation", "in_reply_to", "handshake").prefetch_related(
        "recipients"
    )


def read_mail(mail_id: int) -> Mail:
    """Read one mail as it is shown."""
    return with_parts(Mail.objects.all()).get(pk=mail_id)


def first_reply(mail: Mail) -> Mail | None:
    """Read the first answer to a mail, or None while there is none."""
    return with_parts(Mail.objects.filter(in_reply_to=mail)).order_by("pk").first()


def unanswered(rows: QuerySet[Mail]) -> QuerySet[Mail]:
    """Narrow mail to what waits for an answer."""
    return rows.filter(expects_reply=True, replies__isnull=True)


def unread_of(name: str) -> QuerySet[MailRecipient]:
    """List what somebody received and has not marked read."""
    return MailRecipient.objects.filter(name=name, read_at__isnull=True)


def _family(task: Task) -> Q:
    """The task itself and, where it is planned, the steps of its plan."""
    return Q(task=task) | Q(task__parent=task) if task.is_planned else Q(task=task)


def list_task_mail(task: Task) -> tuple[list[Mail], int]:
    """List the newest mail about a task and its steps, and count all of it."""
    rows = Mail.objects.filter(_family(task))
    shown = with_parts(rows).select_related("task", "conversation", "handshake")
    return list(shown.order_by("-pk")[:SHOWN_MAIL]), rows.count()


def list_shared_documents(task: Task) -> list[SharedDocument]:
    """List the documents that are written together on a task and its steps."""
    rows = SharedDocument.objects.filter(_family(task)).select_related("task")
    return list(rows.order_by("name", "pk")[:SHOWN_MAIL])
