"""Apply a unified diff to a workspace: exactly, completely, or not at all.

No `patch` and no `git` is needed. A file is found applied, pending or in conflict as a whole, so
that a fixer killed between two files, or before it recorded the result, continues where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestration.errors import Fault, Invalid
from orchestration.runner.file_writes import FileContent, FileWrite, read_content, write_all
from orchestration.runner.patch_fit import (
    Misfit,
    replace_hunks,
    replace_unless_done,
    require_done,
)
from orchestration.runner.patch_format import FilePatch, parse_patch

NEW_FILE_MODE = 0o644

Action = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True)
class PatchedPath:
    """What a patch did to one file. `was_applied` says that an earlier try had done it already."""

    path: str
    action: Action
    old_path: str | None
    was_applied: bool


@dataclass(frozen=True)
class PatchResult:
    """What a patch did. Shape: one row a file, in the order of the patch."""

    files: tuple[PatchedPath, ...]


def patched_paths(patch_text: str) -> tuple[str, ...]:
    """List every path a patch writes or deletes. Errors: Invalid, code `patch_invalid`."""
    paths: list[str] = []
    for file in parse_patch(patch_text):
        paths += [path for path in (file.old_path, file.new_path) if path and path not in paths]
    return tuple(paths)


def apply_patch(workspace: Path, patch_text: str) -> PatchResult:
    """Apply a patch; a file that already is as the patch wants it is left alone.

    Errors: Invalid, code `patch_invalid` when it cannot be read, `patch_conflict` when it does not
    fit, naming each file and hunk; WorkspaceError. Nothing is changed then.
    """
    writes: list[FileWrite] = []
    rows: list[PatchedPath] = []
    faults: list[Fault] = []
    for file in parse_patch(patch_text):
        try:
            due = _writes_of(workspace, file)
        except Misfit as misfit:
            faults.append(Fault(path=file.path, message=str(misfit)))
            continue
        writes += due
        rows.append(PatchedPath(file.path, _action(file), file.old_path, was_applied=not due))
    if faults:
        named = "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
        raise Invalid(f"The patch does not fit: {named}.", code="patch_conflict", errors=faults)
    write_all(workspace, writes)
    return PatchResult(tuple(rows))


def is_applied(workspace: Path, patch_text: str) -> bool:
    """Say whether every file already is as the patch wants it.

    Errors: Invalid, code `patch_invalid`; WorkspaceError.
    """
    try:
        return not any(_writes_of(workspace, file) for file in parse_patch(patch_text))
    except Misfit:
        return False


def _action(file: FilePatch) -> Action:
    if file.old_path is None:
        return "created"
    if file.new_path is None:
        return "deleted"
    return "changed" if file.old_path == file.new_path else "renamed"


def _writes_of(workspace: Path, file: FilePatch) -> list[FileWrite]:
    """Work out what is still to be done for one file. Errors: Misfit, WorkspaceError."""
    match _action(file):
        case "created":
            return _create(workspace, file)
        case "deleted":
            return _delete(workspace, file)
        case "renamed":
            return _rename(workspace, file)
        case "changed":
            return _change(workspace, file)


def _create(workspace: Path, file: FilePatch) -> list[FileWrite]:
    old = read_content(workspace, file.path)
    wanted = FileContent(replace_hunks(b"", file.hunks), _mode(file, NEW_FILE_MODE))
    if old is None:
        return [FileWrite(file.path, None, wanted)]
    if old.data != wanted.data:
        raise Misfit("the file to be created exists with other content")
    return []


def _delete(workspace: Path, file: FilePatch) -> list[FileWrite]:
    old = read_content(workspace, file.path)
    if old is None:
        return []
    if replace_hunks(old.data, file.hunks) != b"":
        raise Misfit("the file to be deleted holds more than the patch deletes")
    return [FileWrite(file.path, old, None)]


def _change(workspace: Path, file: FilePatch) -> list[FileWrite]:
    old = read_content(workspace, file.path)
    if old is None:
        if not _fills_empty(file):
            raise Misfit("the file does not exist")
        return _create(workspace, file)
    data = replace_unless_done(old.data, file.hunks)
    new = FileContent(data, _mode(file, old.mode), old.owner)
    return [] if new == old else [FileWrite(file.path, old, new)]


def _fills_empty(file: FilePatch) -> bool:
    """Recognise what `diff -N` writes for a new file: the same as for an empty one."""
    return len(file.hunks) == 1 and not file.hunks[0].before and file.hunks[0].old_start == 0


def _rename(workspace: Path, file: FilePatch) -> list[FileWrite]:
    source = read_content(workspace, file.old_path or "")
    target = read_content(workspace, file.path)
    if source is None:
        if target is None:
            raise Misfit(f"the file to be renamed, {file.old_path}, does not exist")
        require_done(target.data, file.hunks)
        return []
    data = replace_hunks(source.data, file.hunks)
    wanted = FileContent(data, _mode(file, source.mode), source.owner)
    if target is not None and target.data != wanted.data:
        raise Misfit("the file that the renamed one would replace exists")
    # equal content: an earlier try was killed between writing the new name and dropping the old
    written = [] if target is not None else [FileWrite(file.path, None, wanted)]
    return [*written, FileWrite(file.old_path or "", source, None)]


def _mode(file: FilePatch, present: int) -> int:
    """Change only whether the file may be executed; the rest is the owner's business."""
    if file.mode is None:
        return present
    return present | 0o111 if file.mode & 0o111 else present & ~0o111
