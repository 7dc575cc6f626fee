"""`.cospec/TEST_GUIDE.md`, and edits of tests that a test workflow may not make.

Source: FORMATS ("Test workflow"), CASES A-05.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from orchestration.rules.marked_text import Faults, folded, heading_of, labels_of, read_lines

TEST_GUIDE = "TEST_GUIDE.md"
PARTS: Mapping[str, Sequence[str]] = {
    "runnability commands": ("runnability", "可运行性命令", "可运行性验证", "运行命令"),
    "case management": ("test case management", "用例管理", "测试用例管理"),
    "test commands": ("测试命令",),
}
PART_LABELS = labels_of(PARTS)
TICKED = re.compile(r"`([^`]{1,500})`")
FENCE_EDGE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?/|test_|.*[._]test\.|.*[._]spec\.|.*_test\.)", re.IGNORECASE
)
TEST_CASE = re.compile(r"^\s*(?:(?:async )?def test|it\(|test\(|func Test|@Test\b)")
CHECK = re.compile(r"^\s*(?:assert\b|expect\(|self\.assert|require\.)")
DISABLED = re.compile(r"\b(?:skip|xfail|skipif|xit|xdescribe|\.only|t\.Skip)\b|@Disabled|@Ignore")


@dataclass(frozen=True, slots=True)
class TestGuide:
    """A parsed guide. Shape: `commands` are those of its first and last part."""

    __test__ = False

    commands: tuple[str, ...]


def parse_test_guide(text: str) -> TestGuide:
    """Read the guide: three parts, with commands in code.

    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(TEST_GUIDE)
    found: dict[str, tuple[int, list[str]]] = {}
    current = ""
    for line in read_lines(TEST_GUIDE, text, faults):
        heading = heading_of(line)
        if heading is not None and heading.level <= 2:
            current = PART_LABELS.get(folded(heading.text).lstrip("0123456789.、) "), "")
            if current:
                found.setdefault(current, (line.number, []))
        elif current and line.is_fenced and not FENCE_EDGE.match(line.raw) and line.raw.strip():
            found[current][1].append(line.raw.strip())
        elif current:
            found[current][1].extend(one.strip() for one in TICKED.findall(line.raw))
    commands: list[str] = []
    for name in PARTS:
        if name not in found:
            faults.add(1, f"needs the part {name!r}")
        elif name != "case management":
            if not found[name][1]:
                faults.add(found[name][0], f"the part {name!r} names no command")
            commands += found[name][1]
    faults.check()
    return TestGuide(tuple(dict.fromkeys(commands)))


def ticked_commands(text: str) -> tuple[str, ...]:
    """List what stands in backticks in a text, each once."""
    return tuple(dict.fromkeys(one.strip() for one in TICKED.findall(text)))


def weaker_file(path: str, old: str, new: str) -> list[str]:
    """Say which tests of a file are deleted, disabled or loosened from one text to the next."""
    if old == new:
        return []
    lines = unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return loosened_tests("\n".join(lines), known=[path])


def loosened_tests(diff: str, *, known: Collection[str] = ()) -> list[str]:
    """Say which tests a unified diff deletes, disables or loosens.

    `known` names files of tests whatever they are called.
    """
    found: list[str] = []
    path, removed, added, is_test = "", [0, 0], [0, 0], False
    for line in [*diff.splitlines(), "--- end"]:
        if line.startswith("--- "):
            found += _weaker(path, removed, added)
            path, removed, added = line[4:].removeprefix("a/").split("\t")[0], [0, 0], [0, 0]
            is_test = path in known or TEST_FILE.search(path) is not None
        elif line.startswith("+++ ") and is_test:
            if line[4:].strip() == "/dev/null":
                found.append(f"{path} is deleted")
        elif line[:1] in "+-" and is_test:
            side = added if line[0] == "+" else removed
            side[0] += TEST_CASE.match(line[1:]) is not None
            side[1] += CHECK.match(line[1:]) is not None
            if line[0] == "+" and DISABLED.search(line[1:]):
                found.append(f"{path} disables a test: {line[1:].strip()[:80]}")
    return found


def _weaker(path: str, removed: Sequence[int], added: Sequence[int]) -> list[str]:
    cases, checks = removed[0] - added[0], removed[1] - added[1]
    said = [f"{path} loses {cases} tests"] if cases > 0 else []
    return said + ([f"{path} loses {checks} checks"] if checks > 0 else [])
