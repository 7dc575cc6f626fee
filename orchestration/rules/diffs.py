"""A unified diff as rows that a page can show: files, hunks, numbered lines, changed words, folds.

No HTML here: changed words are ranges of characters, folds are rows. What cannot be shown whole is
refused, because a person signs what was shown. Source: DESIGN section 9, UI section 5.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from orchestration.contracts.paths import path_fault
from orchestration.errors import Fault, Invalid
from orchestration.rules.word_changes import Ranges, WorkBudget, changed_words

MAX_DIFF_BYTES = 8 * 1024 * 1024
MAX_HEADER_CHARACTERS = 1_000
FOLD_OVER_LINES = 8
LINES_BESIDE_A_CHANGE = 3
FILE_FOLDED_OVER_LINES = 400
NO_FILE = "/dev/null"
HEADERS = ("diff --git ", "Binary file")
PREFIX = re.compile(r"[abciow12]/")
QUOTED = re.compile(rb"\\([0-7]{3}|.)")
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}

LineKind = Literal["context", "added", "removed"]
FileKind = Literal["added", "removed", "modified", "renamed"]
KINDS: dict[str, LineKind] = {" ": "context", "+": "added", "-": "removed"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line. Shape: `changes` are the ranges of characters that differ from its counterpart."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    text: str
    changes: Ranges = ()
    has_newline: bool = True


@dataclass(frozen=True, slots=True)
class Fold:
    """A run of unchanged lines that starts folded."""

    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class SideRow:
    """One row of the side-by-side view; a missing side is empty."""

    old: DiffLine | None
    new: DiffLine | None


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """One hunk. Shape: `section` is what git names behind the line numbers."""

    header: str
    section: str
    lines: tuple[DiffLine, ...]

    def unified(self) -> tuple[DiffLine | Fold, ...]:
        """Rows of the unified view; unchanged runs over 8 lines are folded."""
        rows: list[DiffLine | Fold] = []
        for is_context, run in groupby(self.lines, key=lambda line: line.kind == "context"):
            lines = list(run)
            rows.extend(_fold(lines) if is_context else lines)
        return tuple(rows)

    def side_by_side(self) -> tuple[SideRow | Fold, ...]:
        """Rows of the two-column view: old beside new, folds across both."""
        rows: list[SideRow | Fold] = []
        for is_context, run in groupby(self.lines, key=lambda line: line.kind == "context"):
            lines = list(run)
            if is_context:
                folded = _fold(lines)
                rows.extend(one if isinstance(one, Fold) else SideRow(one, one) for one in folded)
            else:
                rows.extend(_beside(lines))
        return tuple(rows)


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file of a diff. Shape: paths without `a/` and `b/`; None on the side that has no file."""

    old_path: str | None
    new_path: str | None
    kind: FileKind
    is_binary: bool
    is_symlink: bool
    hunks: tuple[DiffHunk, ...]

    @property
    def path(self) -> str:
        """The path after the change, else the one before it."""
        return self.new_path or self.old_path or ""

    @property
    def added(self) -> int:
        """How many lines come in."""
        return sum(line.kind == "added" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """How many lines go."""
        return sum(line.kind == "removed" for hunk in self.hunks for line in hunk.lines)

    @property
    def starts_folded(self) -> bool:
        """Whether the file is so long that a page shows only its count at first."""
        return sum(len(hunk.lines) for hunk in self.hunks) > FILE_FOLDED_OVER_LINES


@dataclass(frozen=True, slots=True)
class DiffView:
    """A whole diff."""

    files: tuple[DiffFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the diff touches, on either side, each once."""
        both = (path for one in self.files for path in (one.old_path, one.new_path))
        return tuple(dict.fromkeys(path for path in both if path is not None))


@dataclass(slots=True)
class _Source:
    """The text of a diff, line by line, remembering where the parser is."""

    text: str
    line: int = 0
    lines: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        for line in io.StringIO(self.text, newline="\n"):
            self.line += 1
            self.lines.append(line)
            if line.startswith(HEADERS) and (len(line) > MAX_HEADER_CHARACTERS or "://" in line):
                raise _invalid(self.line, "the header of a file is too long or names an address")
            yield line


def parse_diff(text: str) -> DiffView:
    """Read a unified diff.

    Errors: Invalid naming the line: not a diff, a hunk that is longer or shorter than it says, a
    path that leaves the workspace; and when it is over 8 MB.
    """
    if len(text.encode(errors="replace")) > MAX_DIFF_BYTES:
        raise _invalid(0, f"is over {MAX_DIFF_BYTES} bytes")
    source = _Source(text)
    try:
        patch = PatchSet(source)
    except (UnidiffParseError, ValueError) as broken:
        raise _invalid(source.line, _first_line(str(broken))) from None
    if not patch:
        raise _invalid(1, "is no unified diff: it names no file")
    budget = WorkBudget()
    return DiffView(tuple(_file(one, source.lines, budget) for one in patch))


def _file(patched: PatchedFile, lines: Sequence[str], budget: WorkBudget) -> DiffFile:
    old, new = _path(patched.source_file), _path(patched.target_file)
    for path in (old, new):
        problem = path_fault(path) if path is not None else None
        if problem is not None:
            raise _invalid(patched.diff_line_no or 1, f"the path {problem}")
    hunks = tuple(_hunk(one, lines, budget) for one in patched)
    if not hunks and not patched.is_binary_file and not _says_more(patched):
        raise _invalid(patched.diff_line_no or 1, f"changes nothing in {new or old}")
    return DiffFile(
        old_path=old,
        new_path=new,
        kind=_file_kind(old, new),
        is_binary=patched.is_binary_file,
        is_symlink=patched.is_symlink,
        hunks=hunks,
    )


def _says_more(patched: PatchedFile) -> bool:
    """Whether a file without hunks still changes: its name, its mode, or an empty file."""
    one_side = NO_FILE in (patched.source_file, patched.target_file)
    modes = {patched.source_mode, patched.target_mode} - {None}
    return one_side or len(modes) > 1 or _path(patched.source_file) != _path(patched.target_file)


def _file_kind(old: str | None, new: str | None) -> FileKind:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "modified" if old == new else "renamed"


def _path(name: str) -> str | None:
    """Give the plain path of a header: unquoted, without its prefix; None for /dev/null."""
    plain = name.strip()
    if plain == NO_FILE:
        return None
    if len(plain) > 1 and plain.startswith('"') and plain.endswith('"'):
        raw = QUOTED.sub(lambda found: _escaped(found.group(1)), plain[1:-1].encode())
        plain = raw.decode(errors="replace")
    return PREFIX.sub("", plain, count=1) if PREFIX.match(plain) else plain


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else ESCAPES.get(code, code)


def _hunk(hunk: Hunk, lines: Sequence[str], budget: WorkBudget) -> DiffHunk:
    rows: list[DiffLine] = []
    last = 0
    for line in hunk:
        if line.line_type == "\\" and rows:
            rows[-1] = replace(rows[-1], has_newline=False)
        if line.line_type in KINDS:
            text = line.value.removesuffix("\n")
            kind = KINDS[line.line_type]
            rows.append(DiffLine(kind, line.source_line_no, line.target_line_no, text))
            last = line.diff_line_no or last
    _require_end(lines, last)
    return DiffHunk(
        header=f"@@ -{hunk.source_start},{hunk.source_length}"
        f" +{hunk.target_start},{hunk.target_length} @@",
        section=hunk.section_header or "",
        lines=tuple(_with_words(rows, budget)),
    )


def _require_end(lines: Sequence[str], last: int) -> None:
    """Refuse lines of change behind the end of a hunk: they would not be shown, and be lost."""
    after = [*lines[last : last + 2], "", ""]
    is_next_file = after[0].startswith("--- ") and after[1].startswith("+++ ")
    is_signature = after[0].rstrip() == "--"
    if after[0].startswith(("+", "-", " ")) and not is_next_file and not is_signature:
        raise _invalid(last + 1, "the hunk is longer than its header says")


def _with_words(rows: list[DiffLine], budget: WorkBudget) -> Iterator[DiffLine]:
    """Mark the changed words in lines that replace each other, in their order."""
    for is_context, run in groupby(rows, key=lambda line: line.kind == "context"):
        lines = list(run)
        if is_context:
            yield from lines
            continue
        marked = {id(line): line for line in lines}
        old = [line for line in lines if line.kind == "removed"]
        new = [line for line in lines if line.kind == "added"]
        for before, after in zip(old, new, strict=False):
            gone, come = changed_words(before.text, after.text, budget)
            marked[id(before)] = replace(before, changes=gone)
            marked[id(after)] = replace(after, changes=come)
        yield from (marked[id(line)] for line in lines)


def _fold(lines: list[DiffLine]) -> list[DiffLine | Fold]:
    if len(lines) <= FOLD_OVER_LINES:
        return list(lines)
    head, tail = lines[:LINES_BESIDE_A_CHANGE], lines[-LINES_BESIDE_A_CHANGE:]
    return [*head, Fold(tuple(lines[LINES_BESIDE_A_CHANGE:-LINES_BESIDE_A_CHANGE])), *tail]


def _beside(lines: list[DiffLine]) -> Iterator[SideRow]:
    old = [line for line in lines if line.kind == "removed"]
    new = [line for line in lines if line.kind == "added"]
    return (SideRow(before, after) for before, after in zip_longest(old, new))


def _first_line(text: str) -> str:
    first = (text.splitlines() or ["cannot be read"])[0][:200].strip()
    return f"{first[:1].lower()}{first[1:]}"


def _invalid(line: int, problem: str) -> Invalid:
    message = f"line {line}: {problem}" if line else problem
    return Invalid(
        f"The diff cannot be read: {message}.",
        code="diff_invalid",
        errors=[Fault(path=f"lines.{line}" if line else "", message=problem)],
    )
