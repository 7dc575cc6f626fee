"""Reads of mail: with everything that its shape shows, in a fixed number of queries."""

from __future__ import annotations

from django.db.models import QuerySet

from orchestration.models import Mail


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
