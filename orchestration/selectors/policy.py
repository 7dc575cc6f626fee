"""Reads for the policy page: who changed what, and the texts that a changed policy is tried on.

Source: UI.md section 5.8 ("Policy").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef
from django.db.models.functions import Left

from orchestration.models import Assessment, AuditEvent, Project, Task
from orchestration.policy import Policy
from orchestration.rules.foresight import foresee

CHANGE_KIND = "project.policy_changed"
CHANGES_READ = 200
TRIED_MESSAGES = 100
TRIED_CHARACTERS = 20_000
"""Characters of a message that are tried; a longer text is over every sensible threshold anyway."""


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed a setting last, and when."""

    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Rerouted:
    """A message that would go elsewhere. Shape: `before` and `after` as `Foresight.goes`."""

    task: Task
    text: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The newest messages of a project under another policy. `tried` is how many there were."""

    tried: int
    rerouted: Sequence[Rerouted]


def last_changes(project: Project) -> dict[str, Change]:
    """Find who changed each setting last. Shape: by dotted path; of the newest 200 changes."""
    rows = AuditEvent.objects.filter(project=project, kind=CHANGE_KIND).order_by("-pk")
    found: dict[str, Change] = {}
    for event in rows[:CHANGES_READ]:
        before, after = flat(event.before or {}), flat(event.after or {})
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                found.setdefault(path, Change(event.actor, event.at))
    return found


def flat(document: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Lay a policy document out by dotted paths of two parts: `thresholds.max_retries`."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if not above and isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def try_policy(project: Project, wanted: Policy) -> Trial:
    """Route the newest 100 messages by the standing policy and by another; nothing is stored."""
    rows = recent_messages(project)
    standing = project.policy
    rerouted = []
    for task in rows:
        text: str = getattr(task, "tried_text", "") or task.title
        before, after = foresee(text, standing).goes, foresee(text, wanted).goes
        if before != after:
            rerouted.append(Rerouted(task, text, before, after))
    return Trial(len(rows), rerouted)


def recent_messages(project: Project) -> list[Task]:
    """The newest roots that came in through S0, newest first, each with `tried_text`."""
    filtered = Assessment.objects.filter(task=OuterRef("pk"), stage="S0")
    return list(
        Task.objects.filter(Exists(filtered), project=project, parent__isnull=True)
        .annotate(tried_text=Left("description", TRIED_CHARACTERS))
        .defer("description", "specification")
        .order_by("-pk")[:TRIED_MESSAGES]
    )
