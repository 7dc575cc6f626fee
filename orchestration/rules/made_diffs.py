"""Write the unified diff of one file from what it was and what it is.

It is for a person to read, so it is given only where a page can show it whole.
"""

from __future__ import annotations

import difflib

from orchestration.errors import Invalid
from orchestration.rules.diffs import NO_FILE, parse_diff

MAX_COMPARED_BYTES = 100_000
NO_NEWLINE = "\n\\ No newline at end of file\n"


def made_diff(path: str, before: bytes | None, after: bytes) -> str:
    """Write the diff of a text file; `before` is None for a new one.

    Shape: empty where nothing changed, or where it is no text, too large, or cannot be shown.
    """
    if max(len(before or b""), len(after)) > MAX_COMPARED_BYTES:
        return ""
    try:
        old, new = _lines(before or b""), _lines(after)
    except UnicodeDecodeError:
        return ""
    source = NO_FILE if before is None else f"a/{path}"
    lines = difflib.unified_diff(old, new, source, f"b/{path}")
    text = "".join(one if one.endswith("\n") else one + NO_NEWLINE for one in lines)
    return text if is_showable(text) else ""


def _lines(data: bytes) -> list[str]:
    """Split at line feeds only, as a diff does."""
    *whole, rest = data.decode().split("\n")
    return [*(f"{one}\n" for one in whole), *([rest] if rest else [])]


def is_showable(text: str) -> bool:
    """Whether a page can show a diff whole."""
    try:
        return bool(text) and bool(parse_diff(text).files)
    except Invalid:
        return False
