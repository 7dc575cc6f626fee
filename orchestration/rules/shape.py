"""What the shape of a text says: its length, its paragraphs, its lists.

Source: DESIGN section 5.
"""

from __future__ import annotations

import re

from orchestration.rules.phrases import MAX_HITS, Signal

_NUMERALS = "一二三四五六七八九十"
_ITEM = (
    r"[ \t]{0,20}+(?P<marker>[-*+](?=\s)|[•·‣◦●○▪■□☐☑✓①-⑳]"
    r"|[(（]?\d{1,3}(?:[)）、．]|[.:：](?!\d))"
    rf"|[(（]?[{_NUMERALS}]{{1,3}}[)）、．.]|第[{_NUMERALS}\d]{{1,3}}[步点条]"
    r"|step \d{1,2}\b|[a-h][.)](?=\s))"
)
_FIRST_ITEM = re.compile(_ITEM)
# The look-ahead refuses most lines after one character.
_ITEM_START = rf"(?=[ \t(（\-*+•·‣◦●○▪■□☐☑✓①-⑳\d{_NUMERALS}第sa-h])"
_NEXT_ITEM = re.compile(r"\n" + _ITEM_START + _ITEM)
_INLINE_LENGTH = 20_000
"""A list in one line is looked for in this many characters; anything longer is long anyway."""


def _marker(number: str) -> tuple[str, re.Pattern[str]]:
    """Compile the marker of one item; the literal number comes first, so the search skips ahead."""
    after = "" if number in _CIRCLED else r"(?:[)）、．]|[.:：](?!\d))"
    if "a" <= number <= "z":
        after = r"(?:[)）、．]|\.(?=\s))"
    return number, re.compile(rf"{number}(?<![\w.]{number}){after}", re.ASCII)


_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_COUNTS = (
    tuple(_marker(str(number)) for number in range(1, 31)),
    tuple(_marker(number) for number in _NUMERALS),
    tuple(_marker(letter) for letter in "abcdefgh"),
    tuple(_marker(number) for number in _CIRCLED),
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")
_LINE_BREAK = re.compile(r"\n\s*+")


def shape_signals(text: str, length_limit: int) -> list[tuple[Signal, int]]:
    """Find what the shape of a stripped, folded text says.

    Shape: signals with offsets into this text, each with the count of its kind. The text of
    `length` is the length, that of `paragraphs` the number of lines.
    """
    found: list[tuple[Signal, int]] = []
    if len(text) > length_limit:
        found.append((Signal("length", str(len(text)), length_limit), 1))
    if "\n" in text:
        lines = text.count("\n") + 1
        second = _BLANK_LINE.search(text) or (_LINE_BREAK.search(text) if lines > 2 else None)
        if second is not None:
            found.append((Signal("paragraphs", str(lines), second.end()), 1))
    items, total = list_items(text)
    return found + [(item, total) for item in items]


def list_items(text: str) -> tuple[list[Signal], int]:
    """Find the markers of a list of at least two items, one a line or all in one line.

    Shape: at most MAX_HITS markers, and how many items there are.
    """
    items: list[Signal] = []
    if "\n" in text:
        first = _FIRST_ITEM.match(text)
        if first is not None:
            items.append(Signal("list", first["marker"], first.start("marker")))
        for item in _NEXT_ITEM.finditer(text):
            if len(items) >= MAX_HITS:
                return items, len(_NEXT_ITEM.findall(text)) + (first is not None)
            items.append(Signal("list", item["marker"], item.start("marker")))
    if len(items) < 2:
        items = _inline_items(text if len(text) <= _INLINE_LENGTH else text[:_INLINE_LENGTH])
    return items, len(items)


def _inline_items(text: str) -> list[Signal]:
    """Find the markers of a list written in one line, such as `1. … 2. …`, counted from one."""
    longest: list[Signal] = []
    for markers in _COUNTS:
        run: list[Signal] = []
        position = 0
        for number, pattern in markers:
            match = pattern.search(text, position) if number in text else None
            if match is None:
                break
            run.append(Signal("list", match[0], match.start()))
            position = match.end()
        if len(run) > max(1, len(longest)):
            longest = run
    return longest
