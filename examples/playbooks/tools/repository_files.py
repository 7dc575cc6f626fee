"""Which files belong to a repository, and small things that all tools of the playbooks share."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

NOT_OURS = {"__pycache__", "node_modules", "venv", "env", "build", "dist", "site-packages"}


def list_files(root: Path, leave_out: Collection[str] = ()) -> list[Path]:
    """List the files of a repository, relative to it and sorted.

    Git is asked, where it is there and willing, since it knows what is ignored; else directories
    with a dot or a well-known name are left out. `leave_out` names more directories.
    """
    found = _ask_git(root)
    if found is None:
        found = list(_walk(root, root))
    chosen = (
        path
        for path in found
        if not any(path.as_posix().startswith(f"{name}/") for name in leave_out)
        and (root / path).is_file()
        and not (root / path).is_symlink()
    )
    return sorted(set(chosen))


def list_python_files(root: Path, leave_out: Collection[str] = ()) -> list[Path]:
    """List the Python sources of a repository."""
    return [path for path in list_files(root, leave_out) if path.suffix == ".py"]


def _ask_git(root: Path) -> list[Path] | None:
    """Ask git for tracked and new files; None where there is no git or no repository."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=root,
        capture_output=True,
        check=False,
    )
    if answer.returncode:
        return None
    names = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [Path(name) for name in names if name]


def _walk(root: Path, directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.is_symlink():
            continue
        if path.is_file():
            yield path.relative_to(root)
        elif path.is_dir() and not path.name.startswith(".") and path.name not in NOT_OURS:
            yield from _walk(root, path)


def read_pyproject(root: Path) -> dict[str, Any]:
    """Read pyproject.toml; empty where there is none or it is broken."""
    try:
        return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (FileNotFoundError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document so that equal content gives equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True)
    path.write_text(text.encode("utf-8", "replace").decode() + "\n", encoding="utf-8")
    print(f"wrote {path}", flush=True)
