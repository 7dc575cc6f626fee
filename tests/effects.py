"""Steps whose side effects can be counted: each run appends its key to a file of the workspace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from orchestration.models import Project

EFFECTS = "effects"


def append(key: str, *, fails_first: bool = False) -> list[str]:
    """Write a command that appends a key to the file; it may fail the first time, before that."""
    failing = f"test -e {key}.tried || {{ touch {key}.tried; exit 1; }}; " if fails_first else ""
    return [f"sh -c '{failing}echo {key} >> {EFFECTS}'"]


def effect_lines(project: Project) -> list[str]:
    """List what the steps of a project did, in order."""
    path = Path(project.workspace) / EFFECTS
    return path.read_text().split() if path.exists() else []


def effects(project: Project) -> Counter[str]:
    """Count what the steps of a project did, by key."""
    return Counter(effect_lines(project))
