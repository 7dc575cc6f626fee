"""Prepare a text for searching, and find phrases with gaps in it, in linear time.

Nothing in here backtracks: a phrase with a gap is found part by part, left to right.
Source: DESIGN section 5.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from orchestration.policy import GAP_MARK

MAX_HITS = 100
"""Hits kept for each kind; the rest is only counted."""


class Signal(NamedTuple):
    """Something found in a text. Shape: `offset` counts characters from the start of the text."""

    kind: str
    text: str
    offset: int

    def as_json(self) -> dict[str, Any]:
        """Return the signal as the API shows it."""
        return {"kind": self.kind, "text": self.text, "offset": self.offset}


# Characters that show nothing and would split a word: controls, zero-width and direction marks,
# variation selectors, tags, and halves of surrogate pairs.
_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f"
_HIDDEN = (
    _CONTROLS
    + "\x80-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ud800-\udfff"
    "\U000e0000-\U000e0fff"
)
_ASCII_HIDDEN_RUN = re.compile(f"([{_CONTROLS}]+)")
_HIDDEN_RUN = re.compile(f"([{_HIDDEN}]+)")
_SPACE_AND_QUOTE = {0xA0: " ", 0x3000: " ", 0x2019: "'"}
_NARROW = {
    code: chr(code - 0xFEE0)
    for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))
}
# U+0130 is the one character whose lower case is longer than itself.
_REPLACED = {0x130: "i", **_SPACE_AND_QUOTE, **_NARROW}
_REPLACEABLE = "\u0130\xa0\u3000\u2019０-９Ａ-Ｚａ-ｚ"
_REPLACEABLE_RUN = re.compile(f"[{_REPLACEABLE}]+")
_SPECIAL = re.compile(f"[{_HIDDEN}{_REPLACEABLE}]")


def _replace(run: re.Match[str]) -> str:
    """Write wide and special characters the plain way, one for one."""
    return run[0].translate(_REPLACED)


class Folded:
    """A text ready to be searched, and the way back to the offsets of the original.

    Shape: `visible` is the text without characters that show nothing; `text` is the same in lower
    case with wide letters narrowed, character by character, so positions in both agree.
    """

    __slots__ = ("_cuts", "_pieces", "_shifts", "text", "visible")

    def __init__(self, original: str) -> None:
        """Fold the text once."""
        self._pieces: list[str] | None = None
        self.visible = original
        if original.isascii():
            if not original.replace("\n", " ").isprintable():
                self._hide(original, _ASCII_HIDDEN_RUN)
            self.text = self.visible.lower()
        elif _SPECIAL.search(original) is None:
            self.text = original.lower()
        else:
            self._hide(original, _HIDDEN_RUN)
            self.text = _REPLACEABLE_RUN.sub(_replace, self.visible).lower()

    def _hide(self, original: str, hidden: re.Pattern[str]) -> None:
        """Drop what shows nothing, and keep the pieces for the way back."""
        pieces = hidden.split(original)
        if len(pieces) > 1:
            self._pieces = pieces
            self.visible = "".join(pieces[::2])

    def offset(self, position: int) -> int:
        """Return the offset in the original text of a position in the folded one."""
        if self._pieces is None:
            return position
        if not hasattr(self, "_cuts"):
            lengths = [len(piece) for piece in self._pieces]
            self._cuts = list(accumulate(lengths[::2]))
            self._shifts = [0, *accumulate(lengths[1::2])]
        return position + self._shifts[bisect_right(self._cuts, position)]

    def signal(self, kind: str, start: int, end: int) -> Signal:
        """Make a signal of a span of the folded text."""
        return Signal(kind, self.visible[start:end], self.offset(start))

    def signals(self, spans: Iterable[tuple[int, int, str]]) -> list[Signal]:
        """Make signals of spans of the folded text, each with its kind."""
        visible = self.visible
        if self._pieces is None:
            return [Signal(kind, visible[start:end], start) for start, end, kind in spans]
        return [self.signal(kind, start, end) for start, end, kind in spans]


def normal_spacing(text: str) -> str:
    """Write white space and hyphens between words as single blanks."""
    return " ".join(text.replace("-", " ").split())


EDGED = re.compile(r"[a-z0-9_](?:[\x20-\x7e]*[a-z0-9_])?")


class GapPhrase:
    """A phrase whose parts may have any text between them, such as `先…然后…最后`."""

    __slots__ = ("_patterns", "first", "kind", "last")

    def __init__(self, kind: str, phrase: str) -> None:
        """Compile the parts. `first` and `last` are letters that a text must hold to match."""
        self.kind = kind
        parts = [normal_spacing(Folded(part).text) for part in phrase.split(GAP_MARK)]
        self._patterns = [_part_pattern(part) for part in parts]
        self.first, self.last = parts[0].split(" ")[0], parts[-1].split(" ")[-1]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the span of each part of the first match in a folded text, or nothing."""
        spans: list[tuple[int, int]] = []
        position = 0
        for pattern in self._patterns:
            match = pattern.search(text, position)
            if match is None:
                return []
            spans.append(match.span())
            position = match.end()
        return spans


class GapPhrases:
    """Phrases with gaps, sorted by the letters they begin with."""

    __slots__ = ("_by_first",)

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        """Compile (kind, phrase) pairs."""
        self._by_first: dict[str, list[GapPhrase]] = {}
        for kind, phrase in phrases:
            gap = GapPhrase(kind, phrase)
            self._by_first.setdefault(gap.first, []).append(gap)

    def find(self, text: str) -> list[tuple[str, list[tuple[int, int]]]]:
        """Find the first match of each phrase in a folded text, with the span of each part."""
        found: list[tuple[str, list[tuple[int, int]]]] = []
        # Looking for the bare letters first costs a tenth of a search that checks boundaries.
        for first, gaps in self._by_first.items():
            if first in text:
                for gap in gaps:
                    if gap.last in text and (spans := gap.find(text)):
                        found.append((gap.kind, spans))
        return found


def _part_pattern(part: str) -> re.Pattern[str]:
    """Compile one part; literal letters come first so that the search can skip ahead."""
    first, *rest = part.split(" ")
    pattern = re.escape(first)
    if part.isascii() and EDGED.fullmatch(part):
        pattern += rf"(?<![a-z0-9_]{re.escape(first)})"
        pattern += "".join(rf"[\s-]{{1,3}}{re.escape(word)}" for word in rest)
        return re.compile(rf"{pattern}\b", re.ASCII)
    return re.compile(pattern + "".join(rf"\s{{0,3}}{re.escape(word)}" for word in rest))
