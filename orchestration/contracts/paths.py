"""Paths inside a workspace, as documents name them: relative, with `/`, never climbing out."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from orchestration.contracts.documents import fault

PATH_MAX_CHARACTERS = 1_000
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
TO_TIDY = re.compile(r"^\s|^\.|\s$|/$|//|/\./|/\.$")


def path_fault(path: str) -> str | None:
    """Say why a path cannot be inside a workspace, or None when it can."""
    if not path.strip():
        return "is an empty path"
    if CONTROL.search(path):
        return "contains a control character"
    if path.startswith(("/", "\\")) or path[1:2] == ":":
        return f"{path!r} must be relative to the workspace"
    if ".." in path and ".." in path.replace("\\", "/").split("/"):
        return f"{path!r} climbs out of its directory with '..'"
    return None


def normalise_path(path: str) -> str:
    """Give the one spelling of a relative path: no `./`, no doubled or trailing slash.

    Errors: ValueError when it could leave the workspace. The workspace itself is `.`.
    """
    message = path_fault(path)
    if message is not None:
        raise ValueError(message)
    if not TO_TIDY.search(path):
        return path
    parts = [part for part in path.strip().split("/") if part not in ("", ".")]
    return "/".join(parts) or "."


def _checked(path: str) -> str:
    try:
        return normalise_path(path)
    except ValueError as broken:
        raise fault("path", str(broken)) from None


WorkspacePath = Annotated[str, Field(max_length=PATH_MAX_CHARACTERS), AfterValidator(_checked)]
"""A pydantic field type: a path inside the workspace, in its one spelling."""
