"""The identity of a command: an approval is bound to exactly what was shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.rules.dag import canonical_digest


def command_digest(command: Mapping[str, Any]) -> str:
    """Digest what would run: the argv and the directory, nothing else."""
    return canonical_digest({"argv": list(command["argv"]), "cwd": command.get("cwd") or ""})
