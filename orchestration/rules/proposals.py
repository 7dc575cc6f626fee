"""`proposal.md`: why a change is made, what it changes, and what that touches.

Source: FORMATS ("strict-plan documents").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestration.rules.marked_text import (
    Faults,
    Line,
    field_of,
    folded,
    heading_of,
    labels_of,
    read_lines,
)

PROPOSAL_MD = "proposal.md"
SECTIONS: Mapping[str, Sequence[str]] = {
    "reason": ("why", "原因", "为什么", "理由"),
    "changes": ("what changes", "变更", "变更内容", "改动"),
    "impact": ("影响", "影响范围"),
}
IMPACT: Mapping[str, Sequence[str]] = {
    "specs": ("affected specs", "规格", "受影响的规格", "需求"),
    "code": ("affected code", "代码", "受影响的代码"),
}
SECTION_LABELS, IMPACT_LABELS = labels_of(SECTIONS), labels_of(IMPACT)
SENTENCE_END = re.compile(r"[。！？!?]+|\.(?=\s|$)")
BULLET = re.compile(r" {0,3}[-*+][ \t]+(\S.*)")
MARKED = re.compile(r"\*{0,2}BREAKING\*{0,2}\b")
UNMARKED = re.compile(
    r"breaking change|backward[s -]{1,3}incompatible|不兼容|破坏性", re.IGNORECASE
)
MAX_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class Proposal:
    """A parsed `proposal.md`. Shape: `changes` are (text, is_breaking)."""

    title: str
    reason: str
    changes: tuple[tuple[str, bool], ...]
    impact: Mapping[str, str]


def parse_proposal_md(text: str) -> Proposal:
    """Read `proposal.md`.

    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(PROPOSAL_MD)
    title, sections = "", dict[str, tuple[int, list[Line]]]()
    current: list[Line] | None = None
    for line in read_lines(PROPOSAL_MD, text, faults):
        heading = heading_of(line)
        if heading is not None and heading.level == 1 and not title:
            title = heading.text
        elif heading is not None and heading.level <= 2:
            name = SECTION_LABELS.get(folded(heading.text).lstrip("0123456789.、) "))
            current = []
            if name is None or name in sections:
                faults.add(line.number, f"{heading.text[:40]!r} is no section of a proposal")
            else:
                sections[name] = (line.number, current)
        elif current is not None:
            current.append(line)
    if not title:
        faults.add(1, "needs a title (`# …`)")
    for name in SECTIONS:
        if name not in sections:
            faults.add(1, f"needs the section {name!r}")
    reason = _reason(sections.get("reason"), faults)
    changes = _changes(sections.get("changes"), faults)
    impact = _impact(sections.get("impact"), faults)
    faults.check()
    return Proposal(title, reason, tuple(changes), impact)


def _reason(section: tuple[int, list[Line]] | None, faults: Faults) -> str:
    if section is None:
        return ""
    text = " ".join(line.raw.strip() for line in section[1] if line.raw.strip())
    pieces = [one for one in SENTENCE_END.split(text) if one.strip()]
    if not 1 <= len(pieces) <= MAX_SENTENCES:
        faults.add(section[0], f"the reason has {len(pieces)} sentences; one or two are asked for")
    return text


def _changes(section: tuple[int, list[Line]] | None, faults: Faults) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for line in section[1] if section is not None else ():
        listed = None if line.is_fenced else BULLET.match(line.plain)
        if listed is None:
            continue
        is_breaking = MARKED.search(listed[1]) is not None
        if not is_breaking and UNMARKED.search(listed[1]):
            faults.add(line.number, "a change that breaks something is marked **BREAKING**")
        found.append((line.raw[listed.start(1) :].strip(), is_breaking))
    if section is not None and not found:
        faults.add(section[0], "lists no change")
    return found


def _impact(section: tuple[int, list[Line]] | None, faults: Faults) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in section[1] if section is not None else ():
        named = field_of(line, IMPACT_LABELS)
        if named is not None and named[1]:
            found.setdefault(*named)
    for name in IMPACT if section is not None else ():
        if section is not None and name not in found:
            faults.add(section[0], f"the impact says nothing of {name!r}")
    return found


def render_proposal_md(proposal: Proposal) -> str:
    """Write `proposal.md`; parsing gives the same proposal back."""
    lines = [f"# {proposal.title}", "", "## Reason", "", proposal.reason, "", "## Changes", ""]
    lines += [f"- {text}" for text, _ in proposal.changes]
    lines += ["", "## Impact", ""]
    lines += [f"- {name.capitalize()}: {text}" for name, text in proposal.impact.items()]
    return "\n".join([*lines, ""])
