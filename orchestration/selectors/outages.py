"""Steps whose planned checks met an outage: they passed their review, and nothing was checked."""

from __future__ import annotations

from django.db.models import F

from orchestration.models import Verification
from orchestration.states import LayerOutcome


def unchecked_steps(parent_id: int) -> frozenset[int]:
    """List the steps of a plan that have a planned check which could not run for an outage."""
    rows = Verification.objects.filter(
        task__parent=parent_id,
        attempt=F("task__attempt"),
        layer="L3",
        outcome=LayerOutcome.NOT_POSSIBLE.value,
        finding_key__startswith="verify:",
    )
    return frozenset(rows.values_list("task_id", flat=True))
