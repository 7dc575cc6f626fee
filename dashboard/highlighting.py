"""A parsed diff as rows of segments: changed words marked, code coloured in two quiet hues.

Nothing of a line is left out: its segments joined are the line. Long files are shown uncoloured.
Source: UI.md sections 2 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, zip_longest

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Keyword, Name, Operator, String, _TokenType
from pygments.util import ClassNotFound

from orchestration.rules.diffs import DiffFile, DiffHunk, DiffLine, DiffView, Fold, SideRow

COLOUR_UP_TO_LINES = 1_500
COLOUR_UP_TO_CHARACTERS = 400
LOOKS = (
    (Comment, "syn-c"),
    (String, "syn-s"),
    (Keyword, "syn-k"),
    (Operator.Word, "syn-k"),
    (Name.Function, "syn-n"),
    (Name.Class, "syn-n"),
)
SIGNS = {"context": "", "added": "+", "removed": "−"}
CSS = {"context": "", "added": "diff-add", "removed": "diff-remove"}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one line with one look."""

    text: str
    css_class: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of either view."""

    old_number: int | None
    new_number: int | None
    sign: str
    css_class: str
    segments: tuple[Segment, ...]
    has_newline: bool = True


@dataclass(frozen=True, slots=True)
class SidePair:
    """One row of the side-by-side view."""

    old: CodeLine | None
    new: CodeLine | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that stand together; a folded chunk is unchanged and starts closed."""

    rows: tuple[CodeLine | SidePair, ...]
    is_folded: bool


@dataclass(frozen=True, slots=True)
class HunkView:
    """One hunk in both views."""

    section: str
    unified: tuple[Chunk, ...]
    sides: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class FileView:
    """`diff`: one file of a diff."""

    path: str
    old_path: str
    kind: str
    added: int
    removed: int
    is_binary: bool
    starts_folded: bool
    hunks: tuple[HunkView, ...]


@dataclass(frozen=True, slots=True)
class DiffSet:
    """`diff_set`: all files with their totals."""

    files: tuple[FileView, ...]

    @property
    def added(self) -> int:
        """Lines that come in."""
        return sum(one.added for one in self.files)

    @property
    def removed(self) -> int:
        """Lines that go."""
        return sum(one.removed for one in self.files)


def diff_set(view: DiffView) -> DiffSet:
    """Turn a parsed diff into what the `diff` part shows."""
    return DiffSet(tuple(_file(one) for one in view.files))


def _file(one: DiffFile) -> FileView:
    lines = sum(len(hunk.lines) for hunk in one.hunks)
    lexer = _lexer(one.path) if lines <= COLOUR_UP_TO_LINES else None
    return FileView(
        path=one.path,
        old_path=one.old_path or "",
        kind=one.kind,
        added=one.added,
        removed=one.removed,
        is_binary=one.is_binary,
        starts_folded=one.starts_folded,
        hunks=tuple(_hunk(hunk, lexer) for hunk in one.hunks),
    )


def _lexer(path: str) -> Lexer | None:
    try:
        found: Lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return found


def _hunk(hunk: DiffHunk, lexer: Lexer | None) -> HunkView:
    shown = replace(hunk, lines=tuple(_marked(hunk.lines)))
    looks = _looks(shown.lines, lexer)
    return HunkView(
        section=hunk.section,
        unified=tuple(_chunks(shown.unified(), looks)),
        sides=tuple(_chunks(shown.side_by_side(), looks)),
    )


def _marked(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Mark what a replaced line and its counterpart do not share, where no words were marked."""
    for is_context, run in groupby(lines, key=lambda line: line.kind == "context"):
        together = list(run)
        old = [line for line in together if line.kind == "removed"]
        new = [line for line in together if line.kind == "added"]
        marked = {id(line): line for line in together}
        if not is_context and old and new:
            for before, after in zip_longest(old, new):
                _mark_pair(before, after, marked)
        yield from (marked[id(line)] for line in together)


def _mark_pair(
    before: DiffLine | None, after: DiffLine | None, marked: dict[int, DiffLine]
) -> None:
    pair = [line for line in (before, after) if line is not None]
    if any(line.changes for line in pair):
        return
    texts = [line.text for line in pair]
    head = _shared(*texts) if len(pair) == 2 else 0
    tail = _shared(*(text[head:][::-1] for text in texts)) if len(pair) == 2 else 0
    for line in pair:
        text = line.text
        start, stop = head, len(text) - tail
        # A word half shared is a changed word.
        while 0 < start <= len(text) and _is_word(text, start - 1):
            start -= 1
        while stop < len(text) and _is_word(text, stop):
            stop += 1
        start += len(text[start:stop]) - len(text[start:stop].lstrip())
        if start < len(text[:stop].rstrip()):
            marked[id(line)] = replace(line, changes=((start, len(text[:stop].rstrip())),))


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _is_word(text: str, at: int) -> bool:
    return text[at].isalnum() or text[at] == "_"


Looks = dict[int, list[tuple[str, str]]]
"""By the identity of a line: its text cut into pieces, each with its class."""


def _looks(lines: Sequence[DiffLine], lexer: Lexer | None) -> Looks:
    """Colour both sides as they read, so that a string over several lines stays one."""
    looks: Looks = {id(line): [(line.text, "")] for line in lines}
    if lexer is None or any(len(line.text) > COLOUR_UP_TO_CHARACTERS for line in lines):
        return looks
    for side in ("removed", "added"):
        shown = [line for line in lines if line.kind in ("context", side)]
        pieces = _coloured("\n".join(line.text for line in shown), lexer)
        for line, coloured in zip(shown, pieces, strict=True):
            # A lexer that loses a character must not change what is signed.
            if "".join(text for text, _look in coloured) == line.text:
                looks[id(line)] = coloured
    return looks


def _coloured(text: str, lexer: Lexer) -> list[list[tuple[str, str]]]:
    rows: list[list[tuple[str, str]]] = [[]]
    for kind, value in lexer.get_tokens(text):
        look = _look(kind)
        for index, part in enumerate(value.split("\n")):
            if index:
                rows.append([])
            if part:
                rows[-1].append((part, look))
    missing = text.count("\n") + 1 - len(rows)
    return [*rows, *([] for _ in range(missing))][: text.count("\n") + 1]


def _look(kind: _TokenType) -> str:
    return next((look for token, look in LOOKS if kind[: len(token)] == token), "")


def _chunks(rows: Iterable[DiffLine | SideRow | Fold], looks: Looks) -> Iterator[Chunk]:
    listed = list(rows)
    is_paired = any(isinstance(row, SideRow) for row in listed)
    for is_fold, run in groupby(listed, key=lambda row: isinstance(row, Fold)):
        flat = [line for row in run for line in (row.lines if isinstance(row, Fold) else (row,))]
        yield Chunk(tuple(_row(one, looks, is_paired=is_paired) for one in flat), is_fold)


def _row(row: DiffLine | SideRow, looks: Looks, *, is_paired: bool) -> CodeLine | SidePair:
    if isinstance(row, SideRow):
        return SidePair(_side(row.old, looks), _side(row.new, looks))
    line = _line(row, looks)
    return SidePair(line, line) if is_paired else line


def _side(line: DiffLine | None, looks: Looks) -> CodeLine | None:
    return None if line is None else _line(line, looks)


def _line(line: DiffLine, looks: Looks) -> CodeLine:
    return CodeLine(
        old_number=line.old_number,
        new_number=line.new_number,
        sign=SIGNS[line.kind],
        css_class=CSS[line.kind],
        segments=tuple(_segments(line, looks[id(line)])),
        has_newline=line.has_newline,
    )


def _segments(line: DiffLine, pieces: Sequence[tuple[str, str]]) -> Iterator[Segment]:
    """Cut the coloured pieces at the edges of the changed words."""
    cuts = sorted({edge for change in line.changes for edge in change})
    at = 0
    for text, look in pieces:
        end = at + len(text)
        edges = [at, *(cut for cut in cuts if at < cut < end), end]
        for start, stop in pairwise(edges):
            is_changed = any(first <= start and stop <= last for first, last in line.changes)
            yield Segment(line.text[start:stop], look, is_changed)
        at = end
