"""Find tasks by key or words, over all projects that somebody may see."""

from __future__ import annotations

import re

from django.db.models import Q

from orchestration.access import Viewer, visible_projects
from orchestration.models import Task

KEY = re.compile(r"([A-Za-z0-9]{1,12})-([0-9]{1,9})(?:\s*/\s*(\S{1,64}))?\Z")
MAX_FOUND = 50


def is_key(text: str) -> bool:
    """Whether a text has the form of a task's key: `PAY-12`, or `PAY-12 / 2b` for a step."""
    return KEY.match(text) is not None


def find_by_key(viewer: Viewer, text: str) -> Task | None:
    """Find the task of a key; with a step key behind it, that step."""
    match = KEY.match(text)
    if match is None:
        return None
    prefix, number, step = match.groups()
    rows = Task.objects.select_related("project", "root").filter(
        project__in=visible_projects(viewer), project__key_prefix__iexact=prefix
    )
    if step is None:
        return rows.filter(number=int(number)).first()
    return rows.filter(root__number=int(number), step_key__iexact=step, is_superseded=False).first()


def find_tasks(viewer: Viewer, text: str) -> list[Task]:
    """List the newest tasks whose title, text or outside key holds some words."""
    rows = Task.objects.select_related("project", "root", "parent__parent").filter(
        Q(title__icontains=text) | Q(description__icontains=text) | Q(external_key__iexact=text),
        project__in=visible_projects(viewer),
        is_superseded=False,
    )
    return list(rows.order_by("-pk")[:MAX_FOUND])
