"""Reads of the master loop: the verdicts on a root with the commands they led to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestration.models import ControlCommand, Task, ValidationPackage

SHOWN_VERDICTS = 20


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One verdict. Shape: a waiver has no package, a direct task no command."""

    package: ValidationPackage | None
    command: ControlCommand | None

    @property
    def at(self) -> datetime:
        """When it was given."""
        row = self.package or self.command
        if row is None:
            raise ValueError("a verdict is a package or a command")
        return row.created_at


def list_verdicts(root: Task) -> list[VerdictRow]:
    """The newest verdicts on a root, newest first. Costs two queries."""
    packages = list(
        root.validation_packages.select_related("agent").order_by("-pk")[:SHOWN_VERDICTS]
    )
    commands = list(
        root.control_commands.defer("master_list_after").order_by("-pk")[:SHOWN_VERDICTS]
    )
    by_package = {one.package_id: one for one in commands if one.package_id is not None}
    rows = [VerdictRow(package, by_package.get(package.pk)) for package in packages]
    rows += [VerdictRow(None, one) for one in commands if one.package_id is None]
    return sorted(rows, key=lambda row: row.at, reverse=True)
