"""One sealed event as a line of the audit trail: who did what to what, before, after, why.

Source: UI.md section 5.8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.engine_texts import engine_words, who_words
from dashboard.event_words import kind_note
from dashboard.places import address, task_key, task_url
from orchestration.models import AuditSeal


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line. Shape: `before` and `after` are pretty JSON, empty where there is none."""

    position: int
    at: datetime
    kind: str
    kind_note: str
    actor: str
    subject: str
    subject_url: str
    project: str
    why: str
    before: str
    after: str
    request_id: str
    digest: str


def audit_line(seal: AuditSeal) -> AuditLine:
    """Build the line of one seal with its event."""
    event = seal.event
    subject, url = event.subject, ""
    if event.task is not None and event.project is not None:
        key = task_key(event.task, event.project)
        path = event.task.step_key if event.task.parent_id else ""
        subject = f"{key} / {path}" if path else key
        url = task_url(event.task, event.project)
    if event.subject.startswith("decision:"):
        url = address("decision", event.subject.partition(":")[2])
    return AuditLine(
        position=seal.position,
        at=event.at,
        kind=event.kind,
        kind_note=kind_note(event.kind),
        actor=who_words(event.actor),
        subject=subject,
        subject_url=url,
        project=event.project.name if event.project is not None else "",
        why=engine_words(event.why),
        before=_pretty(event.before),
        after=_pretty(event.after),
        request_id=event.request_id,
        digest=seal.hash,
    )


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value is not None else ""


@dataclass(frozen=True, slots=True)
class ValueLine:
    """One value of an event. Shape: empty where it was not there before, or is not after."""

    path: str
    before: str
    after: str
    is_changed: bool


def value_lines(before: Any, after: Any) -> list[ValueLine]:
    """Lay the values of an event out side by side, the changed ones first."""
    old, new = _flat(before), _flat(after)
    lines = [
        ValueLine(path, old.get(path, ""), new.get(path, ""), old.get(path) != new.get(path))
        for path in dict.fromkeys([*old, *new])
    ]
    return sorted(lines, key=lambda line: not line.is_changed)


def _flat(value: Any, above: str = "") -> dict[str, str]:
    if isinstance(value, dict) and value:
        found: dict[str, str] = {}
        for key, held in value.items():
            found |= _flat(held, f"{above}.{key}" if above else str(key))
        return found
    if value is None and not above:
        return {}
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {above: said}
