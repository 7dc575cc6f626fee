"""Start the commands of manage.py as a person would, in a data directory of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 150
STOP_SECONDS = 30
POLL_SECONDS = 0.2
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class ManageProcess:
    """One running command. Shape: `lines` are what it has said so far, both streams."""

    def __init__(
        self, arguments: Sequence[str], *, data_dir: Path, environment: Mapping[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "default", "manage.py", *arguments],
            cwd=ROOT,
            env=command_environment(data_dir, environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self.said = threading.Condition()
        assert self.process.stdout is not None
        self.reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self.reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self.said:
                self.lines.append(line.rstrip("\n"))
                self.said.notify_all()
        with self.said:
            self.said.notify_all()

    @property
    def output(self) -> str:
        """Return everything it has said."""
        return "\n".join(self.lines)

    def wait_for(self, pattern: str) -> str:
        """Wait until a line matches. Return the first group, else the match."""
        wanted = re.compile(pattern)

        def found() -> re.Match[str] | None:
            return next(filter(None, map(wanted.search, list(self.lines))), None)

        with self.said:
            self.said.wait_for(lambda: found() or not self.reader.is_alive(), START_SECONDS)
        match = found()
        assert match, f"no {pattern!r} in:\n{self.output}"
        return match.group(match.lastindex or 0)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal. Return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end. Return the exit code."""
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.reader.join(STOP_SECONDS)

    def __enter__(self) -> ManageProcess:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
        self.reader.join(STOP_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


def command_environment(data_dir: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with nothing of ours in it but the data directory and `more`."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    own = {"COUNTERSIGN_DATA_DIR": str(data_dir), "PORT": "0", "COUNTERSIGN_DEMO": "0"}
    return {**kept, **own, **more}


def manage(
    *arguments: str, data_dir: Path, environment: Mapping[str, str] | None = None
) -> ManageProcess:
    """Start `manage.py ARGUMENTS`."""
    return ManageProcess(arguments, data_dir=data_dir, environment=environment or {})


def wait_until(condition: Callable[[], bool], *, seconds: float = START_SECONDS) -> bool:
    """Ask again and again until it is so: another process has nothing to wait on."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(POLL_SECONDS)
    return condition()
