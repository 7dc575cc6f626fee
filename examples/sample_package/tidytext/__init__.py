"""Small helpers for text that people read."""

from tidytext.excerpts import excerpt
from tidytext.slugs import slugify, unique_slug
from tidytext.tables import text_table
from tidytext.words import count_words, reading_minutes

__version__ = "0.3.0"
__all__ = [
    "count_words",
    "excerpt",
    "reading_minutes",
    "slugify",
    "text_table",
    "unique_slug",
]
