"""Shorten text for previews."""

from __future__ import annotations

ELLIPSIS = "…"


def excerpt(text: str, limit: int) -> str:
    """Shorten text to at most `limit` characters, the ellipsis included.

    White space is folded, and the cut is between two words where there is such a place.
    """
    if limit < 1:
        raise ValueError("an excerpt needs room for at least one character")
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    room = limit
    cut = flat[:room]
    if flat[room] != " " and " " in cut:
        cut = cut[: cut.rindex(" ")]
    return cut.rstrip() + ELLIPSIS
