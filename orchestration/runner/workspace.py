"""Paths inside a workspace, safe against `..`, links out, special files and races.

Every access walks from the workspace's root directory, one component at a time and relative to an
open directory, refusing symlinks. A path that was checked and is swapped for a symlink a moment
later is therefore refused, not followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestration.errors import TooLarge, WorkspaceError

READ_BYTES = 1024 * 1024
MOST_SEARCHED = 200_000
"""Files of a workspace that are looked at for the other names of one; beyond, it is refused."""
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def allowed_workspace(
    path: str | os.PathLike[str], roots: Iterable[Path], *, create: bool = False
) -> Path:
    """Return the real path of a workspace directory, if one of the roots holds it.

    It must exist, or be creatable; it is made only with `create`.
    Errors: WorkspaceError.
    """
    text = os.fspath(path)
    _require_sane(text)
    real = _real_path(Path(text), text)
    real_roots = [_real_path(root, str(root)) for root in roots]
    if not any(real.is_relative_to(root) for root in real_roots):
        raise WorkspaceError(f"The workspace {text!r} is not inside an allowed directory.")
    if not real.exists():
        _require_creatable(real, text)
        if create:
            real.mkdir(parents=True, exist_ok=True)
    elif not real.is_dir():
        raise WorkspaceError(f"The workspace {text!r} is not a directory.")
    return real


def _require_creatable(real: Path, text: str) -> None:
    """Refuse a missing directory whose nearest existing parent cannot take it."""
    parent = next(parent for parent in real.parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise WorkspaceError(f"The workspace {text!r} does not exist and cannot be created.")


def _require_sane(text: str) -> None:
    """Refuse what is no file name on any system we run on."""
    if not text:
        raise WorkspaceError("The path is empty.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WorkspaceError(f"The path {text!r} is not valid Unicode.") from error
    if "\0" in text:
        raise WorkspaceError(f"The path {text!r} holds a NUL character.")


def _real_path(path: Path, shown: str) -> Path:
    """Resolve every symlink. Errors: WorkspaceError for a loop or a name that is too long."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(f"The path {shown!r} cannot be resolved: {error}.") from error


def resolve_inside(workspace: Path, relative: str) -> Path:
    """Return the real path of a file or directory inside the workspace; it need not exist.

    A symlink is followed when it stays inside.
    Errors: WorkspaceError for an absolute path, `..`, NUL, invalid Unicode, or a way out.
    """
    _require_sane(relative)
    if relative.startswith("/"):
        raise WorkspaceError(f"The path {relative!r} is absolute; give one inside the workspace.")
    if ".." in relative.split("/"):
        raise WorkspaceError(f"The path {relative!r} goes up; give one inside the workspace.")
    root = _real_path(workspace, str(workspace))
    real = _real_path(root / relative, relative)
    if not real.is_relative_to(root):
        raise WorkspaceError(f"The path {relative!r} leaves the workspace through a symlink.")
    _require_no_loop(real, root, relative)
    return real


def _require_no_loop(real: Path, root: Path, shown: str) -> None:
    """Refuse what is still a symlink after resolving; newer Pythons do not complain of loops."""
    try:
        is_loop = any(part.is_symlink() for part in (real, *real.parents) if part != root)
    except OSError as error:
        raise _as_workspace_error(error, shown) from error
    if is_loop:
        raise WorkspaceError(f"The path {shown!r} goes round in a circle of symlinks.")


def open_directory_inside(workspace: Path, relative: str) -> int:
    """Open a directory inside the workspace and return its descriptor, which the caller closes.

    Errors: WorkspaceError, also when a component became a symlink after it was checked.
    """
    real = resolve_inside(workspace, relative)
    root = _real_path(workspace, str(workspace))
    return _walk(root, real.relative_to(root).parts, relative)


def _walk(root: Path, parts: Iterable[str], shown: str) -> int:
    """Open directories one below the other, following no symlink."""
    try:
        current = os.open(root, DIRECTORY_FLAGS)
        for part in parts:
            try:
                below = os.open(part, DIRECTORY_FLAGS, dir_fd=current)
            finally:
                os.close(current)
            current = below
    except OSError as error:
        raise _as_workspace_error(error, shown) from error
    return current


@contextmanager
def parent_inside(workspace: Path, relative: str) -> Iterator[tuple[int, str]]:
    """Open the directory that holds a file. Shape: its descriptor, and the file's own name.

    Errors: WorkspaceError; also for the workspace itself, which no directory inside it holds.
    """
    real = resolve_inside(workspace, relative)
    root = _real_path(workspace, str(workspace))
    if real == root:
        raise WorkspaceError(f"The path {relative!r} is the workspace itself.")
    descriptor = _walk(root, real.parent.relative_to(root).parts, relative)
    try:
        yield descriptor, real.name
    finally:
        os.close(descriptor)


@contextmanager
def open_file_inside(workspace: Path, relative: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading. Shape: its descriptor and its status.

    Errors: WorkspaceError; its code is `workspace_missing` when there is no such file.
    """
    with parent_inside(workspace, relative) as (directory, name):
        descriptor = _open_regular(directory, name, relative)
    try:
        status = os.fstat(descriptor)
        _require_own_names(workspace, status, relative)
        yield descriptor, status
    finally:
        os.close(descriptor)


def _require_own_names(workspace: Path, status: os.stat_result, shown: str) -> None:
    """Refuse a file with a further name that is not in the workspace: a hard link leads out.

    Tools link inside a workspace themselves (build caches, package stores in it), so every name is
    looked for; the search is made only where there is more than one, and ends when all are found.
    """
    missing = status.st_nlink
    if missing <= 1:
        return
    searched = 0
    for _, _, files, directory in os.fwalk(_real_path(workspace, shown)):
        for name in files:
            searched += 1
            with suppress(OSError):
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                missing -= (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino)
            if not missing:
                return
        if searched > MOST_SEARCHED:
            break
    raise WorkspaceError(f"{shown!r} is also a file outside of the workspace (a hard link).")


def _open_regular(directory: int, name: str, shown: str) -> int:
    """Open a regular file by name; look first, since opening a device may already act on it."""
    try:
        _require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), shown)
        descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    except OSError as error:
        raise _as_workspace_error(error, shown) from error
    try:
        _require_regular(os.fstat(descriptor), shown)
    except WorkspaceError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown!r} is a directory, not a file.")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown!r} is not a regular file.")


def _as_workspace_error(error: OSError, shown: str) -> WorkspaceError:
    """Say in our words why a path could not be opened."""
    if error.errno == errno.ENOENT:
        return WorkspaceError(f"There is no {shown!r} in the workspace.", code="workspace_missing")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return WorkspaceError(
            f"{shown!r} goes through a symlink or something that is no directory."
        )
    return WorkspaceError(f"{shown!r} cannot be opened: {error.strerror}.")


def read_inside(workspace: Path, relative: str, limit_bytes: int) -> bytes:
    """Read a whole regular file.

    Errors: WorkspaceError; TooLarge when it holds more than `limit_bytes`.
    """
    with open_file_inside(workspace, relative) as (descriptor, _):
        pieces = []
        room = limit_bytes + 1
        while room and (piece := os.read(descriptor, min(READ_BYTES, room))):
            pieces.append(piece)
            room -= len(piece)
    if not room:
        raise TooLarge(f"{relative!r} holds more than {limit_bytes} bytes.")
    return b"".join(pieces)


def digest_inside(workspace: Path, relative: str) -> str:
    """Hash a regular file without holding it in memory. Shape: sha-256, hexadecimal.

    Errors: WorkspaceError.
    """
    digest = hashlib.sha256()
    with open_file_inside(workspace, relative) as (descriptor, _):
        while piece := os.read(descriptor, READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def artifact_exists(workspace: Path, relative: str) -> int | None:
    """Return the size of a regular file in bytes, or None when nothing is there.

    Errors: WorkspaceError for a path out of the workspace, a directory or a special file.
    """
    try:
        with open_file_inside(workspace, relative) as (_, status):
            return status.st_size
    except WorkspaceError as error:
        if error.code == "workspace_missing":
            return None
        raise
