"""Uploaded files become files of the workspace, so that they are checked and locked like any other.

Source: DESIGN section 8 ("Outputs").
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

from orchestration.contracts.results import OutputFileInput, OutputInput
from orchestration.errors import TooLarge, WorkspaceError
from orchestration.models import Task
from orchestration.runner.file_writes import FileContent, FileWrite, write_all
from orchestration.runner.workspace import artifact_exists, digest_inside
from orchestration.services.outputs import MAX_OUTPUT_BYTES

UPLOADS = "uploads"
MODE = 0o644
NAME_BYTES = 120
UNSAFE = re.compile(r"[^\w.() +-]+")


def store_upload(task: Task, *, name: str, data: bytes, document: OutputFileInput) -> OutputInput:
    """Write an uploaded file below `uploads/` and describe it as an output by its path.

    The same bytes under the same name are the same file; other bytes get another one, so that no
    upload changes what was handed in before.
    Errors: TooLarge over 50 MB; WorkspaceError when the project has no workspace.
    """
    if len(data) > MAX_OUTPUT_BYTES:
        raise TooLarge(
            f"The file has {len(data)} bytes; at most {MAX_OUTPUT_BYTES} are accepted.",
            limit_bytes=MAX_OUTPUT_BYTES,
        )
    if not task.project.workspace:
        raise WorkspaceError("This project has no workspace, so a file cannot be stored.")
    digest = hashlib.sha256(data).hexdigest()
    path = f"{UPLOADS}/{task}/{digest[:12]}-{safe_name(name)}"
    workspace = Path(task.project.workspace)
    if artifact_exists(workspace, path) is None or digest_inside(workspace, path) != digest:
        write_all(workspace, [FileWrite(path, None, FileContent(data, MODE))])
    return OutputInput(
        type=document.type,
        title=document.title,
        summary=document.summary,
        assertions=document.assertions,
        path=path,
    )


def safe_name(name: str) -> str:
    """Make a plain file name of what a client sent: its last part, nothing hidden, no odd signs."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    plain = UNSAFE.sub("_", last).strip(" .").encode()[-NAME_BYTES:].decode(errors="ignore")
    plain = plain.lstrip(".")
    return plain or "file"
