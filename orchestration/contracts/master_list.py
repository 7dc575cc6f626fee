"""The master task list as it comes in from outside.

Source: FORMATS ("Master task list").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr, field_validator

from orchestration.contracts.documents import Document, fault, parse_document, require_json
from orchestration.contracts.graph import find_cycles
from orchestration.contracts.plan import Names
from orchestration.errors import Fault, Invalid
from orchestration.states import MASTER_VIEW

MASTER_STATUSES = tuple(dict.fromkeys(MASTER_VIEW.values()))
KEY_MAX_CHARACTERS = 200
MAX_ENTRIES = 5_000
RANK_LIMIT = 10**9
DETAIL = "The master task list is not valid; nothing was changed."


class MasterEntry(Document):
    """One entry of the list. Unknown fields are kept in `extra`."""

    status: StrictStr
    reason: StrictStr = ""
    title: Annotated[StrictStr, Field(max_length=300)] = ""
    description: Annotated[StrictStr, Field(max_length=1_000_000)] = ""
    depends_on: Names = ()
    spec_id: Annotated[StrictStr, Field(max_length=200)] = ""
    rank: Annotated[StrictInt, Field(ge=-RANK_LIMIT, le=RANK_LIMIT)] | None = None

    @field_validator("status")
    @classmethod
    def require_known_status(cls, status: str) -> str:
        """Require a status of the master-list view."""
        if status not in MASTER_STATUSES:
            raise fault("status", f"must be one of {', '.join(MASTER_STATUSES)}")
        return status


def parse_master_list(document: object) -> dict[str, MasterEntry]:
    """Read a list by its keys, in its order.

    Errors: Invalid (`import_invalid`) listing every fault of every entry.
    """
    require_json(document, detail=DETAIL)
    if not isinstance(document, Mapping) or not document:
        raise _invalid([Fault(path="", message="must be an object of tasks by key, at least one")])
    if len(document) > MAX_ENTRIES:
        raise _invalid([Fault(path="", message=f"has more than {MAX_ENTRIES} tasks")])
    entries: dict[str, MasterEntry] = {}
    faults: list[Fault] = []
    for key, value in document.items():
        faults += _key_faults(key)
        try:
            entries[key] = _entry(value)
        except Invalid as error:
            faults += [
                Fault(path=f"{key}.{one['path']}".rstrip("."), message=one["message"])
                for one in error.errors
            ]
    if faults:
        raise _invalid(faults)
    return entries


def cycles_in(needed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Find tasks of a list that depend on each other. Shape: (path, what is wrong)."""
    graph = {key: [one for one in names if one in needed] for key, names in needed.items()}
    for cycle in find_cycles(graph):
        way = " → ".join([*cycle, cycle[0]])
        yield f"{cycle[0]}.depends_on", f"the tasks depend on each other in a cycle: {way}"


def _entry(value: Any) -> MasterEntry:
    if not isinstance(value, Mapping):
        raise Invalid(DETAIL, errors=[Fault(path="", message="must be an object")])
    return parse_document(MasterEntry, value, detail=DETAIL)


def _key_faults(key: str) -> list[Fault]:
    if not key.strip():
        return [Fault(path=key, message="is an empty key")]
    if len(key) > KEY_MAX_CHARACTERS or not key.isprintable():
        message = f"a key is 1 to {KEY_MAX_CHARACTERS} printable characters"
        return [Fault(path=key[:KEY_MAX_CHARACTERS], message=message)]
    return []


def _invalid(faults: list[Fault]) -> Invalid:
    return Invalid(DETAIL, code="import_invalid", errors=faults)
