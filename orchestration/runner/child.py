"""The last steps of a forked child before it becomes the command."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from orchestration.runner.confine import confine
from orchestration.runner.proc import TOKEN_VARIABLE, has_proc, proc_token

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NEVER_STARTED = 127
HAS_PROC = has_proc()


PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
IGNORED_SIGNALS: list[int] = [
    number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN
]
"""What Python and whoever started us had switched off, found once: the search is slow."""


def set_process_option(option: int, value: int) -> None:
    """Call prctl where there is one."""
    if PRCTL is not None:
        PRCTL(option, value, 0, 0, 0)


def ignore_signal(number: int) -> None:
    """Ignore a signal in this process, but not in a command it becomes."""
    signal.signal(number, signal.SIG_IGN)
    IGNORED_SIGNALS.append(number)


def become_command(
    request: dict[str, Any],
    scratch: Path,
    gate: socket.socket,
    output_fd: int,
    directory_fd: int,
    monitor_pid: int,
) -> NoReturn:
    """Turn this forked child into the command, once the gate says go. Never returns."""
    step = "prepare"
    try:
        os.setsid()
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != monitor_pid:
            os._exit(NEVER_STARTED)
        _reset_signals()
        _limit_resources(request)
        _connect_standard_files(output_fd)
        environment = _command_environment(request, scratch)
        argv = confine(request, str(scratch), directory_fd)
        if request["sandbox"] is not None:
            set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)  # another user's: it was forgotten
            if os.getppid() != monitor_pid:
                os._exit(NEVER_STARTED)
        if gate.recv(1) != b"g":
            os._exit(NEVER_STARTED)
        step = "execute"
        os.execvpe(argv[0], argv, environment)  # noqa: S606 (no shell)
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        gate.send(f"{step} {number}".encode())
    finally:
        os._exit(NEVER_STARTED)


def _command_environment(request: dict[str, Any], scratch: Path) -> dict[str, str]:
    """Complete the request's environment with what only this side knows."""
    environment: dict[str, str] = {"HOME": str(scratch), "TMPDIR": str(scratch)}
    environment.update(request["environment"])
    if HAS_PROC:
        environment[TOKEN_VARIABLE] = proc_token(os.getpid())
    return environment


def _reset_signals() -> None:
    """Give every signal its default again; a program expects that, and exec keeps ignored ones."""
    signal.set_wakeup_fd(-1)
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _limit_resources(request: dict[str, Any]) -> None:
    """Set the kernel's own limits, which hold for each process of the command by itself."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: request["file_limit_bytes"]}
    if sys.platform == "linux":
        # not RLIMIT_AS: Node, Go and Java reserve far more addresses than they ever use
        limits[resource.RLIMIT_DATA] = request["memory_limit_bytes"]
    for kind, wanted in limits.items():
        if wanted is not None:
            hard = resource.getrlimit(kind)[1]
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (value, value))


def _connect_standard_files(output_fd: int) -> None:
    """Read from nothing, and write both streams into the one pipe, in the order written."""
    null_fd = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_fd, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
