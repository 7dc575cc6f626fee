"""Text inside prompts: other people's words fenced and labelled, budgets kept, cuts said.

What agents wrote is hostile. It stands between fences that are longer than any run of fence
characters in it, so it cannot end its own fence; the label names whose words they are; characters
that nobody sees are taken out. What is cut is said outside the fence, where only we write.
Source: DESIGN sections 12 and 16.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

FENCE = "~"
FENCE_LENGTH = 4
LABEL_CHARACTERS = 160
_RUNS = re.compile(rf"{FENCE}+")
_JOINERS = "\u200c\u200d"
_ASCII_PER_TOKEN = 4
_UNSEEN_BLOCKS = ((0, 0x14000), (0x1BC00, 0x1D200), (0xE0000, 0xE1000))
"""Where Unicode keeps what shows nothing; looking at every block takes ten times as long."""


@lru_cache(maxsize=1)
def _unseen() -> Mapping[int, None]:
    """The characters that show nothing: controls, invisible formats, marks of direction."""
    return {
        code: None
        for start, end in _UNSEEN_BLOCKS
        for code in range(start, end)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs")
        and chr(code) not in "\n\t" + _JOINERS
    }


_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\u0085\x0b\x0c]")


def visible(text: str) -> str:
    """Take out what nobody would see and make every line end the same."""
    return _LINE_ENDS.sub("\n", text).translate(_unseen())


def one_line(text: str, limit: int = LABEL_CHARACTERS) -> str:
    """Put text on one line that cannot open a fence, a heading or a table cell; cut it with an …"""
    line = " ".join(visible(text).split()).replace(FENCE, "-").replace("`", "'").replace("|", "/")
    line = line.lstrip("#>-*+ ")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def fenced(text: str, *, label: str) -> str:
    """Fence somebody's words, with a label of whose they are."""
    clean = visible(text).strip("\n")
    longest = max(map(len, _RUNS.findall(clean)), default=0)
    fence = FENCE * max(FENCE_LENGTH, longest + 1)
    return f"{fence} {one_line(label)}\n{clean}\n{fence}"


@dataclass(frozen=True, slots=True)
class CutWords:
    """How a cut is said. Shape: formats with `{shown}`, `{total}`; `{count}`, `{where}`.

    `said` collects what was said: only we know which of such words in a layer are ours.
    """

    text: str
    parts: str
    where: str
    said: list[str] = field(default_factory=list, compare=False)

    def of_text(self, shown: int, total: int) -> str:
        """Say that a text was cut."""
        self.said.append(self.text.format(shown=f"{shown:,}", total=f"{total:,}", where=self.where))
        return self.said[-1]

    def of_parts(self, count: int) -> str:
        """Say that whole parts were left out."""
        self.said.append(self.parts.format(count=count, where=self.where))
        return self.said[-1]


def quoted(text: str, *, label: str, limit: int, cut: CutWords) -> str:
    """Fence somebody's words up to a limit, and say outside the fence what was cut.

    Units: characters.
    """
    if len(text) <= limit:
        return fenced(text, label=label)
    return f"{fenced(text[:limit], label=label)}\n{cut.of_text(limit, len(text))}"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a prompt, within its budget. Units: characters."""

    key: str
    title: str
    text: str
    budget: int
    is_cut: bool = False


def compose(
    key: str, title: str, parts: Sequence[str], *, budget: int, cut: CutWords
) -> Layer | None:
    """Put the parts of a layer together while the budget lasts; the rest is counted and said.

    Shape: None without parts. A part is kept whole or not at all; parts cut their own texts, and
    say so to the same list as `cut`.
    """
    given = [part.strip("\n") for part in parts if part.strip()]
    if not given:
        return None
    kept: list[str] = []
    used = 0
    for at, part in enumerate(given):
        used += len(part) + 2
        if used > budget:
            kept.append(cut.of_parts(len(given) - at))
            break
        kept.append(part)
    text = "\n\n".join(kept)
    return Layer(key, title, text, budget, is_cut=bool(cut.said))


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text: four ASCII characters, or one of any other script, are one."""
    ascii_count = sum(map(str.isascii, text))
    return -(-ascii_count // _ASCII_PER_TOKEN) + len(text) - ascii_count
