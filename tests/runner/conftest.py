"""A workspace, a short way to run a command in it, and a way to wait for the world outside."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestration.runner.command import CommandResult, CommandSpec, run_command
from tests.runner.patch_texts import LINES

PAUSE = threading.Event()


@dataclass
class Ran:
    """A finished run: its result and what the callbacks got."""

    result: CommandResult
    pieces: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Join what `on_output` got."""
        return "".join(self.pieces)


Run = Callable[..., Ran]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Make an empty workspace."""
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def forty(workspace: Path) -> Path:
    """Make a workspace with one file of forty lines."""
    (workspace / "file.txt").write_text(LINES)
    return workspace


@pytest.fixture
def run(workspace: Path) -> Run:
    """Run one command in the workspace and keep what it said."""

    def runner(
        *argv: str, should_stop: Callable[[], str | None] = lambda: None, **spec: Any
    ) -> Ran:
        pieces: list[str] = []
        groups: list[int] = []
        result = run_command(
            CommandSpec(argv=argv, workspace=workspace, **spec),
            on_output=pieces.append,
            on_start=groups.append,
            should_stop=should_stop,
        )
        return Ran(result, pieces, groups)

    return runner


@pytest.fixture
def run_python(run: Run) -> Run:
    """Run a piece of Python in the workspace."""

    def runner(code: str, *arguments: str, **options: Any) -> Ran:
        return run(sys.executable, "-I", "-S", "-c", code, *arguments, **options)

    return runner


def wait_until(condition: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    """Poll for something another process does; say whether it came in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        PAUSE.wait(0.005)
    return True


def is_running(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
