"""The process that starts commands for us and sees to it that they die with us.

`runner/launch.py` starts one launcher for each of our processes, on first use. The launcher always
keeps one forked monitor waiting; a monitor takes one command and forks it:

    our process ──socket──► spare monitor ──fork──► command (own session)
                   launcher ──fork──► next spare monitor

Why processes between: Linux ties PR_SET_PDEATHSIG to the *thread* that forked, and our threads
come and go; a child subreaper must be a process that waits for children; and forking a small
process costs a millisecond where starting an interpreter costs fifteen. The monitor kills
everything below it, processes that left the session included, as soon as its command has ended or
our process is gone (its socket closes, or its pidfd says so). All of it runs on the standard
library alone, without site-packages, and imports little: what is mapped is what forks cost.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import time

from orchestration.runner.child import ignore_signal
from orchestration.runner.monitor import Monitor
from orchestration.runner.proc import machine_mark

FDS_PER_REQUEST = 3
RETRY_SECONDS = 0.1


def main(socket_fd: int, parent_pid: int) -> None:
    """Keep one spare monitor waiting, until our parent closes its end of the socket or dies."""
    os.umask(0o022)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ignore_signal(number)  # our life is tied to the parent's, not to a signal
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # monitors need no reaping
    requests = socket.socket(fileno=socket_fd)
    parent = _open_pidfd(parent_pid)
    if os.getppid() != parent_pid:
        return
    machine_mark()
    gc.collect()
    gc.freeze()  # keep the pages shared with the monitors
    while _keep_spare(requests, parent):
        continue


def _open_pidfd(pid: int) -> int | None:
    """Open a handle that becomes readable when the process ends, where the system has such."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # macOS, or a kernel before 5.3: the closing socket is the only sign


def _keep_spare(requests: socket.socket, parent: int | None) -> bool:
    """Fork a spare monitor and wait until it is needed; say whether another one will be."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            pid = os.fork()
        except OSError:
            time.sleep(RETRY_SECONDS)  # no room for a process now; callers wait, then are told
            return True
        if pid == 0:
            ours.close()
            _become_monitor(requests, theirs, parent)
        theirs.close()
        poller = select.poll()
        poller.register(ours, select.POLLIN)
        poller.register(requests, 0)  # only its closing: reading is the spare's
        if parent is not None:
            poller.register(parent, select.POLLIN)
        ready = {fd for fd, _ in poller.poll()}
        if ready != {ours.fileno()}:
            return False
        if not ours.recv(1):
            time.sleep(RETRY_SECONDS)  # it was killed; do not fork at full speed
        return True


def _become_monitor(requests: socket.socket, taken: socket.socket, parent: int | None) -> None:
    """Wait for one request, say that it is taken, and see it through. Never returns."""
    status = 1
    try:
        monitor = Monitor(parent)
        poller = select.poll()
        poller.register(requests, select.POLLIN)
        if parent is not None:
            poller.register(parent, select.POLLIN)
        if parent in {fd for fd, _ in poller.poll()}:
            return
        data, fds, _, _ = socket.recv_fds(requests, 1, FDS_PER_REQUEST)
        if data:
            taken.send(b"t")
            taken.close()
            requests.close()
            monitor.run(fds)
        status = 0
    finally:
        os._exit(status)
