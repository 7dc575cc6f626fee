"""Verify the audit trail: `manage.py verify_audit` recomputes the whole chain."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from orchestration.management.operator import OperatorCommand
from orchestration.models import AuditEvent
from orchestration.services.audit import verify_chain


class Command(OperatorCommand):
    """Recompute every seal and name the first event that does not fit."""

    help = "Verify the audit trail; exit code 1 and the first broken event when it does not hold."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Verify. Errors: CommandError naming the first broken event."""
        count, fault = verify_chain()
        if fault is not None:
            raise CommandError(f"{_place(fault.position, fault.event_id)}: {fault.problem}")
        waiting = AuditEvent.objects.filter(seal__isnull=True).count()
        rest = f"; {waiting} newer wait for their seal" if waiting else ""
        self.stdout.write(f"The audit trail holds: {count} events verified{rest}.")


def _place(position: int, event_id: int | None) -> str:
    if event_id is None:
        return f"The audit trail is broken at position {position}"
    event = AuditEvent.objects.filter(pk=event_id).first()
    what = f" ({event.kind} of {event.subject})" if event is not None else ""
    return f"The audit trail is broken at position {position}, event {event_id}{what}"
