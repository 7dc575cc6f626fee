"""Find the words of many lists in a text in one pass, in linear time.

Words become tries, compiled to regular expressions in which no two branches start alike.
Source: DESIGN section 5.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from orchestration.rules.phrases import EDGED, MAX_HITS, Folded, normal_spacing

_MANY_MATCHES = 5_000
"""From here on words are counted in bulk; one by one a megabyte of them would take too long."""


class Inflection(StrEnum):
    """How an English word of a list may change its ending."""

    NONE = "none"
    VERB = "verb"
    NOUN = "noun"
    ANY = "any"


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
    if term.inflection is Inflection.NOUN:
        return noun_forms(word)
    if term.inflection is Inflection.ANY:
        return verb_forms(word) | noun_forms(word)
    return {word}


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
    Where one word contains another of a different kind both count; where two only overlap the first
    one does.
    """

    __slots__ = ("_keeps_all", "_scanners")

    def __init__(self, terms: Iterable[Term], *, keep_all: bool = False) -> None:
        """Compile the words; keep MAX_HITS of each kind, or every hit where none may be missed."""
        self._keeps_all = keep_all
        bounded: dict[str, set[str]] = {}
        anywhere: dict[str, set[str]] = {}
        for term in terms:
            for form in filter(None, _forms(term)):
                table = bounded if EDGED.fullmatch(form) else anywhere
                table.setdefault(form, set()).add(term.kind)
        self._scanners: list[_Scanner] = []
        if anywhere:
            pattern = re.compile(trie_pattern(anywhere, blank=" "))
            in_ascii = any(form.isascii() for form in anywhere)
            letters = _with_contained_letters(anywhere)
            self._scanners.append(_Scanner(pattern, letters, in_ascii=in_ascii, keep_all=keep_all))
        if bounded:
            pattern = re.compile(rf"\b{trie_pattern(bounded)}\b", re.ASCII)
            table_of_words = _with_contained_words(bounded)
            self._scanners.append(
                _Scanner(pattern, table_of_words, in_ascii=True, keep_all=keep_all)
            )

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
            if len(hits) > MAX_HITS and not self._keeps_all:
                hits = _first_of_each_kind(hits)
        return hits, counts


class _Scanner:
    """The words of one script."""

    __slots__ = ("_many", "_most", "_pattern", "_table", "in_ascii")

    def __init__(
        self, pattern: re.Pattern[str], table: _Table, *, in_ascii: bool, keep_all: bool
    ) -> None:
        """Hold the expression and what each of its words stands for."""
        self._pattern, self._table, self.in_ascii = pattern, table, in_ascii
        self._most = sys.maxsize if keep_all else MAX_HITS
        self._many = sys.maxsize if keep_all else _MANY_MATCHES

    def find(self, text: str, hits: list[Hit], counts: dict[str, int]) -> None:
        """Add the hits and counts of a folded text."""
        table, most, many = self._table, self._most, self._many
        own: dict[str, int] = {}
        for number, match in enumerate(self._pattern.finditer(text)):
            start, end = match.span()
            for kind, lead, trail in table.get(match[0]) or table[normal_spacing(match[0])]:
                count = own[kind] = own.get(kind, 0) + 1
                if count <= most:
                    hits.append((start + lead, end - trail, kind))
            if number == many:
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
