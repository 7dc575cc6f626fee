"""Watch over one command: start it, obey its caller, end all of it, report.

Runs in a process of its own, forked by the launcher; `runner/launcher.py` says why.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from orchestration.runner.child import PR_SET_CHILD_SUBREAPER, become_command, set_process_option
from orchestration.runner.proc import descendants, has_proc

WATCH_SECONDS = 0.1
"""How often the size of a running command is looked at, the first time after one such span."""
RETRY_KILL_SECONDS = 0.02
PAGE_BYTES = resource.getpagesize()


class Monitor:
    """Run one command and everything it starts.

    Shape of the talk with the caller, one JSON document or word a line. In: the request, then
    `go`, `term`, `kill`. Out: `{"pid"}`, then `{"exit", "exec_errno", "exec_step", "limit"}`,
    where a negative exit is a signal.
    """

    def __init__(self, parent: int | None) -> None:
        self.parent = parent
        self.output_fd = -1
        self.directory_fd = -1
        self.request: dict[str, Any] = {}
        self.received = b""
        self.pid = 0
        self.scratch: Path | None = None
        self.gate: socket.socket | None = None
        self.exit: int | None = None
        self.exec_step = ""
        self.exec_errno = 0
        self.limit = ""
        self.next_watch_at = float("inf")
        self.is_killing = False
        self.is_ended = False
        self.poller = select.poll()
        self.handlers: dict[int, Callable[[], None]] = {}
        self._adopt_orphans()

    def run(self, fds: Sequence[int]) -> None:
        """Take the caller's three files; return when no process of the command is left."""
        for fd in fds:
            fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # a socket hands them on inheritable
        control_fd, self.output_fd, self.directory_fd = fds
        self.control = socket.socket(fileno=control_fd)
        self._handle(control_fd, self._obey)
        if self.parent is not None:
            self._handle(self.parent, self._become_orphan)
        while not self.is_ended:
            for fd, _ in self.poller.poll(self._wait_ms()):
                if fd in self.handlers:
                    self.handlers[fd]()
            self._tend()
        self._clean_up()
        self._report(
            exit=self.exit, exec_errno=self.exec_errno, exec_step=self.exec_step, limit=self.limit
        )

    def _clean_up(self) -> None:
        """Delete the private directory; what a hostile tree manages to keep is only litter."""
        if self.scratch is None:
            return
        try:
            self.scratch.rmdir()
        except OSError:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _adopt_orphans(self) -> None:
        """Become the parent of whatever loses its own below us, and wake up when a child ends."""
        set_process_option(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._handle(wake_read, lambda: self._wake_up(wake_read))

    def _handle(self, fd: int, handler: Callable[[], None]) -> None:
        self.handlers[fd] = handler
        self.poller.register(fd, select.POLLIN)

    def _forget(self, fd: int) -> None:
        del self.handlers[fd]
        self.poller.unregister(fd)

    def _wait_ms(self) -> float | None:
        if self.is_killing:
            return RETRY_KILL_SECONDS * 1000
        if self.next_watch_at == float("inf"):
            return None
        return max(0.0, self.next_watch_at - time.monotonic()) * 1000

    def _tend(self) -> None:
        """Do what is due between two events."""
        now = time.monotonic()
        if not self.is_killing and now >= self.next_watch_at:
            self.next_watch_at = now + WATCH_SECONDS
            self.limit = exceeded_limit(
                self.request["max_processes"], self.request["memory_limit_bytes"]
            )
            self.is_killing = bool(self.limit)
        if self.is_killing and not self.is_ended:
            self._kill_all()
            self._reap()

    def _obey(self) -> None:
        """Act on what the caller sent; a closed socket means that it is gone."""
        try:
            data = self.control.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self._forget(self.control.fileno())
            self._become_orphan()
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            if not self.request:
                self._begin(json.loads(line))
            elif line == b"go" and self.gate is not None:
                self.gate.send(b"g")
            elif line == b"term":
                self._ask_to_end()
            elif line == b"kill":
                self.is_killing = True

    def _become_orphan(self) -> None:
        """End everything, because nobody is left to take the result."""
        if not self.pid:
            os._exit(0)
        self.is_killing = True
        if self.parent is not None and self.parent in self.handlers:
            self._forget(self.parent)  # it stays readable for ever

    def _begin(self, request: dict[str, Any]) -> None:
        """Start the command, or end with the reason why that is impossible here."""
        self.request = request
        try:
            self._fork_command()
        except OSError as error:
            self.exec_step, self.exec_errno = "prepare", error.errno or errno.EINVAL
            self.is_ended = True

    def _fork_command(self) -> None:
        """Fork the command; it waits at its gate until the caller has recorded its group."""
        scratch = Path(self.request["scratch"])
        scratch.mkdir(mode=0o700)
        self.scratch = scratch
        ours, theirs = socket.socketpair()
        monitor_pid = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            become_command(
                self.request, scratch, theirs, self.output_fd, self.directory_fd, monitor_pid
            )
        theirs.close()
        os.close(self.output_fd)
        os.close(self.directory_fd)
        self.gate = ours
        self._handle(ours.fileno(), self._read_gate)
        self._report(pid=self.pid)  # it prepares itself while the caller records its group

    def _read_gate(self) -> None:
        """Learn that the command is running, or why it is not."""
        if self.gate is None:
            return
        said = self.gate.recv(256)
        if said:
            step, number = said.decode("ascii").split()
            self.exec_step, self.exec_errno = step, int(number)
        elif has_proc():
            self.next_watch_at = time.monotonic() + WATCH_SECONDS
        self._forget(self.gate.fileno())
        self.gate.close()
        self.gate = None

    def _wake_up(self, wake_fd: int) -> None:
        os.read(wake_fd, 4096)
        self._reap()

    def _reap(self) -> None:
        """Take the exit status of every ended child; once the command ended, end the rest."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_ended = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self._kill_all()
                self.is_killing = True
                self.exit = os.waitstatus_to_exitcode(status)

    def _ask_to_end(self) -> None:
        """Send SIGTERM. Bubblewrap would die of it and take the command along without a chance."""
        sandbox = self.request["sandbox"]
        if sandbox is None or sandbox["kind"] != "bubblewrap":
            self._signal_group(signal.SIGTERM)
            return
        for pid in descendants(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def _signal_group(self, number: int) -> None:
        # EPERM: macOS says so of a group that holds only zombies
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _kill_all(self) -> None:
        """Kill the group at one blow, then whatever left it."""
        leader = []
        if self.exit is None:  # later the number may belong to somebody else
            self._signal_group(signal.SIGKILL)
            leader = [self.pid]
        for pid in [*leader, *descendants(os.getpid())]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _report(self, **fields: Any) -> None:
        """Tell the caller, if it is still there."""
        with contextlib.suppress(ConnectionError):
            self.control.sendall(json.dumps(fields).encode() + b"\n")


def exceeded_limit(max_processes: int | None, memory_limit_bytes: int | None) -> str:
    """Measure all processes below this one. Shape: `process_limit`, `memory_limit` or nothing."""
    below = descendants(os.getpid())
    if max_processes is not None and len(below) > max_processes:
        return "process_limit"
    if memory_limit_bytes is None or sum(map(_resident_bytes, below)) <= memory_limit_bytes:
        return ""
    # forked processes share pages: ask for the fair share only when the quick sum is too high
    return "memory_limit" if sum(map(_fair_bytes, below)) > memory_limit_bytes else ""


def _resident_bytes(pid: int) -> int:
    """Count the memory one process occupies, shared pages in full."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[1]) * PAGE_BYTES if fields else 0


def _fair_bytes(pid: int) -> int:
    """Count the memory one process occupies, shared pages divided by their users."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return _resident_bytes(pid)
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
