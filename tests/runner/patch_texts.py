"""Patches and trees that the tests of the applier share."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

LINES = "".join(f"line {number}\n" for number in range(1, 41))


RENAME = (
    "diff --git a/old name.txt b/new/name.txt\nsimilarity index 90%\n"
    "rename from old name.txt\nrename to new/name.txt\n"
    "--- a/old name.txt\t\n+++ b/new/name.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
)

HEAD = "--- a/file.txt\n+++ b/file.txt\n"
GIT = "diff --git a/file.txt b/file.txt\n"


def diff(old: str, new: str, path: str = "file.txt") -> str:
    """Write the unified diff of two texts the way git does, ends of lines included."""
    pieces = difflib.unified_diff(
        split_lines(old),
        split_lines(new),
        f"a/{path}" if old else "/dev/null",
        f"b/{path}" if new else "/dev/null",
    )
    return "".join(
        piece if piece.endswith("\n") else f"{piece}\n\\ No newline at end of file\n"
        for piece in pieces
    )


def split_lines(text: str) -> list[str]:
    """Cut at \\n only."""
    whole = [line + "\n" for line in text.split("\n")]
    last = whole.pop()[:-1]
    return [*whole, last] if last else whole


def tree(workspace: Path) -> Mapping[str, bytes]:
    """Read every file, to see that nothing else changed."""
    return {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in sorted(workspace.rglob("*"))
        if path.is_file()
    }
