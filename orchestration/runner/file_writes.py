"""Write and delete several files of a workspace as one: all of them, or none.

New content goes into temporary files beside its targets first; then each is renamed into place.
If any step fails, what was done is undone. A kill between two renames leaves some files new and
some old, each of them whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.errors import TooLarge, WorkspaceError
from orchestration.runner.workspace import open_file_inside, parent_inside, resolve_inside

MAX_FILE_BYTES = 32 * 1024 * 1024
STAGE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY_MODE = 0o755


@dataclass(frozen=True)
class FileContent:
    """A file: its bytes, its permission bits, and its user and group where known."""

    data: bytes
    mode: int
    owner: tuple[int, int] | None = None


@dataclass(frozen=True)
class FileWrite:
    """One file to write or delete. `old` and `new` are None where there is no file."""

    path: str
    old: FileContent | None
    new: FileContent | None


def read_content(workspace: Path, path: str) -> FileContent | None:
    """Read a file that is reached through no symlink; None when there is none.

    Errors: WorkspaceError; TooLarge.
    """
    if resolve_inside(workspace, path) != workspace.resolve() / path:
        raise WorkspaceError(f"{path!r} is reached through a symlink.")
    try:
        with open_file_inside(workspace, path) as (descriptor, status):
            if status.st_size > MAX_FILE_BYTES:
                raise TooLarge(f"{path!r} holds more than {MAX_FILE_BYTES} bytes.")
            with os.fdopen(os.dup(descriptor), "rb") as stream:
                data = stream.read()
    except WorkspaceError as error:
        if error.code == "workspace_missing":
            return None
        raise
    return FileContent(data, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))


def write_all(workspace: Path, writes: Sequence[FileWrite]) -> None:
    """Do all the writes, or none. Errors: WorkspaceError, after everything was put back."""
    made: list[str] = []
    done: list[FileWrite] = []
    try:
        for write in writes:
            if write.new is not None:
                made += _make_parents(workspace, write.path)
                _stage(workspace, write.path, write.new)
        for write in writes:
            _finish(workspace, write)
            done.append(write)
        for write in writes:
            _settle(workspace, write.path)
    except (OSError, WorkspaceError) as error:
        _undo(workspace, writes, done, made)
        raise WorkspaceError(f"The files could not be written: {error}.") from error


def _stage_name(name: str) -> str:
    """Name the temporary file: always the same, so that a killed try leaves none behind."""
    return f".countersign-{hashlib.sha256(name.encode()).hexdigest()[:16]}.new"


def _stage(workspace: Path, path: str, content: FileContent) -> None:
    """Write new content beside its target and see that it is on disk."""
    with parent_inside(workspace, path) as (directory, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_stage_name(name), dir_fd=directory)
        descriptor = os.open(_stage_name(name), STAGE_FLAGS, 0o600, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.data)
            stream.flush()
            if content.owner is not None:
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.fchown(descriptor, *content.owner)
            os.fchmod(descriptor, content.mode)
            os.fsync(descriptor)


def _finish(workspace: Path, write: FileWrite) -> None:
    """Put staged content in place, or delete the file."""
    with parent_inside(workspace, write.path) as (directory, name):
        if write.new is None:
            os.unlink(name, dir_fd=directory)
        else:
            os.rename(_stage_name(name), name, src_dir_fd=directory, dst_dir_fd=directory)


def _settle(workspace: Path, path: str) -> None:
    """See that the names are on disk too."""
    with parent_inside(workspace, path) as (directory, _):
        os.fsync(directory)


def _make_parents(workspace: Path, path: str) -> list[str]:
    """Make the missing directories above a file. Shape: those that were made, upper ones first."""
    made: list[str] = []
    parents = [str(parent) for parent in Path(path).parents][-2::-1]
    for parent in parents:
        with parent_inside(workspace, parent) as (directory, name):
            try:
                os.mkdir(name, DIRECTORY_MODE, dir_fd=directory)
            except FileExistsError:
                continue
            made.append(parent)
    return made


def _undo(
    workspace: Path, writes: Sequence[FileWrite], done: Sequence[FileWrite], made: Sequence[str]
) -> None:
    """Put every file back as it was, as far as the disk lets us; report through the first error."""
    for write in reversed(done):
        with contextlib.suppress(OSError, WorkspaceError):
            if write.old is not None:
                _stage(workspace, write.path, write.old)
            _finish(workspace, FileWrite(write.path, write.new, write.old))
    for write in writes:
        with (
            contextlib.suppress(OSError, WorkspaceError),
            parent_inside(workspace, write.path) as (directory, name),
        ):
            os.unlink(_stage_name(name), dir_fd=directory)
    for path in reversed(made):
        with (
            contextlib.suppress(OSError, WorkspaceError),
            parent_inside(workspace, path) as (directory, name),
        ):
            os.rmdir(name, dir_fd=directory)
