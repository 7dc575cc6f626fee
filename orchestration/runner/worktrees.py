"""Workspaces that are git worktrees: their repository lies elsewhere, and git must read it.

A worktree's `.git` is a file that names a directory of the main repository. An agent can write that
file, so it is believed only where the repository itself says that this is its worktree.
Source: gitrepository-layout(5).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 4096
REPOSITORY_PARTS = ("HEAD", "objects", "refs")


def worktree_places(workspace: Path, secret: Sequence[Path]) -> list[Path]:
    """List what git must read of the repository of a worktree. Shape: empty when it is none.

    Nothing is given for a repository that lies in the workspace, in a secret place or around one.
    """
    root = workspace.resolve()
    link = root / ".git"
    if link.is_symlink() or not link.is_file():
        return []
    own = _named_in(link, root, prefix="gitdir:")
    if own is None or own.parent.name != "worktrees":
        return []
    common = own.parent.parent
    if _named_in(own / "commondir", own) != common or _named_in(own / "gitdir", own) != link:
        return []
    if not all((common / part).exists() for part in REPOSITORY_PARTS):
        return []
    if common.is_relative_to(root) or root.is_relative_to(common):
        return []
    kept_from = [path.resolve() for path in secret]
    if any(common.is_relative_to(one) or one.is_relative_to(common) for one in kept_from):
        return []
    return [common]


def _named_in(file: Path, base: Path, *, prefix: str = "") -> Path | None:
    """Read the path that a small file of git names, as a real path; None when there is none."""
    try:
        with file.open("rb") as stream:
            text = stream.read(MOST_BYTES).decode("utf-8").strip()
        if not text.startswith(prefix) or "\0" in text:
            return None
        return (base / text.removeprefix(prefix).strip()).resolve()
    except (OSError, UnicodeDecodeError, RuntimeError):
        return None
