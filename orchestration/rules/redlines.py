"""Red lines: words and commands that stop a task until Sir has said yes.

They are read in title, text and commands alike. A phrase of the policy is a row of words; between
two words only blanks may stand, `…` lets up to 40 characters of the same clause stand there, `a|b`
is one of several words, and `-rf` is those flags of the command before it, in any order and in any
number of arguments. English words match between boundaries, verbs inflected. A verb alone never
matches: "delete trailing whitespace" is harmless, "delete the customer data" is not.
Source: DESIGN section 8 and rule 13 of section 4.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from orchestration.policy import GAP_MARK, MAX_WORD_LENGTH, Policy
from orchestration.rules.phrases import MAX_HITS, Folded, Signal
from orchestration.rules.vocabulary import (
    Inflection,
    Term,
    Vocabulary,
    noun_forms,
    trie_pattern,
    verb_forms,
)

KIND = "red_line"
MAX_GAP = 40
_CLAUSE_END = re.compile(r"[，。！？；;!?\n,|&]|(?<=\w)\.\s")
_COMMAND_END = re.compile(r"[;|&。]|(?<!\\)\n|(?<=\w)\.\s|\Z")
_FLAGS = re.compile(r"-[a-z]{1,3}")
_ARGUMENT = re.compile(r"[^\s'\"]+")
_MIN_INFLECTED = 4


class _Part:
    """The words of a phrase between two gaps, with the flags that follow the last of them."""

    __slots__ = ("_flags", "_pattern", "first_words")

    def __init__(self, text: str) -> None:
        """Compile the words."""
        tokens = [token for token in Folded(text).text.split() if token.strip("|")]
        # The first word is the command, so flags only count after it.
        flags = [token for token in tokens[1:] if _FLAGS.fullmatch(token)]
        words = [token for token in tokens if token not in flags]
        self.first_words = [word for token in words[:1] for word in token.split("|") if word]
        self._flags = {flag for token in flags for flag in token[1:]}
        self._pattern = re.compile(r"[\s\\]{1,8}".join(map(_alternatives, words)), re.ASCII)

    def is_in(self, text: str) -> bool:
        """Say whether the words stand anywhere in a folded text."""
        return self._pattern.search(text) is not None

    def end_at(self, text: str, start: int) -> int | None:
        """Return where the part ends if it stands at `start`."""
        match = self._pattern.match(text, start)
        return None if match is None else self._flags_end(text, match.end())

    def end_between(self, text: str, start: int, limit: int) -> int | None:
        """Return where the part ends if it starts between `start` and `limit`."""
        match = self._pattern.search(text, start, limit + MAX_WORD_LENGTH)
        if match is None or match.start() > limit:
            return None
        return self._flags_end(text, match.end())

    def command_end(self, text: str, start: int) -> int:
        """Return up to where the flags of a command at `start` are looked for; 0 without flags."""
        stop = _COMMAND_END.search(text, start) if self._flags else None
        return stop.start() if stop is not None else 0

    def _flags_end(self, text: str, start: int) -> int | None:
        """Return where the arguments of the command have named all the flags."""
        if not self._flags:
            return start
        missing = set(self._flags)
        for argument in _ARGUMENT.finditer(text, start, self.command_end(text, start)):
            if argument[0][0] == "-" and argument[0][1:2] != "-":
                missing -= set(argument[0][1:])
                if not missing:
                    return argument.end()
        return None


def _inflection(word: str) -> Inflection:
    """Say whether a word is one of a language, and not the name of a program."""
    is_word = word.isascii() and word.isalpha() and len(word) >= _MIN_INFLECTED
    return Inflection.ANY if is_word else Inflection.NONE


def _alternatives(token: str) -> str:
    """Write one word of a phrase, or several between bars, as an expression."""
    english: set[str] = set()
    others: list[str] = []
    for word in filter(None, token.split("|")):
        if not (word.isascii() and word[0].isalnum() and word[-1].isalnum()):
            others.append(re.escape(word))
        elif _inflection(word) is Inflection.ANY:
            english |= verb_forms(word) | noun_forms(word)
        else:
            english.add(word)
    if english:
        others.append(rf"(?<![a-z0-9])(?:{trie_pattern(english)})(?![a-z0-9])")
    return f"(?:{'|'.join(others) or '(?!)'})"


class _Phrase:
    """One red line of the policy."""

    __slots__ = ("_first", "_rest", "first_words")

    def __init__(self, phrase: str) -> None:
        """Compile the parts between the gaps."""
        self._first, *self._rest = [_Part(part) for part in phrase.split(GAP_MARK)]
        self.first_words = self._first.first_words

    def is_possible(self, text: str) -> bool:
        """Say whether every part after the first stands somewhere in a folded text."""
        return all(part.is_in(text) for part in self._rest)

    def end_at(self, text: str, start: int) -> int | None:
        """Return where the phrase ends if it stands at `start`, all of it in one clause."""
        position = self._first.end_at(text, start)
        for part in self._rest:
            if position is None:
                return None
            clause_end = _CLAUSE_END.search(text, position, position + MAX_GAP)
            limit = clause_end.start() if clause_end is not None else position + MAX_GAP
            position = part.end_between(text, position, limit)
        return position

    def command_end(self, text: str, start: int) -> int:
        """Return up to where its first part, found at `start`, has looked for flags."""
        return self._first.command_end(text, start)


class _RedLines:
    """All red lines of a policy, with one vocabulary of the words they begin with."""

    __slots__ = ("_phrases", "_starts")

    def __init__(self, phrases: Sequence[str]) -> None:
        """Compile the phrases."""
        self._phrases = {str(index): _Phrase(phrase) for index, phrase in enumerate(phrases)}
        # No hit may be dropped: the hundred-and-first "delete" may be the one that matters.
        self._starts = Vocabulary(
            (
                Term(index, word, _inflection(word))
                for index, phrase in self._phrases.items()
                for word in phrase.first_words
            ),
            keep_all=True,
        )

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of a folded text that cross a red line, in text order, no overlaps."""
        hits, counts = self._starts.find(text)
        possible = {index for index in counts if self._phrases[index].is_possible(text)}
        spans: list[tuple[int, int]] = []
        # One command answers for every repeat of its name, or a text of repeats costs its square.
        answered = dict.fromkeys(possible, 0)
        for start, _, index in hits:
            if index in possible and start >= answered[index] and len(spans) < MAX_HITS:
                phrase = self._phrases[index]
                end = phrase.end_at(text, start)
                answered[index] = phrase.command_end(text, start)
                if end is not None:
                    spans.append((start, end))
        kept: list[tuple[int, int]] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if not kept or end > kept[-1][1]:
                kept.append((start, end))
        return kept


@lru_cache(maxsize=64)
def _compiled(phrases: tuple[str, ...]) -> _RedLines:
    """Compile a policy's red lines, once for each distinct list."""
    return _RedLines(phrases)


def red_lines_in(texts: Iterable[str], policy: Policy) -> list[Signal]:
    """Return the red lines that texts cross, each span once; offsets count in its own text."""
    return [signal for text in texts for signal in _in_one(text, policy)]


def _in_one(text: str, policy: Policy) -> list[Signal]:
    """Return the red lines that one text crosses, by offset, at most MAX_HITS."""
    folded = Folded(text)
    spans = _compiled(policy.triggers.red_lines).find(folded.text)
    return [folded.signal(KIND, start, end) for start, end in spans]


def red_line_digest(texts: Sequence[str], policy: Policy) -> str:
    """Digest every text that crosses a red line, so that one approval covers exactly that content.

    Shape: sha-256 in hex, the same whatever the order of the texts; empty when none crosses any.
    """
    crossing = sorted({text.strip() for text in texts if _in_one(text, policy)})
    if not crossing:
        return ""
    return hashlib.sha256(json.dumps(crossing).encode()).hexdigest()
