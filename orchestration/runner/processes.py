"""Recognise and end a process group that an earlier run of ours recorded.

A process id alone proves nothing: the system hands it out again. A token adds what cannot come
back: this boot, this process namespace, and the start time of the group's leader. Every command
also carries its token in its environment, so that members which outlived their leader, or left
the group, are still recognised.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

from orchestration.runner.proc import (
    PROC,
    TOKEN_VARIABLE,
    has_proc,
    list_processes,
    machine_mark,
    proc_token,
)

KILL_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.01


def process_token(pid: int) -> str:
    """Make the token of a live process: record it beside its group id.

    Errors: ProcessLookupError when the process is gone.
    """
    return proc_token(pid) if has_proc() else f"-/{pid}/{_started_by_ps(pid)}"


def is_local_token(token: str) -> bool:
    """Say whether the token was made in this boot and process namespace."""
    return token.rsplit("/", 2)[0] == machine_mark()


def carries_token(pid: int, token: str) -> bool:
    """Say whether the process was started with this token in its environment."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    return f"{TOKEN_VARIABLE}={token}".encode() in variables


def group_alive(pgid: int, token: str) -> bool:
    """Say whether any process of the recorded group still lives.

    False also when the token is of another boot or machine: `is_local_token` tells that apart.
    A member that cannot be told from a stranger (its leader gone, its environment emptied) counts
    as alive.
    """
    if not is_local_token(token):
        return False
    if not has_proc():
        return _alive_by_ps(pgid, token)
    proven, doubtful = _members(pgid, token)
    return bool(proven or doubtful)


def kill_group(pgid: int, token: str, *, wait_seconds: float = KILL_WAIT_SECONDS) -> bool:
    """Kill what is left of the recorded group and wait for its end; say whether it is dead.

    Never signals a process that only happens to have the same number.
    """
    deadline = time.monotonic() + wait_seconds
    while group_alive(pgid, token):
        _kill_members(pgid, token)
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _members(pgid: int, token: str) -> tuple[list[int], list[int]]:
    """Find the live processes of a recorded group: those proven ours, and those in doubt."""
    rows = [row for row in list_processes() if row.pid != os.getpid()]
    leader = next((row for row in rows if row.pid == pgid), None)
    is_leader_ours = leader is not None and token.endswith(f"/{pgid}/{leader.started}")
    proven, doubtful = [], []
    for row in rows:
        if row.is_dead:
            continue
        is_member = pgid in (row.group, row.pid)  # a leader still at its gate has no group yet
        if (is_member and is_leader_ours) or carries_token(row.pid, token):
            proven.append(row.pid)
        elif is_member and leader is None:
            doubtful.append(row.pid)
    return proven, doubtful


def _kill_members(pgid: int, token: str) -> None:
    """Send SIGKILL to every process proven to be of the group."""
    if not has_proc():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pgid, signal.SIGKILL)
        return
    for pid in _members(pgid, token)[0]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _alive_by_ps(pgid: int, token: str) -> bool:
    """Do without /proc (macOS): the group exists, and its number was not handed out again."""
    try:
        os.killpg(pgid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        return token == f"-/{pgid}/{_started_by_ps(pgid)}"
    except ProcessLookupError:
        return True  # members without their leader: a number in use as a group is not reused


def _started_by_ps(pid: int) -> str:
    """Ask ps when a process started. Errors: ProcessLookupError when it is gone."""
    answer = subprocess.run(  # noqa: S603 (fixed arguments)
        ["ps", "-o", "lstart=", "-p", str(pid)],  # noqa: S607 (from the system's own directories)
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C", "PATH": os.defpath},
    )
    started = "-".join(answer.stdout.split())
    if not started:
        raise ProcessLookupError(pid)
    return started
