"""The hand-off that every review needs: short free text, or JSON that fits the schema.

Source: DESIGN section 12, FORMATS ("Hand-off").
"""

from __future__ import annotations

import json
from enum import StrEnum

from orchestration.contracts.documents import parse_document
from orchestration.contracts.handoff import Handoff
from orchestration.errors import Fault, Invalid

MAX_TEXT_CHARACTERS = 500
MAX_JSON_BYTES = 8 * 1024


class HandoffKind(StrEnum):
    """The two forms of a hand-off."""

    TEXT = "text"
    JSON = "json"


def check_handoff(body: str) -> HandoffKind:
    """Check a hand-off and say which form it has.

    Errors: Invalid when it is empty, when free text is over 500 characters (with the length), when
    JSON is over 8 kB (with the size) or does not fit the schema (with every fault).
    """
    return HandoffKind.TEXT if parse_handoff(body) is None else HandoffKind.JSON


def parse_handoff(body: str) -> Handoff | None:
    """Read a hand-off: the model of a JSON one, None for free text. Errors: as `check_handoff`."""
    text = body.strip()
    if not text:
        raise _invalid("The hand-off is empty.")
    size = len(text.encode(errors="replace"))
    document = _json_object(text) if text.startswith("{") and size <= MAX_JSON_BYTES else None
    if document is not None:
        return parse_document(Handoff, document, detail="The hand-off does not fit its schema.")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise _invalid(_too_long(text, size))
    return None


def _json_object(text: str) -> dict[str, object] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _too_long(text: str, size: int) -> str:
    said = f"The hand-off has {len(text)} characters; free text may have {MAX_TEXT_CHARACTERS}."
    if not text.startswith("{"):
        return said
    if size > MAX_JSON_BYTES:
        return f"The hand-off has {size} bytes; JSON may have {MAX_JSON_BYTES}."
    return f"{said} It starts like JSON but cannot be read as JSON."


def _invalid(message: str) -> Invalid:
    return Invalid(message, code="handoff_invalid", errors=[Fault(path="body", message=message)])
