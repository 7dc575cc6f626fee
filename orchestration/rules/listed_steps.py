"""The planner seat `rules`: turn a message that lists its own steps into a plan document.

* Numbered lines (1. / 1) / 1、/（1）/ ① / 一、/ 第一步 / Step 1) are a chain; 2a and 2b run
  together.
* Bulleted lines run in parallel, unless one says what it waits for: it starts with "then" or
  "finally", speaks of "the above", names another bullet by number, or names the same file.
* What is indented below an item, or bulleted below a number, belongs to that item.
* Else the sentences are searched (`inline_steps`); what they list is a chain.

Text around the list is the summary. Linear in the length of the message. Source: DESIGN section 7.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from orchestration.contracts.graph import find_cycle
from orchestration.rules.inline_steps import (
    ENGLISH_NUMBER,
    WORD_NUMBER,
    clean_item,
    inline_listing,
    is_item,
    number_of,
)

TAB_WIDTH = 4


class Family(StrEnum):
    """Kinds of markers. A list keeps to one kind; the others below it belong to its items."""

    STEP = "step"
    DIGIT = "digit"
    PAREN = "paren"
    CIRCLE = "circle"
    NUMERAL = "numeral"
    BULLET = "bullet"
    SECTION = "section"


PREFIX = r"(?P<heading>#{1,6}\s+)?(?:\*\*|__)?"
MARKERS: Sequence[tuple[Family, re.Pattern[str]]] = tuple(
    (family, re.compile(PREFIX + pattern, re.IGNORECASE))
    for family, pattern in (
        (
            Family.STEP,
            rf"(?:第\s?(?P<a>{WORD_NUMBER})\s?步|步骤\s?(?P<b>{WORD_NUMBER})"
            rf"|step\s(?P<c>{ENGLISH_NUMBER})(?P<letter>[a-z])?\b)\s*[:：,，、.．)）—-]?\s*",
        ),
        (Family.SECTION, r"(?P<a>\d{1,3}(?:\.\d{1,3}){1,4})[.)）、]?\s+"),
        (Family.DIGIT, r"(?P<a>\d{1,3})(?P<letter>[a-z])?\s?(?:[.．:：](?!\d)|[)）、])\s*"),
        (Family.PAREN, r"[（(](?P<a>\d{1,3}|[一二三四五六七八九十]{1,3})[)）]\s*"),
        (Family.CIRCLE, "(?P<a>[\u2460-\u2473])\\s*"),
        (Family.CIRCLE, "(?P<a>\\d)\ufe0f?\u20e3\\s*"),
        (Family.NUMERAL, r"(?P<a>[一二三四五六七八九十]{1,3})\s?[、.．]\s*"),
        (
            Family.BULLET,
            r"(?:[-*+–—]\s+|[•·‣▪◦●○]\s*)(?P<box>\[[ xX]\]\s*)?",
        ),
    )
)
MARKER_START = re.compile("[#*_\\d（(一二三四五六七八九十\u2460-\u2473第步sS+–—•·‣▪◦●○-]")
"""What a marked line can begin with; most lines of a long text do not."""
FENCE = ("```", "~~~")
NOTES = re.compile(
    r"(?:\*\*|#{1,6}\s+)?(?:notes?|constraints?|requirements?|background|context|assumptions?"
    r"|acceptance criteria|out of scope|thanks|thank you"
    r"|注意|备注|说明|要求|约束|限制|背景|前提|验收标准|谢谢)(?![a-z])",
    re.IGNORECASE,
)
CHOICE = re.compile(r"(?:\bwhich\b|\bwhat\b|\bwhy\b|\bwho\b|哪|什么|为何|区别)", re.IGNORECASE)
SOFT_OPENING = re.compile(
    r"(?:and\s+)?(?:then|next|after that|afterwards?)\b|然后|接着|接下来|随后|之后|再",
    re.IGNORECASE,
)
FINAL_OPENING = re.compile(r"(?:and\s+)?(?:finally|lastly|at the end)\b|最后|最终", re.IGNORECASE)
ALL_ABOVE = re.compile(
    r"\b(?:the|all) above\b|\ball (?:of )?(?:the )?(?:previous|other|preceding)\b|以上|上述"
    r"|前面[的各几]|前述",
    re.IGNORECASE,
)
NAMED_ITEM = re.compile(
    r"(?:\bafter|\bdepends? on|\bbased on|\bneeds|\brequires|依赖|基于|等待?|在)\s{0,3}"
    r"(?:step|item|task|point|bullet|步骤|任务)?\s{0,2}(?:第|#)?\s?(\d{1,3})(?![\d.])",
    re.IGNORECASE,
)
FILE_NAME = re.compile(r"(?<![\w./-])[A-Za-z0-9_./-]{1,120}\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/-])")
NOT_FILES = frozenset({"e.g", "i.e", "node.js", "vue.js", "next.js", "three.js", "d3.js"})


@dataclass(frozen=True, slots=True)
class Marker:
    """How a line is marked. Shape: `number` and `letter` as in 2a; `is_done` for a ticked box."""

    family: Family
    indent: int
    rest: str
    number: int | None
    letter: str
    is_heading: bool
    is_done: bool


@dataclass(slots=True)
class Item:
    """One item of the list while it is being read."""

    marker: Marker
    lines: list[str] = field(default_factory=list)

    @property
    def action(self) -> str:
        """The text of the step."""
        return clean_item("\n".join(line for line in self.lines if line))


def plan_from_message(text: str) -> dict[str, Any] | None:
    """Turn a message that lists its own steps into a plan document; None when it lists none.

    Shape: `{summary, steps: [{id, action, depends_on}]}`, which `parse_plan` accepts unless there
    are more steps than a plan may have.
    """
    lines = text.splitlines()
    markers = _markers(lines)
    family = _top_family(markers)
    if family is not None:
        items, rest = _items(lines, markers, family)
        if _asks_to_choose(rest):
            return None
        if len(items) > 1:
            return _document(
                rest, list(_bulleted(items) if family is Family.BULLET else _chain(items))
            )
    listing = inline_listing(text)
    if listing is None:
        return None
    steps = [
        _step(str(at), action, [str(at - 1)] if at > 1 else [])
        for at, action in enumerate(listing.items, 1)
    ]
    return _document(listing.rest, steps)


def _document(rest: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"summary": rest, "steps": steps}


def _step(key: str, action: str, depends_on: list[str]) -> dict[str, Any]:
    return {"id": key, "action": action, "depends_on": depends_on}


def _markers(lines: Sequence[str]) -> list[Marker | None]:
    """Read the marker of each line. Shape: None for a line without one, or inside a fence."""
    markers: list[Marker | None] = []
    is_fenced = False
    for line in lines:
        bare = line.lstrip()
        if bare.startswith(FENCE):
            is_fenced = not is_fenced
        markers.append(None if is_fenced else _marker(line, bare))
    return markers


def _marker(line: str, bare: str) -> Marker | None:
    if MARKER_START.match(bare) is None:
        return None
    for family, pattern in MARKERS:
        found = pattern.match(bare)
        if found is None:
            continue
        groups = found.groupdict()
        word = next((groups[name] for name in "abc" if groups.get(name)), "")
        return Marker(
            family=family,
            indent=_indent(line[: len(line) - len(bare)]),
            rest=bare[found.end() :],
            number=number_of(word),
            letter=(groups.get("letter") or "").lower(),
            is_heading=bool(groups["heading"]),
            is_done="x" in (groups.get("box") or "").lower(),
        )
    return None


def _indent(space: str) -> int:
    return len(space.replace("\t", " " * TAB_WIDTH).replace("\u3000", "  "))


def _top_family(markers: Iterable[Marker | None]) -> Family | None:
    """Find the outermost kind of list with two items; numbers before bullets, then the earlier.

    1.1 and 1.2 never lead: below 1. they are its parts, and alone they are as often decimals.
    """
    found = [marker for marker in markers if marker is not None]
    outer: dict[Family, int] = {}
    for marker in found:
        outer[marker.family] = min(marker.indent, outer.get(marker.family, marker.indent))
    counts = Counter(one.family for one in found if one.indent <= outer[one.family] + 1)
    lists = [one for one in outer if counts[one] > 1 and one is not Family.SECTION]
    return min(lists, key=lambda one: (outer[one], one is Family.BULLET), default=None)


def _items(
    lines: Sequence[str], markers: Sequence[Marker | None], family: Family
) -> tuple[list[Item], str]:
    """Read the items of the list, and the text around them."""
    base = min(one.indent for one in markers if one is not None and one.family is family)
    items: list[Item] = []
    rest: list[str] = []
    current: Item | None = None
    is_noted = after_blank = False
    for line, marker in zip(lines, markers, strict=True):
        if not line.strip():
            after_blank = True
            continue
        is_top = marker is not None and marker.family is family and marker.indent <= base + 1
        if is_top and marker is not None and not marker.is_done and not is_noted:
            current = Item(marker, [marker.rest])
            items.append(current)
        elif is_top or not _belongs(line, marker, current, after_blank=after_blank):
            current = None
            rest.append(line.strip())
            # Bullets below "Notes:" are notes; a number always goes on with the steps.
            if marker is None:
                is_noted = family is Family.BULLET and NOTES.match(line.strip()) is not None
        elif current is not None:
            current.lines.append(line.strip())
        after_blank = False
    return [one for one in items if is_item(one.action)], "\n".join(rest)


def _belongs(line: str, marker: Marker | None, current: Item | None, *, after_blank: bool) -> bool:
    """Say whether a line goes on with the current item."""
    if current is None:
        return False
    indent = _indent(line[: len(line) - len(line.lstrip())])
    if marker is not None or indent > current.marker.indent or current.marker.is_heading:
        return True
    return not after_blank and NOTES.match(line) is None


def _asks_to_choose(rest: str) -> bool:
    """Say whether the text before a list asks which of its entries, so that they are no steps."""
    last = next((line for line in reversed(rest.splitlines()) if line), "").rstrip()
    return last.endswith(("?", "？")) and CHOICE.search(last) is not None


def _chain(items: list[Item]) -> Iterator[dict[str, Any]]:
    """Make each item wait for the one before; 2a and 2b wait for 1 and not for each other."""
    labels = [f"{one.marker.number}{one.marker.letter}" for one in items]
    is_labelled = len(set(labels)) == len(labels) and all(one.marker.number for one in items)
    keys = labels if is_labelled else [str(at) for at in range(1, len(items) + 1)]
    before: list[str] = []
    group: list[str] = []
    previous: Marker | None = None
    for key, item in zip(keys, items, strict=True):
        marker = item.marker
        is_beside = previous is not None and bool(previous.letter and marker.letter)
        if not (is_labelled and is_beside and previous and previous.number == marker.number):
            before, group = group, []
        yield _step(key, item.action, list(before))
        group.append(key)
        previous = marker


def _bulleted(items: list[Item]) -> Iterator[dict[str, Any]]:
    """Make bullets parallel but for what they say about each other."""
    actions = [item.action for item in items]
    needs = _bullet_needs(actions, only_earlier=False)
    if find_cycle(needs) is not None:
        needs = _bullet_needs(actions, only_earlier=True)
    for key, action in zip(needs, actions, strict=True):
        yield _step(key, action, needs[key])


def _bullet_needs(actions: list[str], *, only_earlier: bool) -> dict[str, list[str]]:
    needs: dict[str, list[str]] = {}
    ends: dict[str, None] = {}
    makers: dict[str, str] = {}
    for at, action in enumerate(actions, 1):
        key = str(at)
        wanted: dict[str, None] = {}
        if FINAL_OPENING.match(action) or ALL_ABOVE.search(action):
            wanted.update(ends)
        elif SOFT_OPENING.match(action) and at > 1:
            wanted[str(at - 1)] = None
        for named in map(int, NAMED_ITEM.findall(action)):
            if 1 <= named <= len(actions) and named != at and (named < at or not only_earlier):
                wanted[str(named)] = None
        for name in _file_names(action):
            if name in makers:
                wanted[makers[name]] = None
            makers[name] = key
        needs[key] = list(wanted)
        for one in wanted:
            ends.pop(one, None)
        ends[key] = None
    return needs


def _file_names(action: str) -> list[str]:
    found = dict.fromkeys(name.lower() for name in FILE_NAME.findall(action))
    return [name for name in found if name not in NOT_FILES]
