"""Write Markdown around other people's words, so that none of them is ever read as markup.

Agents' text is hostile: it may not open a heading, a table cell, a fence, a link, a picture or
HTML. Characters that nobody sees are taken out first.
Source: DESIGN section 16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orchestration.rules.prompt_text import visible

_MEANT = re.compile(r"([\\`*_{}\[\]()<>#|!~$^=+&@:-])")
_SPELT = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_DRAWN = re.compile(r"[^\w .,()/-]")
_TICKS = re.compile(r"`+")
CELL_CHARACTERS = 500


def plain(text: str, limit: int | None = None) -> str:
    """Write somebody's words on one line, as words only; cut at `limit` characters with an …"""
    line = " ".join(visible(text).split())
    if limit is not None and len(line) > limit:
        line = line[: limit - 1] + "…"
    escaped = _MEANT.sub(lambda hit: _SPELT.get(hit[1], "\\" + hit[1]), line)
    # "1." at the start of a line would begin a list.
    return re.sub(r"^(\d+)\.", r"\1\\.", escaped)


def block(text: str) -> str:
    """Write somebody's words as they are, in a fence that nothing in them can close."""
    clean = visible(text).strip("\n")
    longest = max(map(len, _TICKS.findall(clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def code(text: str) -> str:
    """Write a path or a command as code on one line, whatever it holds."""
    line = " ".join(visible(text).split()).replace("|", "\\|")
    longest = max(map(len, _TICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Draw a table. Shape: cells are Markdown already (`plain` or `code`)."""
    lines = [_line(heads), _line(["---"] * len(heads)), *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def drawn(text: str, limit: int = 60) -> str:
    """Write a label of a Mermaid node: what could end it is written by its number."""
    line = " ".join(visible(text).split())
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return _DRAWN.sub(lambda hit: f"#{ord(hit[0])};", line)
