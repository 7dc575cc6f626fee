"""Names for web addresses and files, made from titles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

NOT_IN_A_SLUG = re.compile(r"[^\w]+|_+")


def slugify(title: str) -> str:
    """Make a lower-case name of letters, digits and single hyphens.

    Accents are dropped; letters of other scripts stay as they are.
    """
    decomposed = unicodedata.normalize("NFKD", title)
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return NOT_IN_A_SLUG.sub("-", plain.casefold()).strip("-")


def unique_slug(title: str, taken: Container[str]) -> str:
    """Make a slug that is not taken yet, by counting up from 2."""
    slug = slugify(title) or "untitled"
    candidate, number = slug, 1
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate
