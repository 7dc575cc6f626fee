"""Reads for a project's archive: what was delivered with its roots, newest first.

Source: UI.md section 3 (tabs of a project).
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef

from orchestration.models import DeliveryArchive, Project

ARCHIVES_PAGE = 50


def list_archives(
    project: Project, *, before: int | None = None
) -> tuple[list[DeliveryArchive], int | None]:
    """List a project's archives, newest first, and the cursor of the next page, if there is one.

    Shape: at most 50 rows; of a root its newest archive.
    """
    newer = DeliveryArchive.objects.filter(task=OuterRef("task"), number__gt=OuterRef("number"))
    rows = DeliveryArchive.objects.filter(~Exists(newer), project=project).order_by("-pk")
    rows = rows.select_related("task").only(
        "number", "kind", "has_exceptions", "created_at", "task__number", "task__title"
    )
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: ARCHIVES_PAGE + 1])
    shown = found[:ARCHIVES_PAGE]
    return shown, (shown[-1].pk if len(found) > ARCHIVES_PAGE else None)
