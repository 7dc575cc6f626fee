"""Find words and phrases of the policy in a message, in linear time, with the offset of each hit.

Nothing in here backtracks: words go through two tries compiled to regular expressions without
nested repetition, and phrases with a gap are found part by part, left to right.
Source: DESIGN section 5.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from itertools import accumulate
from typing import Any, NamedTuple

from orchestration.policy import GAP_MARK

MAX_HITS = 100
"""Hits kept for each kind; the rest is only counted."""
_MANY_MATCHES = 5_000
"""From here on words are counted in bulk; one by one a megabyte of them would take too long."""


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
_SPECIAL = re.compile(f"[{_HIDDEN}{_REPLACEABLE}]")


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
            self.text = self.visible.translate(_REPLACED).lower()

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
        offset = start if self._pieces is None else self.offset(start)
        return Signal(kind, self.visible[start:end], offset)


class Inflection(StrEnum):
    """How an English word of a list may change its ending."""

    NONE = "none"
    VERB = "verb"
    NOUN = "noun"


class Term(NamedTuple):
    """One word of a list, and the kind of hit it makes."""

    kind: str
    word: str
    inflection: Inflection = Inflection.NONE


_IRREGULAR = {
    "build": ("built",),
    "rebuild": ("rebuilt",),
    "write": ("wrote", "written"),
    "rewrite": ("rewrote", "rewritten"),
    "find": ("found",),
    "make": ("made",),
    "send": ("sent",),
    "run": ("ran",),
    "debug": ("debugged", "debugging"),
    "submit": ("submitted", "submitting"),
}
_SHORT_STEM = re.compile(r"[^aeiou]*[aeiou][bdgmnprt]")


def verb_forms(word: str) -> set[str]:
    """Return an English verb in all its forms, with and without `re-` in front."""
    head, _, rest = word.partition(" ")
    stem = head.removesuffix("e")
    forms = {head, f"{head}s", f"{stem}ed", f"{stem}ing", *_IRREGULAR.get(head, ())}
    if head.endswith(("s", "x", "z", "ch", "sh")):
        forms.add(f"{head}es")
    if re.search(r"[^aeiou]y\Z", head):
        forms |= {f"{head[:-1]}ies", f"{head[:-1]}ied"}
    if _SHORT_STEM.fullmatch(head):
        forms |= {f"{head}{head[-1]}ed", f"{head}{head[-1]}ing"}
    if not head.startswith("re"):
        forms |= {f"re{form}" for form in forms} | {f"re {form}" for form in forms}
    return {f"{form} {rest}".strip() for form in forms}


def noun_forms(word: str) -> set[str]:
    """Return an English noun or adjective with its plural and its adverb."""
    return {word, f"{word}s", f"{word}es", f"{word}ly"}


def _forms(term: Term) -> set[str]:
    """Return every form of a term, with single blanks between its words."""
    word = normal_spacing(Folded(term.word).text)
    if not word.isascii():
        return {word}
    if term.inflection is Inflection.VERB:
        return verb_forms(word)
    return noun_forms(word) if term.inflection is Inflection.NOUN else {word}


def normal_spacing(text: str) -> str:
    """Write white space and hyphens between words as single blanks."""
    return " ".join(text.replace("-", " ").split())


_EDGED = re.compile(r"[a-z0-9_](?:[\x20-\x7e]*[a-z0-9_])?")


def trie_pattern(words: Iterable[str], *, blank: str = r"[\s-]{1,3}") -> str:
    """Write words as one expression in which no two branches start alike."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branch(root, blank)


def _branch(node: dict[str, Any], blank: str) -> str:
    """Write one node of the trie; the empty key marks the end of a word."""
    choices = [
        (blank if character == " " else re.escape(character)) + _branch(child, blank)
        for character, child in sorted(node.items())
        if character
    ]
    if not choices:
        return ""
    joined = choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
    return f"(?:{joined})?" if "" in node else joined


Hit = tuple[int, int, str]
"""One word found: where it starts and ends in the folded text, and its kind."""
_Table = dict[str, tuple[tuple[str, int, int], ...]]


class Vocabulary:
    """Words of several kinds, compiled once, found in one pass a script.

    English words match between boundaries that treat Chinese as a break; others match anywhere.
    Where one word contains another both count; where two only overlap the first one does.
    """

    __slots__ = ("_scanners",)

    def __init__(self, terms: Iterable[Term]) -> None:
        """Compile the words."""
        bounded: dict[str, set[str]] = {}
        anywhere: dict[str, set[str]] = {}
        for term in terms:
            for form in _forms(term):
                table = bounded if _EDGED.fullmatch(form) else anywhere
                table.setdefault(form, set()).add(term.kind)
        self._scanners: list[_Scanner] = []
        if anywhere:
            pattern = re.compile(trie_pattern(anywhere, blank=" "))
            in_ascii = any(form.isascii() for form in anywhere)
            table_of_letters = _with_contained_letters(anywhere)
            self._scanners.append(_Scanner(pattern, table_of_letters, in_ascii=in_ascii))
        if bounded:
            pattern = re.compile(rf"\b{trie_pattern(bounded)}\b", re.ASCII)
            self._scanners.append(_Scanner(pattern, _with_contained_words(bounded), in_ascii=True))

    def find(self, text: str) -> tuple[list[Hit], dict[str, int]]:
        """Find every word in a folded text.

        Shape: hits in text order, at most MAX_HITS a kind; counts of the kinds that hit.
        """
        hits: list[Hit] = []
        counts: dict[str, int] = {}
        is_ascii = text.isascii()
        for scanner in self._scanners:
            if scanner.in_ascii or not is_ascii:
                scanner.find(text, hits, counts)
        if not is_ascii and len(hits) > 1:
            hits.sort()
            if len(hits) > MAX_HITS:
                hits = _first_of_each_kind(hits)
        return hits, counts


class _Scanner:
    """The words of one script."""

    __slots__ = ("_pattern", "_table", "in_ascii")

    def __init__(self, pattern: re.Pattern[str], table: _Table, *, in_ascii: bool) -> None:
        """Hold the expression and what each of its words stands for."""
        self._pattern, self._table, self.in_ascii = pattern, table, in_ascii

    def find(self, text: str, hits: list[Hit], counts: dict[str, int]) -> None:
        """Add the hits and counts of a folded text."""
        table = self._table
        own: dict[str, int] = {}
        for number, match in enumerate(self._pattern.finditer(text)):
            start, end = match.span()
            for kind, lead, trail in table.get(match[0]) or table[normal_spacing(match[0])]:
                count = own[kind] = own.get(kind, 0) + 1
                if count <= MAX_HITS:
                    hits.append((start + lead, end - trail, kind))
            if number == _MANY_MATCHES:
                self._find_rest(text, end, hits, own)
                break
        for kind, count in own.items():
            counts[kind] = counts.get(kind, 0) + count

    def _find_rest(self, text: str, start: int, hits: list[Hit], own: dict[str, int]) -> None:
        """Count the rest of a text full of words; keep hits only of kinds that were rare so far."""
        scarce: list[Hit] = []
        enough = {kind for kind, count in own.items() if count >= MAX_HITS}
        for word, count in Counter(self._pattern.findall(text, start)).items():
            for kind, lead, trail in self._table.get(word) or self._table[normal_spacing(word)]:
                own[kind] = own.get(kind, 0) + count
                if kind not in enough:
                    places = self._places(word, text, start)
                    scarce += [(at + lead, at + len(word) - trail, kind) for at in places]
        hits += scarce
        hits.sort()
        hits[:] = _first_of_each_kind(hits)

    def _places(self, word: str, text: str, start: int) -> list[int]:
        """Return the first places of a word as found in the text, at most MAX_HITS."""
        places: list[int] = []
        at = text.find(word, start)
        while at >= 0 and len(places) < MAX_HITS:
            match = self._pattern.match(text, at)
            if match is not None and match[0] == word:
                places.append(at)
            at = text.find(word, at + len(word))
        return places


def _first_of_each_kind(hits: list[Hit]) -> list[Hit]:
    """Keep the first MAX_HITS of each kind."""
    kept: list[Hit] = []
    seen: dict[str, int] = {}
    for hit in hits:
        count = seen[hit[2]] = seen.get(hit[2], 0) + 1
        if count <= MAX_HITS:
            kept.append(hit)
    return kept


def _with_contained_words(bounded: dict[str, set[str]]) -> _Table:
    """Give each form its kinds and those of every other form that its words contain."""
    table: _Table = {}
    for form in bounded:
        words = form.split(" ")
        kinds: set[str] = set()
        for first in range(len(words)):
            for last in range(first + 1, len(words) + 1):
                kinds |= bounded.get(" ".join(words[first:last]), set())
        table[form] = tuple((kind, 0, 0) for kind in sorted(kinds))
    return table


def _with_contained_letters(anywhere: dict[str, set[str]]) -> _Table:
    """Give each form its kinds, and the spans in it of longer kinds' words that it contains."""
    table: _Table = {}
    for form, kinds in anywhere.items():
        entries = [(kind, 0, 0) for kind in sorted(kinds)]
        for lead in range(len(form)):
            for end in range(len(form), lead, -1):
                for kind in sorted(anywhere.get(form[lead:end], set()) - {e[0] for e in entries}):
                    entries.append((kind, lead, len(form) - end))
        table[form] = tuple(entries)
    return table


class GapPhrase:
    """A phrase whose parts may have any text between them, such as `先…然后…最后`."""

    __slots__ = ("_patterns", "first", "kind", "last")

    def __init__(self, kind: str, phrase: str) -> None:
        """Compile the parts. `first` and `last` are letters that a text must hold to match."""
        self.kind = kind
        parts = [normal_spacing(part.lower()) for part in phrase.split(GAP_MARK)]
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
    if part.isascii() and _EDGED.fullmatch(part):
        pattern += rf"(?<![a-z0-9_]{re.escape(first)})"
        pattern += "".join(rf"[\s-]{{1,3}}{re.escape(word)}" for word in rest)
        return re.compile(rf"{pattern}\b", re.ASCII)
    return re.compile(pattern + "".join(rf"\s{{0,3}}{re.escape(word)}" for word in rest))
