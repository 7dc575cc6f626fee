"""Find where the hunks of a patch belong in a file, and put the new lines there."""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.runner.patch_format import Hunk

MAX_OFFSET_LINES = 100
SHOWN_BYTES = 60


class Misfit(Exception):
    """A patch does not fit a file as it is; the text names the hunk and the line."""


def replace_hunks(data: bytes, hunks: Sequence[Hunk]) -> bytes:
    """Apply hunks to a file's content. Errors: Misfit."""
    lines = _lines(data)
    pieces: list[bytes] = []
    copied = 0
    for hunk, at in zip(hunks, _positions(lines, hunks), strict=True):
        pieces += lines[copied:at]
        pieces += hunk.after
        copied = at + len(hunk.before)
    return b"".join([*pieces, *lines[copied:]])


def replace_unless_done(data: bytes, hunks: Sequence[Hunk]) -> bytes:
    """Apply hunks, or return the content as it is when they are applied already. Errors: Misfit.

    Where a file fits both ways, because it repeats itself, the smaller offset decides.
    """
    forward = _offset(data, hunks)
    backward = _offset(data, [hunk.reversed() for hunk in hunks])
    if backward is not None and (forward is None or backward < forward):
        return data
    return replace_hunks(data, hunks)


def require_done(data: bytes, hunks: Sequence[Hunk]) -> None:
    """Raise Misfit unless the hunks are applied already."""
    _positions(_lines(data), [hunk.reversed() for hunk in hunks])


def _offset(data: bytes, hunks: Sequence[Hunk]) -> int | None:
    """Give the largest distance at which the hunks fit, or None when they do not."""
    try:
        found = _positions(_lines(data), hunks)
    except Misfit:
        return None
    distances = [abs(at - hunk.position) for at, hunk in zip(found, hunks, strict=True)]
    return max(distances, default=0)


def _lines(data: bytes) -> list[bytes]:
    """Cut at \\n only and keep the ends; \\r stays content."""
    *whole, last = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, last] if last else lines


def _positions(lines: Sequence[bytes], hunks: Sequence[Hunk]) -> list[int]:
    """Find the index at which each hunk starts; a hunk follows the drift of the one before."""
    found: list[int] = []
    drift = earliest = 0
    for hunk in hunks:
        at = _position(lines, hunk, hunk.position + drift, earliest)
        drift = at - hunk.position
        earliest = at + len(hunk.before)
        found.append(at)
    return found


def _position(lines: Sequence[bytes], hunk: Hunk, expected: int, earliest: int) -> int:
    if not hunk.before:
        if lines or expected:
            raise Misfit(f"hunk {hunk.number} has no lines by which its place could be found")
        return 0
    if expected >= earliest and _matches(lines, hunk, expected):
        return expected
    first = max(earliest, expected - MAX_OFFSET_LINES)
    last = min(len(lines) - len(hunk.before), expected + MAX_OFFSET_LINES)
    places = [at for at in range(first, last + 1) if _matches(lines, hunk, at)]
    if len(places) > 1:
        raise Misfit(
            f"hunk {hunk.number} fits at several places, among them the lines"
            f" {places[0] + 1} and {places[1] + 1}"
        )
    if not places:
        raise Misfit(_difference(lines, hunk, expected))
    return places[0]


def _matches(lines: Sequence[bytes], hunk: Hunk, at: int) -> bool:
    return tuple(lines[at : at + len(hunk.before)]) == hunk.before


def _difference(lines: Sequence[bytes], hunk: Hunk, expected: int) -> str:
    """Say at which line the hunk and the file part."""
    at = max(0, expected)
    for number, wanted in enumerate(hunk.before, start=at):
        present = lines[number] if number < len(lines) else b"(the end of the file)"
        if present != wanted:
            return (
                f"hunk {hunk.number} does not match at line {number + 1}:"
                f" expected {_shown(wanted)}, found {_shown(present)}"
            )
    return f"hunk {hunk.number} overlaps the one before it"


def _shown(line: bytes) -> str:
    text = line[:SHOWN_BYTES].decode("utf-8", "replace")
    return repr(text + "…" if len(line) > SHOWN_BYTES else text)
