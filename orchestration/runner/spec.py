"""What a command is, how it ended, and whether it did what was expected of it."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from orchestration.errors import Invalid
from orchestration.runner.sandbox import ENVIRONMENT, Sandbox

MEBIBYTE = 1024 * 1024
LEAST_MEMORY_BYTES = 32 * MEBIBYTE

Outcome = Literal[
    "ok",
    "failed",
    "timed_out",
    "output_limit",
    "memory_limit",
    "process_limit",
    "stopped",
    "not_found",
    "not_executable",
]


@dataclass(frozen=True, kw_only=True)
class CommandSpec:
    """One command and its limits; None switches a limit off.

    `cwd` is relative to `workspace`. `home` defaults to a private directory that is deleted
    afterwards; TMPDIR always is one. `environment` adds to PATH, HOME, LANG, TMPDIR and a word to
    Python to leave no bytecode behind, which are all a command gets. `memory_limit_bytes` holds for
    each process when it allocates, and for all of them together as measured ten times a second.
    """

    argv: tuple[str, ...]
    workspace: Path
    cwd: str = "."
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    home: Path | None = None
    timeout_seconds: float = 600.0
    output_limit_bytes: int = 10 * MEBIBYTE
    memory_limit_bytes: int | None = 2048 * MEBIBYTE
    file_limit_bytes: int | None = 2048 * MEBIBYTE
    max_processes: int | None = 256
    expect_exit_code: int = 0
    expect_stdout_contains: str | None = None
    sandbox: Sandbox | None = None


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """How a command ended. Units: `duration_seconds`, from its start to its last process's end.

    `exit_code` is set only for `ok` and `failed`, and not when a signal ended it. `stdout_tail` is
    the last 8 kB of both streams, in the order written. `truncated` says that `on_output` did not
    get everything. `detail` is one sentence where the outcome alone does not say enough.
    """

    outcome: Outcome
    exit_code: int | None
    stdout_tail: str
    output_bytes: int
    duration_seconds: float
    pgid: int | None
    truncated: bool
    is_expected_text_found: bool
    detail: str = ""


def check_expectations(spec: CommandSpec, result: CommandResult) -> tuple[str, ...]:
    """Compare a result with what the command was expected to do. Shape: one sentence a fault."""
    if result.outcome not in ("ok", "failed"):
        return (f"The command did not run to its end ({result.outcome}). {result.detail}".strip(),)
    faults = []
    if result.exit_code is None:
        faults.append(result.detail)
    elif result.exit_code != spec.expect_exit_code:
        faults.append(f"Exit code {result.exit_code}, expected {spec.expect_exit_code}.")
    if spec.expect_stdout_contains is not None and not result.is_expected_text_found:
        faults.append(f"The output does not contain {spec.expect_stdout_contains!r}.")
    return tuple(faults)


def launch_request(spec: CommandSpec) -> dict[str, Any]:
    """Check what the system could not take, and write the request for the launcher."""
    texts = [*spec.argv, *spec.environment.keys(), *spec.environment.values()]
    if not spec.argv or not spec.argv[0]:
        raise Invalid("A command needs a program to run.")
    for text in texts:
        if "\0" in text or not _is_encodable(text):
            raise Invalid(f"The argument {text!r} holds a character that no program can be given.")
    for name in spec.environment:
        if not name or "=" in name:
            raise Invalid(f"{name!r} is no name of an environment variable.")
    if spec.memory_limit_bytes is not None and spec.memory_limit_bytes < LEAST_MEMORY_BYTES:
        raise Invalid(f"A memory limit below {LEAST_MEMORY_BYTES} bytes lets no program start.")
    # Bytecode is known by the second and the size of its source: a fix of one character within the
    # second of the run before it would be judged by the old one.
    environment = {"PATH": _search_path(), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    if spec.home is not None:
        environment["HOME"] = str(spec.home)
    scratch = str(Path(tempfile.gettempdir()).resolve() / f"countersign-{secrets.token_hex(8)}")
    sandbox, argv = None, list(spec.argv)
    if spec.sandbox is not None:
        sandbox = spec.sandbox.request(spec.workspace, spec.cwd, scratch)
        argv = spec.sandbox.wrapped(spec.argv, sandbox, scratch)
        environment |= ENVIRONMENT
    return {
        "argv": argv,
        "environment": environment | dict(spec.environment),
        "scratch": scratch,
        "sandbox": sandbox,
        "memory_limit_bytes": spec.memory_limit_bytes,
        "file_limit_bytes": spec.file_limit_bytes,
        "max_processes": spec.max_processes,
    }


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _search_path() -> str:
    """Keep the entries of our PATH that are of use.

    A relative one would search the workspace; one that we may not enter would make every missing
    program look like a forbidden one.
    """
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    usable = (entry for entry in entries if entry.startswith("/") and os.access(entry, os.X_OK))
    return os.pathsep.join(usable) or os.defpath
