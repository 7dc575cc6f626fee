"""Which words differ between an old and a new line. Shape: ranges of characters on both sides.

The cost is bounded: long or many lines fall back to "everything between the common start and the
common end", so that a hostile patch cannot keep a page busy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
WORD = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
"""ASCII words whole, every other character alone: Chinese has no spaces to split at."""
MAX_CELLS = 40_000
MIN_COMMON_SHARE = 0.3


@dataclass(slots=True)
class WorkBudget:
    """Cells of comparison that one diff may still use."""

    cells: int = 2_000_000

    def take(self, cells: int) -> bool:
        """Use up some cells, unless that is too many."""
        if cells > MAX_CELLS or cells > self.cells:
            return False
        self.cells -= cells
        return True


def changed_words(old: str, new: str, budget: WorkBudget) -> tuple[Ranges, Ranges]:
    """Find what changed from one line to the other. Shape: none when the lines share too little."""
    before, after = WORD.findall(old), WORD.findall(new)
    start = _common_start(before, after)
    end = _common_start(before[start:][::-1], after[start:][::-1])
    old_middle, new_middle = before[start : len(before) - end], after[start : len(after) - end]
    kept_old: set[int] = set()
    kept_new: set[int] = set()
    if old_middle and new_middle and budget.take(len(old_middle) * len(new_middle)):
        kept_old, kept_new = _common(old_middle, new_middle)
    kept = [*before[:start], *before[len(before) - end :], *(old_middle[at] for at in kept_old)]
    longest = max(len("".join(old.split())), len("".join(new.split())), 1)
    if sum(len(word) for word in kept if not word.isspace()) < MIN_COMMON_SHARE * longest:
        return (), ()
    return (
        _ranges(before, start, len(old_middle), kept_old),
        _ranges(after, start, len(new_middle), kept_new),
    )


def _common_start(one: list[str], other: list[str]) -> int:
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def _common(one: list[str], other: list[str]) -> tuple[set[int], set[int]]:
    """Find a longest common subsequence. Shape: the places it takes in both lists."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for at in range(len(one) - 1, -1, -1):
        row, below = lengths[at], lengths[at + 1]
        for place in range(len(other) - 1, -1, -1):
            if one[at] == other[place]:
                row[place] = below[place + 1] + 1
            else:
                row[place] = max(below[place], row[place + 1])
    kept_one: set[int] = set()
    kept_other: set[int] = set()
    at = place = 0
    while at < len(one) and place < len(other):
        if one[at] == other[place]:
            kept_one.add(at)
            kept_other.add(place)
            at, place = at + 1, place + 1
        elif lengths[at + 1][place] >= lengths[at][place + 1]:
            at += 1
        else:
            place += 1
    return kept_one, kept_other


def _ranges(words: list[str], start: int, count: int, kept: set[int]) -> Ranges:
    """Turn the changed words of the middle into ranges of characters; neighbours become one."""
    found: list[tuple[int, int]] = []
    offset = sum(len(word) for word in words[:start])
    for at, word in enumerate(words[start : start + count]):
        end = offset + len(word)
        if at not in kept:
            joins = bool(found) and found[-1][1] == offset
            begin = found.pop()[0] if joins else offset
            found.append((begin, end))
        offset = end
    return tuple(found)
