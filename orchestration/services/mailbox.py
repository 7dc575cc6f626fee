"""What a reader has read of its mail.

A mark is the reader's own; the first one stands, and the same again changes nothing.
Source: DESIGN section 12 ("Mail").
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.models import MailRecipient
from orchestration.services.holding import lock_writable_project
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, locked, unit_of_work


@retry_on_deadlock
def mark_mail_read(*, received: Sequence[int], actor: Actor) -> int:
    """Mark received mail as read. Return how much of it was unread.

    Shape: `received` are ids of recipients' rows, of this reader.
    Errors: Conflict when unread mail is of a project that is archived or in safe stop.
    Locks: the projects, then the rows, in id order.
    """
    unread = MailRecipient.objects.filter(pk__in=received, read_at__isnull=True)
    with unit_of_work(actor) as work:
        for project_id in (
            unread.order_by("mail__project").values_list("mail__project", flat=True).distinct()
        ):
            lock_writable_project(project_id)
        rows = locked(unread.select_related("mail"))
        fresh = list(rows.order_by("pk"))
        MailRecipient.objects.filter(pk__in=[row.pk for row in fresh]).update(read_at=work.now)
        _record(work, fresh)
    return len(fresh)


def _record(work: Work, fresh: Sequence[MailRecipient]) -> None:
    """Put it in the trail: who knew of which mail, and when."""
    by_project: dict[int, list[str]] = {}
    for row in fresh:
        by_project.setdefault(row.mail.project_id, []).append(str(row.mail_id))
    for project_id, ids in by_project.items():
        work.record(
            "mail.read",
            subject=f"mailbox:{work.actor.name}",
            project_id=project_id,
            after={"mail": ids},
        )
