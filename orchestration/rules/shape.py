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
_INLINE_START = re.compile(r"[1一a][)）、．.:：]|①")
_INLINE_ITEM = re.compile(
    rf"(?<![\w.])(\d{{1,2}}|[{_NUMERALS}]|[a-h])(?:[)）、．]|[.:：](?!\d))|([①-⑳])", re.ASCII
)
_INLINE_LENGTH = 20_000
"""A list in one line is looked for in this many characters; anything longer is long anyway."""
_COUNTED = (
    tuple(str(number) for number in range(1, 100)),
    tuple(_NUMERALS),
    tuple("abcdefgh"),
    tuple("①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"),
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
        head = text[:_INLINE_LENGTH]
        items = _inline_items(head) if _INLINE_START.search(head) is not None else []
    return items, len(items)


def _inline_items(text: str) -> list[Signal]:
    """Find the markers of a list written in one line, such as `1. … 2. …`, counted from one."""
    runs: tuple[list[Signal], ...] = tuple([] for _ in _COUNTED)
    for match in _INLINE_ITEM.finditer(text):
        number = match[1] or match[2]
        for counted, run in zip(_COUNTED, runs, strict=True):
            if len(run) < len(counted) and number == counted[len(run)]:
                run.append(Signal("list", match[0], match.start()))
    longest = max(runs, key=len)
    return longest if len(longest) >= 2 else []
