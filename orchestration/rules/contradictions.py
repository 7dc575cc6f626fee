"""L2 logic: what an agent says against what its own record shows.

A claim of passing tests whose newest recorded run failed is contradicted; so is a count that is not
the run's, and a run with fewer tests than the one before. No record is no evidence, and contradicts
nothing.
Source: DESIGN section 8 ("Layers"), CASES A-01, A-10, A-11.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.rules.tool_record import Call, Check, check_of, unwrap_shell

SAID: Mapping[Check, re.Pattern[str]] = {
    Check.TESTS: re.compile(
        r"测试(?:全部|都|均|已|已经)*通过|(?:全部|所有)(?:的)?测试(?:都|均)?(?:已)?通过|"
        r"\b(?:all\s+)?(?:the\s+)?(?:unit\s+|integration\s+)?tests?\s+(?:all\s+|now\s+)?"
        r"(?:pass(?:es|ed|ing)?|succeed(?:ed|s)?|(?:are|is)\s+(?:all\s+)?(?:green|passing))\b|"
        r"\b\d+\s+(?:tests?\s+)?passed\b",
        re.IGNORECASE,
    ),
    Check.BUILD: re.compile(
        r"(?:编译|构建)(?:已|已经)?(?:通过|成功)|"
        r"\b(?:it\s+|code\s+|project\s+)?(?:builds|compiles)\b(?!\s*(?:fail|error))|"
        r"\bbuild\s+(?:pass(?:es|ed)|succeed(?:ed|s)|is\s+green)\b",
        re.IGNORECASE,
    ),
}
_NEGATED = re.compile(
    r"(?:没有?|未|不|并非|尚未)\s*$|\b(?:not|never|no longer|n't|until|once|if|when|make|so that)"
    r"\s+(?:all\s+)?(?:the\s+)?$",
    re.IGNORECASE,
)
_PASSED = re.compile(
    r"\b(\d{1,7})\s++(?:tests?\s++)?(?:passed|passing)\b|"
    r"(?:通过|pass)\s*+(?:[:：]\s*+)?(\d{1,7})\s*+(?:个|项|条)?(?:测试|用例)",
    re.IGNORECASE,
)
_FAILED = re.compile(r"\b(\d{1,7})\s+(?:tests?\s+)?(?:failed|failures?|errors?)\b", re.IGNORECASE)
_RAN = re.compile(r"\bRan (\d{1,7}) tests?\b")
_SAID_TO_FAIL = re.compile(
    r"(?:测试|编译|构建)(?:失败|未通过|不通过)|未完成|尚未完成|\b(?:tests?|build)\s+(?:still\s+)?"
    r"(?:fails?|failed|failing)\b|\bdoes not (?:compile|build|work)\b|"
    r"\bnot (?:finished|done|complete)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests a run passed and failed."""

    passed: int
    failed: int

    @property
    def total(self) -> int:
        """All that ran."""
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A claim and the call that says otherwise.

    Shape: `text` is where it was claimed; `is_fewer` says that nothing failed, but fewer tests ran.
    """

    text: str
    why: str
    call: Call
    kind: Check = Check.TESTS
    is_fewer: bool = False

    @property
    def key(self) -> str:
        """The same contradiction again has the same key."""
        return claim_key("fewer tests" if self.is_fewer else self.text)


def claim_key(text: str) -> str:
    """Name what is claimed, so that the same claim again is the same finding."""
    digest = hashlib.sha256(" ".join(text.split()).casefold().encode()).hexdigest()
    return f"claim:{digest[:40]}"


def counts_in(output: str) -> Counts | None:
    """Read the counts of a test run from its output; the last summary counts."""
    passed = [int(one or other) for one, other in _PASSED.findall(output)]
    failed = [int(one) for one in _FAILED.findall(output)]
    if passed:
        return Counts(passed[-1], failed[-1] if failed else 0)
    ran = [int(one) for one in _RAN.findall(output)]
    if ran:
        bad = failed[-1] if failed else 0
        return Counts(max(0, ran[-1] - bad), bad)
    return None


def claims_to_pass(text: str, kind: Check) -> bool:
    """Whether a text says that tests pass or that it builds, and not the opposite."""
    return any(
        not _NEGATED.search(text[max(0, found.start() - 20) : found.start()])
        for found in SAID[kind].finditer(text)
    )


def contradictions(texts: Iterable[str], calls: Sequence[Call]) -> list[Contradiction]:
    """Hold what is said against the newest conclusive call of its kind.

    Shape: `calls` of one task, oldest first, so that the run before the newest is known.
    """
    found: list[Contradiction] = []
    for kind in SAID:
        runs = [one for one in calls if one.command and check_of(one.command) is kind]
        if not runs:
            continue
        last = runs[-1]
        counted = counts_in(last.output_tail) if kind is Check.TESTS else None
        for text in texts:
            why = _why(text, kind, last, counted)
            if why:
                found.append(Contradiction(text, why, last, kind))
        if kind is Check.TESTS and any(claims_to_pass(text, kind) for text in texts):
            found += _fewer(runs, counted)
    return found


def _why(text: str, kind: Check, last: Call, counted: Counts | None) -> str:
    """Why a text is contradicted by the last run, or the empty string."""
    shown = unwrap_shell(last.command)[:200]
    if claims_to_pass(text, kind) and not last.is_ok:
        code = f"exit {last.exit_code}" if last.exit_code is not None else last.outcome
        return f"the newest recorded run of {shown} ended with {code}"
    claimed = counts_in(text) if kind is Check.TESTS else None
    if claimed is None or counted is None:
        return ""
    if claimed.passed != counted.passed:
        return f"{shown} passed {counted.passed} and not {claimed.passed}"
    if claimed.failed == 0 and counted.failed:
        return f"{shown} failed {counted.failed}"
    return ""


def _fewer(runs: Sequence[Call], counted: Counts | None) -> list[Contradiction]:
    """Flag a run with fewer tests than an earlier one of the same command."""
    if counted is None or not runs[-1].is_ok:
        return []
    last = runs[-1]
    same = [counts_in(one.output_tail) for one in runs[:-1] if one.command == last.command]
    most = max((one.total for one in same if one is not None), default=0)
    if most <= counted.total:
        return []
    why = f"{counted.total} tests ran, {most} in an earlier run of the same command"
    return [Contradiction("tests pass", why, last, is_fewer=True)]


def inconsistencies(assertions: Sequence[Mapping[str, Any]], status: str) -> list[str]:
    """List what does not hold together in itself: work in this form cannot be judged."""
    findings: list[str] = []
    levels: dict[str, set[str]] = {}
    for one in assertions:
        words = " ".join(str(one.get("claim", "")).split())
        levels.setdefault(words.casefold(), set()).add(str(one.get("confidence", "")))
        says_no = one.get("confidence") == "verified" and _SAID_TO_FAIL.search(words)
        if status == "review" and says_no:
            findings.append(f"handed in for review, yet it claims as verified: {words[:200]}")
    for words, given in levels.items():
        if len(given) > 1:
            findings.append(f"claimed both as {' and as '.join(sorted(given))}: {words[:200]}")
    return findings
