"""Our side of the launcher: start it on first use, hand commands to it, talk to their monitors."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestration.errors import Unavailable

PROJECT_ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from orchestration.runner.launcher import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
ANSWER_SECONDS = 30.0
"""How long a monitor may take to come up; it is milliseconds but on a machine in trouble."""
EXIT_SECONDS = 5.0


class LauncherLost(Exception):
    """The launcher died before it took the command, so that starting it again is safe."""


class Launched:
    """A command that waits at its gate or runs, under its monitor.

    `pgid` is 0 and `failure` is the monitor's report when it could not even be forked.
    """

    def __init__(self, control: socket.socket, output_fd: int) -> None:
        self.control = control
        self.output_fd = output_fd
        self.pgid = 0
        self.failure: dict[str, Any] = {}
        self._received = b""

    def await_gate(self) -> None:
        """Wait until the command is at its gate. Errors: EOFError when the monitor is gone."""
        message: dict[str, Any] | None = None
        while message is None:
            message = next(self.read_messages(), None)
        self.pgid = message.get("pid", 0)
        self.failure = {} if self.pgid else message

    def tell(self, word: str) -> None:
        """Send `go`, `term` or `kill`; a monitor that is gone shows as the end of its messages."""
        with contextlib.suppress(ConnectionError):
            self.control.sendall(word.encode() + b"\n")

    def read_messages(self) -> Iterator[dict[str, Any]]:
        """Yield what the monitor said. Errors: EOFError when it is gone."""
        try:
            data = self.control.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def close(self) -> None:
        """Close both files; the monitor then kills whatever still runs."""
        self.control.close()
        if self.output_fd >= 0:
            os.close(self.output_fd)
            self.output_fd = -1


class Launcher:
    """The launcher process of this process; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Give the launcher's process id, or None while there is none."""
        return self._process.pid if self._process is not None else None

    def launch(self, request: Mapping[str, Any], directory_fd: int) -> Launched:
        """Hand one command over; it waits at its gate.

        Errors: Unavailable when no process can be started here.
        """
        try:
            return self._launch_once(request, directory_fd)
        except LauncherLost:
            self.close()
        try:
            return self._launch_once(request, directory_fd)
        except LauncherLost as error:
            raise Unavailable("no process can be started on this machine now") from error

    def _launch_once(self, request: Mapping[str, Any], directory_fd: int) -> Launched:
        control, theirs = socket.socketpair()
        output_fd, their_output_fd = os.pipe()
        launched = Launched(control, output_fd)
        try:
            control.settimeout(ANSWER_SECONDS)
            try:
                self._send((theirs.fileno(), their_output_fd, directory_fd))
            finally:
                theirs.close()
                os.close(their_output_fd)
            control.sendall(json.dumps(request).encode() + b"\n")
            launched.await_gate()
        except (OSError, EOFError) as error:
            launched.close()
            raise LauncherLost from error
        return launched

    def _send(self, fds: tuple[int, ...]) -> None:
        with self._lock:
            if self._socket is None:
                self._start()
            if self._socket is not None:
                socket.send_fds(self._socket, [b"!"], fds)

    def _start(self) -> None:
        """Start the launcher with an empty environment: its commands can read that of a parent."""
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as on_failure, theirs:
            on_failure.callback(ours.close)
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and code)
                [
                    *(sys.executable, "-I", "-S", "-c", BOOTSTRAP),
                    *(str(PROJECT_ROOT), str(theirs.fileno()), str(os.getpid())),
                ],
                pass_fds=(theirs.fileno(),),
                env={"LANG": "C.UTF-8", "PATH": os.defpath},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            on_failure.pop_all()
        self._socket = ours

    def close(self) -> None:
        """End the launcher; commands that still run are not touched by that."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            if self._process is not None:
                try:
                    self._process.wait(EXIT_SECONDS)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process = None

    def forget(self) -> None:
        """Let go of the parent's launcher in a forked child."""
        self._lock = threading.Lock()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.returncode = 0  # the parent's to wait for, not ours
            self._process = None


LAUNCHER = Launcher()
atexit.register(LAUNCHER.close)
os.register_at_fork(after_in_child=LAUNCHER.forget)
