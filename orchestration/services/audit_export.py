"""Write sealed audit events as JSON Lines or CSV, one event at a time.

JSON Lines is the exact form. CSV is for spreadsheets, which take a cell that starts with = + - or @
for a formula: such a cell gets a ' in front.
Source: DESIGN section 13.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CSV_COLUMNS = (
    "position",
    "id",
    "at",
    "project",
    "task",
    "kind",
    "actor",
    "subject",
    "before",
    "after",
    "why",
    "request_id",
    "hash",
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def json_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each event as one line of JSON."""
    for event in events:
        yield json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"


def csv_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the header, then each event as one row; `before` and `after` are JSON."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    yield _taken(buffer)
    for event in events:
        writer.writerow([_cell(event[name]) for name in CSV_COLUMNS])
        yield _taken(buffer)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
