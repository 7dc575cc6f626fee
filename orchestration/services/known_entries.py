"""Find the entries of a master list that are tasks already: a list sent again is no fault.

An entry says only what it names; a field left out says nothing, nor does the rank of what is in
progress. It is the same when all of it stands in the list as it is, or when its status and reason
are those that it was imported with: a loop repeats what it sent when the answer was lost.
Source: DESIGN section 10 ("A faulty import"); STYLE section 3 ("a repeat is harmless").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.contracts.master_list import MasterEntry
from orchestration.errors import Fault
from orchestration.models import AuditEvent, Project, Task
from orchestration.selectors.tasks import IMPORTED_REASON, master_list
from orchestration.services.intake import find_root
from orchestration.services.integrity_looks import IMPORTED_KIND
from orchestration.states import MASTER_VIEW, TaskStatus


def known_entries(
    project: Project, entries: Mapping[str, MasterEntry]
) -> tuple[dict[str, Task], list[Fault]]:
    """Find the tasks that entries name by external or readable key.

    Shape: by the entries' keys; a fault for each entry that says something else than is stored.
    """
    found = _roots_named(project, entries)
    if not found:
        return {}, []
    listed = {
        name: MasterEntry.model_validate(entry) for name, entry in master_list(project).items()
    }
    sent = {pk: (said, why) for pk, said, why in _imported(found)}
    faults = []
    for key, task in found.items():
        stored = listed.get(task.external_key or str(task))
        told = ["kind"] if stored is None else _differing(task, stored, entries[key], key)
        if told and sent.get(task.pk) == (entries[key].status, entries[key].reason):
            told = [name for name in told if name not in ("status", "reason")]
        if told:
            message = f"is the key of a task already, with another {', '.join(told)}"
            faults.append(Fault(path=key, message=message))
    return found, faults


def _roots_named(project: Project, entries: Mapping[str, MasterEntry]) -> dict[str, Task]:
    rows = Task.objects.filter(project=project, parent__isnull=True).select_related("project")
    by_key = {row.external_key: row for row in rows.filter(external_key__in=list(entries))}
    numbers = [int(key.rpartition("-")[2]) for key in entries if _is_readable(project, key)]
    for row in rows.filter(number__in=numbers):
        by_key.setdefault(str(row), row)
    return {key: by_key[key] for key in entries if key in by_key}


def _is_readable(project: Project, key: str) -> bool:
    prefix, _, number = key.rpartition("-")
    return (
        prefix == project.key_prefix and number.isascii() and number.isdigit() and len(number) < 10
    )


def _imported(found: Mapping[str, Task]) -> list[tuple[int, str, str]]:
    """What the tasks were imported with. Shape: task id, master status, reason."""
    rows = AuditEvent.objects.filter(
        task__in=[task.pk for task in found.values()], kind=IMPORTED_KIND
    )
    return list(rows.values_list("task_id", "after__master_status", "why"))


def _differing(task: Task, stored: MasterEntry, entry: MasterEntry, key: str) -> list[str]:
    """Name what an entry says otherwise than it is stored."""
    held: dict[str, Any] = {
        "status": stored.status,
        "reason": stored.reason,
        "title": task.title,
        "description": task.description,
        "depends_on": set(stored.depends_on),
        "spec_id": task.spec_id,
        "rank": task.rank,
    }
    told = {name: getattr(entry, name) for name in held if name in entry.model_fields_set}
    if "depends_on" in told:
        told["depends_on"] = {_listed_name(task.project, name) for name in entry.depends_on}
    if told.get("title") == "":
        told["title"] = key
    if entry.rank is None or entry.status == MASTER_VIEW[TaskStatus.WORKING]:
        told.pop("rank", None)
    kept: dict[str, Any] = next(
        (one[IMPORTED_REASON] for one in task.facts if IMPORTED_REASON in one), {}
    )
    extra = [name for name, value in entry.extra.items() if kept.get(name) != value]
    return [name for name, value in told.items() if value != held[name]] + extra


def _listed_name(project: Project, name: str) -> str:
    """The name under which the list shows a task that may be named otherwise."""
    found = find_root(project, name)
    return name if found is None else found.external_key or str(found)
