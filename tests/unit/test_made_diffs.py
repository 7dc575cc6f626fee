"""The diff of one file, as it is shown to Sir."""

from __future__ import annotations

import pytest

from orchestration.rules.diffs import parse_diff
from orchestration.rules.made_diffs import MAX_COMPARED_BYTES, made_diff


@pytest.mark.parametrize(
    ("before", "after", "removed", "added"),
    [
        (None, b"a\nb\n", 0, 2),
        (b"a\nb\n", b"a\nc\n", 1, 1),
        (b"a\n", b"a\nno end", 0, 1),
        (b"no end", b"other end", 1, 1),
        (b"one\x0bline\r\n", b"one\x0bline\r\nmore\n", 0, 1),
    ],
)
def test_a_text_file_is_compared_line_by_line(
    before: bytes | None, after: bytes, removed: int, added: int
) -> None:
    (shown,) = parse_diff(made_diff("docs/章 4.md", before, after)).files
    assert (shown.path, shown.removed, shown.added) == ("docs/章 4.md", removed, added)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"same\n", b"same\n"), (b"", b"\xff\xfe"), (b"", b"x" * (MAX_COMPARED_BYTES + 1))],
)
def test_nothing_is_written_that_cannot_be_shown(before: bytes, after: bytes) -> None:
    assert made_diff("a", before, after) == ""
