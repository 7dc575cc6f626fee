"""Count words and guess how long they take to read."""

from __future__ import annotations

import math
import re

WORD = re.compile(r"\w+(?:['’-]\w+)*")
WORDS_A_MINUTE = 230


def count_words(text: str) -> int:
    """Count words; an apostrophe or a hyphen inside does not end one."""
    return sum(1 for _ in WORD.finditer(text))


def reading_minutes(text: str, words_a_minute: int = WORDS_A_MINUTE) -> int:
    """Guess the reading time in whole minutes, rounded up; no text takes no time."""
    if words_a_minute < 1:
        raise ValueError("nobody reads less than one word a minute")
    return math.ceil(count_words(text) / words_a_minute)
