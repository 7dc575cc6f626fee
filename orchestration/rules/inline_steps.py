"""Steps that a message lists inside its sentences.

Counted: "1) … 2) …", ① … ②, 第一步…第二步…; or in words: 先…然后…最后…, first … then … finally.

Linear: every pattern is bounded, and what stands before a word is read through a short window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NUMERALS = "一二三四五六七八九十"
NUMBER_WORDS: Mapping[str, int] = MappingProxyType(
    {
        **{word: at for at, word in enumerate(NUMERALS, 1)},
        **{
            word: at
            for at, word in enumerate(
                ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
            )
        },
        **{chr(0x245F + at): at for at in range(1, 21)},
    }
)
"""Words for numbers: Chinese, English, and ① to ⑳."""
WORD_NUMBER = r"\d{1,3}|[一二三四五六七八九十]{1,3}"
ENGLISH_NUMBER = r"\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten"
ENUMERATIONS = (
    re.compile(
        rf"第\s?({WORD_NUMBER})\s?步|步骤\s?({WORD_NUMBER})|\bstep\s({ENGLISH_NUMBER})\b",
        re.IGNORECASE,
    ),
    re.compile("([\u2460-\u2473])"),
    re.compile(r"[（(](\d{1,3}|[一二三四五六七八九十])[)）]"),
    re.compile(r"(?<![\w.（(])(\d{1,3})(?:[)）、]|[.．](?=\s|[^\W\d]))"),
    re.compile(r"第([一二三四五六七八九十])(?=[，,、：:])"),
)
OPENING = (
    r"首先|先(?![生进前例锋知天后令期决辈烈兆驱秦河])"
    r"|\bfirst(?:ly| of all)?\b(?!\s(?:class|aid|name|time|place|thing|party|person|half)|-)"
)
FOLLOWING = (
    r"然后|接着|接下来|随后|其次|(?<![不一别])再(?![见次度三者说生现造版])|之后|"
    r"最后(?![一的]|期限|时刻|阶段|通牒)|最终(?![的版]|结果|用户|目标|方案)"
    r"|\bthen\b|\bafter that\b|\bafterwards?\b|\bnext\b(?!\s(?:week|month|year|to|day|door|time"
    r"|quarter|page|one|step|version|release)\b)|\bfinally\b|\blastly\b|\bsecondly\b|\bthirdly\b"
    r"|\bsubsequently\b"
)
SEQUENCE = re.compile(rf"(?P<opening>{OPENING})|(?P<following>{FOLLOWING})", re.IGNORECASE)
WINDOW = 24
CLAUSE_START = re.compile(
    r"(?:^|[，。；：！？、,;:.!?\n(（“\"'\-]|\b(?:please|should|must|to|we|you|i|and|but|can|could"
    r"|will|do|let's|just)|请|帮我|我们|咱们|[你您要得想让]|可以|应该|麻烦|先|并且?|[然之]后)\s*$",
    re.IGNORECASE,
)
NEEDS_CLAUSE_START = frozenset({"先", "next", "之后", "接下来", "最终", "afterward", "afterwards"})
NOT_A_SEQUENCE = re.compile(r"\b(?:since|by|until|till|back|even|every now and)\s*$", re.IGNORECASE)
CONDITION = re.compile(r"\b(?:if|when|whenever|unless)\b[^.!?;\n]*$", re.IGNORECASE)
SENTENCE_END = re.compile(r"[。！？!?\n]|\.(?=\s|$)")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
EDGES = " \t\r\n\u3000，。；：、,;:!！—–"
TAIL = 60
CONNECTIVES = re.compile(
    r"(?:[\s，,；;、]+(?:and|but|or)|[，,；;、\s]*(?:并且|以及|并|而后|就|and))+$", re.IGNORECASE
)
EMPTY_WORDS = frozenset({"", "and", "or", "和", "或", "与", "及", "to", "the", "是", "就"})


@dataclass(frozen=True, slots=True)
class Listing:
    """What a message lists. Shape: `items` in order; `rest` is the text around them."""

    items: tuple[str, ...]
    rest: str


def number_of(word: str) -> int | None:
    """Read a number written in digits, Chinese up to 99, English up to ten, or circled."""
    if word.isdecimal():
        return int(word)
    known = NUMBER_WORDS.get(word.lower())
    if known is not None:
        return known
    tens, ten, ones = word.partition("十")
    if not ten or any(part and part not in NUMERALS[:9] for part in (tens, ones)):
        return None
    return (NUMBER_WORDS[tens] if tens else 1) * 10 + (NUMBER_WORDS[ones] if ones else 0)


def clean_item(text: str) -> str:
    """Trim punctuation and dangling connectives from an item."""
    trimmed = text.strip(EDGES).rstrip(EDGES + ".")
    # Only the tail is searched: over a long run of white space the pattern would be quadratic.
    head, tail = trimmed[:-TAIL], trimmed[-TAIL:]
    trimmed = (head + CONNECTIVES.sub("", tail)).rstrip(EDGES + ".")
    return trimmed.replace("**", "") if trimmed.count("**") % 2 else trimmed


def is_item(text: str) -> bool:
    """Say whether a cleaned text says something that can be done."""
    return text.lower() not in EMPTY_WORDS and sum(char.isalnum() for char in text) > 1


def inline_listing(text: str) -> Listing | None:
    """Find steps listed inside the sentences of a message, or None when it lists none."""
    masked = FENCED.sub(lambda found: " " * len(found.group()), text)
    for pattern in ENUMERATIONS:
        listing = _split(text, _counted(masked, pattern))
        if listing is not None:
            return listing
    return _split(text, _sequence(masked))


Mark = tuple[int, int]
"""Where a marker starts and ends."""


def _counted(masked: str, pattern: re.Pattern[str]) -> list[Mark]:
    """Find the markers that count 1, 2, 3 …; others are part of the text."""
    marks: list[Mark] = []
    for found in pattern.finditer(masked):
        word = next(group for group in found.groups() if group is not None)
        if number_of(word) == len(marks) + 1:
            marks.append(found.span())
    return marks


def _sequence(masked: str) -> list[Mark]:
    """Find the words of a sequence from its opening on; without an opening there is none."""
    marks: list[Mark] = []
    for found in SEQUENCE.finditer(masked):
        is_opening = found.lastgroup == "opening"
        if (marks or is_opening) and _is_meant(masked, found, is_opening=is_opening):
            marks.append(found.span())
    return marks


def _is_meant(masked: str, found: re.Match[str], *, is_opening: bool) -> bool:
    """Tell the word of a sequence from the same letters inside something else."""
    word = found.group().lower()
    before = masked[max(0, found.start() - WINDOW) : found.start()]
    if is_opening and word != "首先":
        return CLAUSE_START.search(before) is not None
    if word in NEEDS_CLAUSE_START:
        return CLAUSE_START.search(before) is not None
    if word == "then":
        clause = masked[max(0, found.start() - 4 * WINDOW) : found.start()]
        return NOT_A_SEQUENCE.search(before) is None and CONDITION.search(clause) is None
    return True


def _split(text: str, marks: list[Mark]) -> Listing | None:
    """Cut the text at its markers. The last item ends with its sentence."""
    if len(marks) < 2:
        return None
    starts = [end for _, end in marks]
    ends = [start for start, _ in marks[1:]]
    last = SENTENCE_END.search(text, _skip_edges(text, starts[-1]))
    ends.append(last.start() if last is not None else len(text))
    items = [clean_item(text[begin:end]) for begin, end in zip(starts, ends, strict=True)]
    meant = tuple(item for item in items if is_item(item))
    if len(meant) < 2:
        return None
    parts = (text[: marks[0][0]], text[ends[-1] :].lstrip(".。!！?？"))
    rest = "\n".join(filter(None, (part.strip(EDGES) for part in parts)))
    return Listing(meant, rest)


def _skip_edges(text: str, start: int) -> int:
    """Go past punctuation right behind a marker, so that it does not end the sentence."""
    while start < len(text) and text[start] in EDGES:
        start += 1
    return start
