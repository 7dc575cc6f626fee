"""Rules of the mesh: the complexity of a message that names none, and who a text mentions.

Pure functions, linear in the text.
Source: DESIGN section 12 ("Mesh complexity", "Agent names"), source document 003.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from orchestration.states import Complexity

HIGH_WORDS = ("重构", "架构", "设计", "迁移", "从零", "全面", "系统性", "多模块")
MEDIUM_WORDS = ("步骤", "然后")
MEDIUM_ABOVE_CHARACTERS = 200
MAX_MENTIONS = 20
"""Mentions of one text that count; a text with more is no message to somebody."""
MAX_NAME_CHARACTERS = 120
MENTION = re.compile(r"(?<![A-Za-z0-9_.@-])@([\w.@-]{1,160})")
IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Scripts that write no spaces between words: a name may be followed by text at once."""
CLOSING = re.compile(r"[.@-]*\Z")


def infer_complexity(text: str) -> Complexity:
    """Say how complex a message is that carries no hint; for tasks S1 decides."""
    if any(word in text for word in HIGH_WORDS):
        return Complexity.HIGH
    if len(text) > MEDIUM_ABOVE_CHARACTERS or any(word in text for word in MEDIUM_WORDS):
        return Complexity.MEDIUM
    return Complexity.LOW


def mention_candidates(text: str) -> list[str]:
    """List every name that a text may mention, for one look-up. Shape: each once."""
    runs = _runs(text)
    return list(dict.fromkeys(name for run in runs for name in _prefixes(run)))


def mentioned(text: str, known: Collection[str]) -> list[str]:
    """List the known names that a text mentions with `@name`, in order, each once.

    The longest known name counts: `@bob-coder` is not bob. After a name comes the end of the word,
    closing marks, or a script that writes no spaces.
    """
    found: dict[str, None] = {}
    for run in _runs(text):
        name = next((one for one in _prefixes(run) if one in known), None)
        if name is not None:
            found[name] = None
    return list(found)


def _runs(text: str) -> list[str]:
    runs: dict[str, None] = {}
    for match in MENTION.finditer(text):
        runs[match[1]] = None
        if len(runs) == MAX_MENTIONS:
            break
    return list(runs)


def _prefixes(run: str) -> Iterator[str]:
    """Yield what of a run may be a name, the longest first."""
    for end in range(min(len(run), MAX_NAME_CHARACTERS), 0, -1):
        rest = run[end:]
        is_end = CLOSING.match(rest) is not None
        if is_end or IDEOGRAPHS.match(rest) or IDEOGRAPHS.match(run[end - 1]):
            yield run[:end]
