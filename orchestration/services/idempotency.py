"""Remember the answers of POST requests that carry a key, so that a repeat does nothing twice.

The row is inserted first, under a unique constraint. The first transaction that the request commits
marks it (`unit_of_work` does, through the actor), so that a crash between the commit and the answer
is known for what it is: done, answer lost. Only what succeeded is kept; a refused request changed
nothing and may be tried again with the same key.
Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from orchestration.errors import Conflict, Invalid
from orchestration.models import IdempotencyRecord
from orchestration.services.work import COMMITTED, Actor, unit_of_work

KEPT_FOR = timedelta(days=1)
GIVEN_UP_AFTER = timedelta(seconds=60)
"""A request that committed nothing in this time is dead: its process was killed."""
FORGET_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """A stored answer. Shape: `body` is the JSON text as it was sent."""

    status: int
    body: str


def begin_request(*, actor: Actor, key: str, digest: str) -> int | Answer:
    """Reserve a key: return the id of its new record, or the answer that it had before.

    Errors: Invalid for the same key with another body; Conflict `in_progress` while the first is
    under way, `answer_lost` when it was carried out and its process died before it answered.
    """
    with unit_of_work(actor):
        try:
            with transaction.atomic():
                return IdempotencyRecord.objects.create(
                    actor=actor.name, key=key, request_digest=digest
                ).pk
        except IntegrityError:
            return _standing(actor.name, key, digest)


def _standing(actor: str, key: str, digest: str) -> int | Answer:
    row = IdempotencyRecord.objects.filter(actor=actor, key=key).first()
    if row is None:
        # Given up between the insert and this look.
        raise _in_progress()
    if row.request_digest != digest:
        raise Invalid(
            "This Idempotency-Key came with another request before.", code="idempotency_mismatch"
        )
    if row.status:
        return Answer(row.status, row.body)
    is_old = timezone.now() - row.created_at > GIVEN_UP_AFTER
    if is_old and row.status == COMMITTED:
        raise Conflict(
            "This request was carried out, but its answer was lost; read the state.",
            code="answer_lost",
        )
    if not is_old:
        raise _in_progress()
    taken = IdempotencyRecord.objects.filter(
        pk=row.pk, status__isnull=True, created_at=row.created_at
    ).update(created_at=timezone.now())
    if not taken:
        raise _in_progress()
    return row.pk


def _in_progress() -> Conflict:
    return Conflict(
        "The first request with this Idempotency-Key is still under way.",
        code="in_progress",
        retry_after=1,
    )


def keep_answer(*, record_id: int, actor: Actor, answer: Answer) -> None:
    """Store the answer of a request that succeeded."""
    with unit_of_work(actor):
        IdempotencyRecord.objects.filter(pk=record_id).update(
            status=answer.status, body=answer.body
        )


def give_up_request(*, record_id: int, actor: Actor) -> None:
    """Free the key of a request that was refused or failed."""
    with unit_of_work(actor):
        IdempotencyRecord.objects.filter(pk=record_id).delete()


def forget_old_answers() -> int:
    """Delete answers that are a day old. Return how many. Shape: at most 1,000 a call."""
    before = timezone.now() - KEPT_FOR
    old = IdempotencyRecord.objects.filter(created_at__lt=before).order_by("created_at")
    ids = list(old.values_list("pk", flat=True)[:FORGET_BATCH])
    if not ids:
        return 0
    with unit_of_work(Actor("system")):
        count, _ = IdempotencyRecord.objects.filter(pk__in=ids).delete()
    return count
