"""Read how many tests a tool says it ran, from the end of its output.

Source: the summaries of pytest, unittest, go test -v, node --test (TAP and spec), Jest, Vitest,
Mocha, Bun and cargo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER = r"(\d{1,7})"
_LINE = r"^[^\S\n]*+"
"""The start of a line and its indent: one that ran over line ends would read blank lines again."""
_PYTEST_LINE = re.compile(
    r"^.{0,200}\b(?:passed|failed|errors?)\b.{0,100} in \d[\d.:]*s.*$", re.MULTILINE
)
_RAN = re.compile(rf"^Ran {_NUMBER} tests? in ", re.MULTILINE)
_RAN_FAILED = re.compile(r"^FAILED \(([^)]{1,100})\)", re.MULTILINE)
_PAIRS = (
    (re.compile(rf"^# pass {_NUMBER}$", re.M), re.compile(rf"^# fail {_NUMBER}$", re.M)),
    (re.compile(rf"^ℹ pass {_NUMBER}$", re.M), re.compile(rf"^ℹ fail {_NUMBER}$", re.M)),
    (
        re.compile(rf"^Tests:.{{0,100}}?\b{_NUMBER} passed", re.M),
        re.compile(rf"^Tests:.{{0,100}}?\b{_NUMBER} failed", re.M),
    ),
    (
        re.compile(rf"{_LINE}Tests .{{0,60}}?\b{_NUMBER} passed", re.M),
        re.compile(rf"{_LINE}Tests .{{0,60}}?\b{_NUMBER} failed", re.M),
    ),
    (
        re.compile(rf"{_LINE}{_NUMBER} passing\b", re.M),
        re.compile(rf"{_LINE}{_NUMBER} failing\b", re.M),
    ),
    (re.compile(rf"{_LINE}{_NUMBER} pass$", re.M), re.compile(rf"{_LINE}{_NUMBER} fail$", re.M)),
    (
        re.compile(rf"^test result: .{{0,20}}?{_NUMBER} passed", re.M),
        re.compile(rf"^test result: .{{0,60}}?{_NUMBER} failed", re.M),
    ),
)
_COVERAGE_PY = re.compile(r"^TOTAL +\d{1,9} +\d{1,9} +(\d{1,3}(?:\.\d{1,4})?)%$", re.MULTILINE)
"""Without branches: with them its last column is lines and branches in one."""
_ISTANBUL = re.compile(
    r"^All files *\|[ \d.]{1,20}\| *([\d.]{1,8}) *\| *([\d.]{1,8}) *\| *([\d.]{1,8}) *\|",
    re.MULTILINE,
)
_GO = re.compile(r"^--- (PASS|FAIL): ", re.MULTILINE)
_NOTHING = re.compile(
    r"\bno tests ran\b|\[no test files\]|\b0 test files matching\b|\bNo tests? (?:files )?found\b",
    re.IGNORECASE,
)
CUT_BYTES = 8_180
"""A tail this long is the end of a longer output: what each test says is not all there."""
TELLS_AS_IT_GOES = ("go", "test", "-v")
"""It prints no summary at the end, so that the end of a long output may show no test."""
ALWAYS_COUNT = (
    TELLS_AS_IT_GOES,
    ("python3", "-m", "pytest"),
    ("python3", "-m", "unittest"),
    ("node", "--test"),
    ("bun", "test"),
)
"""Commands that tell their counts whenever they ran a test."""


@dataclass(frozen=True, slots=True)
class TestCounts:
    """How many tests a run had."""

    __test__ = False

    passed: int
    failed: int


def read_counts(output: str) -> TestCounts | None:
    """Read the counts of one run; None where no known summary is there."""
    lines = _PYTEST_LINE.findall(output)
    if lines:
        return TestCounts(_in(lines[-1], "passed"), _in(lines[-1], r"(?:failed|errors?)"))
    ran = _RAN.findall(output)
    if ran:
        troubles = sum(map(int, re.findall(r"(?:failures|errors)=(\d{1,7})", _failures(output))))
        return TestCounts(max(0, int(ran[-1]) - troubles), troubles)
    for good, bad in _PAIRS:
        passed = good.findall(output)
        failed = bad.findall(output)
        if passed or failed:
            return TestCounts(sum(map(int, passed)), sum(map(int, failed)))
    told = [] if is_cut(output) else _GO.findall(output)
    return TestCounts(told.count("PASS"), told.count("FAIL")) if told else None


def read_coverage(output: str) -> dict[str, float]:
    """Read the coverage that a run prints, in per cent, by what it is of; nothing where it is none.

    Source: the TOTAL of coverage.py (lines alone), and the table of Istanbul.
    """
    table = _ISTANBUL.findall(output)
    if table:
        branches, functions, lines = map(float, table[-1])
        return {"lines": lines, "branches": branches, "functions": functions}
    total = _COVERAGE_PY.findall(output)
    return {"lines": float(total[-1])} if total else {}


def is_cut(output: str) -> bool:
    """Whether an output is only the end of what was printed."""
    return len(output.encode()) >= CUT_BYTES


def ran_nothing(argv: Sequence[str], output: str, exit_code: int | None) -> bool:
    """Whether a run had no test at all: then it proves nothing, however it ended."""
    counts = read_counts(output)
    if counts is not None:
        return counts.passed + counts.failed == 0
    if exit_code == 5 or _NOTHING.search(output) is not None:
        return True
    runner = next((one for one in ALWAYS_COUNT if tuple(argv[: len(one)]) == one), None)
    if runner is None or exit_code != 0:
        return False
    return runner != TELLS_AS_IT_GOES or not is_cut(output)


def _in(line: str, word: str) -> int:
    return sum(int(one) for one in re.findall(rf"(\d{{1,7}}) {word}\b", line))


def _failures(output: str) -> str:
    found = _RAN_FAILED.findall(output)
    return found[-1] if found else ""
