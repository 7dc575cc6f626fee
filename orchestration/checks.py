"""System checks for settings that would make an installation unsafe. The ids never change."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

SECRET_CHARACTERS = 50
SECRET_DISTINCT_CHARACTERS = 5
PASSWORD_CHARACTERS = 12
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "[::1]", "localhost"})


def register_checks() -> None:
    """Register every check with Django; called once the apps are ready."""
    for check in (check_secret_key, check_places):
        register(check, Tags.security)
    for check in (check_debug, check_network, check_sir_password, check_sandbox, check_database):
        register(check, Tags.security, deploy=True)


def check_secret_key(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Refuse a SECRET_KEY that can be guessed: it signs sessions and decisions."""
    key = settings.SECRET_KEY
    if len(key) >= SECRET_CHARACTERS and len(set(key)) >= SECRET_DISTINCT_CHARACTERS:
        return []
    return [
        Error(
            "SECRET_KEY is too weak.",
            hint="Leave it unset to have one made in the data directory, or give 50 random ones.",
            id="countersign.E001",
        )
    ]


def check_places(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Refuse a data directory others can read, and a workspace root that contains it."""
    data_dir: Path = settings.COUNTERSIGN_DATA_DIR
    found: list[CheckMessage] = []
    if data_dir.exists() and stat.S_IMODE(data_dir.stat().st_mode) & stat.S_IRWXO:
        found.append(
            Warning(
                f"Every account of this machine can enter the data directory {data_dir}.",
                hint="It holds the secret key and the database: chmod 700.",
                id="countersign.W001",
            )
        )
    found += [
        Error(
            f"The workspace root {root} contains the data directory.",
            hint="Steps write below their workspace; choose a directory beside it.",
            id="countersign.E002",
        )
        for root in settings.COUNTERSIGN_WORKSPACE_ROOTS
        if data_dir.is_relative_to(root)
    ]
    return found


def check_debug(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Warn of DEBUG: its error pages show settings and rows."""
    if not settings.DEBUG:
        return []
    return [Warning("DEBUG is on.", hint="Unset DEBUG.", id="countersign.W002")]


def check_network(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Warn of any-host requests, and of passwords that cross a network in the clear."""
    found: list[CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS:
        found.append(
            Warning(
                "ALLOWED_HOSTS lets every host name in.",
                hint="Name the hosts people type.",
                id="countersign.W003",
            )
        )
    if settings.HOST not in LOOPBACK_HOSTS and not settings.COUNTERSIGN_HTTPS:
        found.append(
            Warning(
                f"HOST {settings.HOST} is reachable from outside without TLS.",
                hint="Put a proxy with TLS in front and set COUNTERSIGN_HTTPS=1.",
                id="countersign.W004",
            )
        )
    return found


def check_sir_password(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Warn of a chosen password that is short; the generated one is not."""
    if not settings.SIR_PASSWORD or len(settings.SIR_PASSWORD) >= PASSWORD_CHARACTERS:
        return []
    return [
        Warning(
            f"SIR_PASSWORD has fewer than {PASSWORD_CHARACTERS} characters.",
            hint="Leave it unset to have one made and printed once.",
            id="countersign.W005",
        )
    ]


def check_sandbox(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Warn where code that agents wrote runs with our own rights."""
    if not settings.COUNTERSIGN_UNSANDBOXED:
        return []
    return [
        Warning(
            "COUNTERSIGN_UNSANDBOXED is on: commands of agents run without a sandbox.",
            hint="Unset it, except on a machine that is itself thrown away.",
            id="countersign.W006",
        )
    ]


def check_database(*_args: Any, **_options: Any) -> Sequence[CheckMessage]:
    """Warn of several processes on one SQLite file: each waits for the others to write."""
    if not (settings.REDIS_URL and connection.vendor == "sqlite"):
        return []
    return [
        Warning(
            "REDIS_URL is set, but the database is SQLite.",
            hint="Set DATABASE_URL to PostgreSQL where several processes work.",
            id="countersign.W007",
        )
    ]
