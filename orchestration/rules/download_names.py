"""The name under which a browser keeps what it downloads: a file that can be opened.

A name without an ending gets one from what the file is, so that no reader has to guess.
"""

from __future__ import annotations

import json

MAX_SNIFFED_BYTES = 1_000_000


def download_name(name: str, kind: str, data: bytes) -> str:
    """Name a download after the last part of its path; `kind` is the type of an output."""
    last = name.replace("\\", "/").rpartition("/")[2].strip() or "artifact"
    stem, dot, ending = last.rpartition(".")
    has_ending = bool(stem and dot) and ending.isalnum() and len(ending) <= 8
    return last if has_ending else f"{last}.{_ending(kind, data)}"


def _ending(kind: str, data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "bin"
    if "\x00" in text:
        return "bin"
    if kind == "document":
        return "md"
    return "json" if _is_json(text) else "txt"


def _is_json(text: str) -> bool:
    if len(text) > MAX_SNIFFED_BYTES or not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
