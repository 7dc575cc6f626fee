"""Words put together in the reader's language: lists, and sentences one after the other.

Source: UI.md section 7.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import get_language, pgettext


def is_chinese() -> bool:
    """Whether the page is read in Chinese."""
    return (get_language() or "").startswith("zh")


def listed(parts: Iterable[object]) -> str:
    """Join the words of a list; parts without text are left out."""
    return pgettext("between words", ", ").join(str(part) for part in parts if part)


def sentences(parts: Iterable[object]) -> str:
    """Join whole sentences; Chinese ones need no space between them."""
    return ("" if is_chinese() else " ").join(str(part) for part in parts if part)
