"""The canary: a job's round trip, so that a worker that is alive but deaf turns `/readyz` red.

Source: DESIGN section 3.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone

from orchestration.models import Canary
from orchestration.services.work import SYSTEM, unit_of_work

CANARY = "workers"
RED_AFTER_SECONDS = 60.0


def answer_canary() -> None:
    """Note that a worker just ran the canary job."""
    with unit_of_work(SYSTEM):
        now = timezone.now()
        Canary.objects.update_or_create(name=CANARY, defaults={"answered_at": now})


def canary_age_seconds() -> float | None:
    """How long ago a worker answered. Units: seconds; None when none ever did."""
    answered: datetime | None = (
        Canary.objects.filter(name=CANARY).values_list("answered_at", flat=True).first()
    )
    return (timezone.now() - answered).total_seconds() if answered is not None else None


def database_answers() -> bool:
    """Whether the database answers a trivial question.

    Errors: DatabaseError when it does not; the caller shows it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        row = cursor.fetchone()
    return bool(row and row[0] == 1)
