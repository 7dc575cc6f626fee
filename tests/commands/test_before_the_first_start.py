"""The operator's commands before the server has made a database: one line, and no file."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, load_command_class
from django.db import connection

from orchestration.management import operator
from orchestration.management.operator import OperatorCommand
from tests.deployment.processes import manage

COMMANDS = {
    "create_agent": ("a",),
    "create_project": ("p",),
    "create_token": ("sir",),
    "submit": ("p", "Fix a typo"),
    "revoke_token": ("a",),
    "verify_audit": (),
    "export_audit": (),
    "check_integrity": (),
}


def test_a_fresh_data_directory_is_told_in_one_line_and_stays_without_a_database(
    tmp_path: Path,
) -> None:
    with manage("create_agent", "a", data_dir=tmp_path / "var") as command:
        assert command.wait() == 1
    said = f"CommandError: There is no database in {tmp_path / 'var'} yet: start the server first"
    assert command.lines[-1].startswith(said)
    assert "Traceback" not in command.output
    assert not list(tmp_path.rglob("*.sqlite3*"))


@pytest.mark.parametrize(("name", "arguments"), COMMANDS.items())
def test_every_command_asks_for_the_database_first(
    name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(load_command_class("orchestration", name), OperatorCommand)
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nowhere/countersign.sqlite3")
    monkeypatch.setattr(connection, "vendor", "sqlite")
    with pytest.raises(CommandError, match="There is no database in"):
        call_command(name, *arguments)


@pytest.mark.django_db
def test_a_database_of_an_older_release_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "has_pending_migrations", lambda: True)
    with pytest.raises(CommandError, match="is not ready for this release: start the server"):
        call_command("verify_audit")
