"""Read the kernel's process table under /proc.

The launcher imports this and is forked for every command, so it imports little itself.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TOKEN_VARIABLE = "COUNTERSIGN_RUN_TOKEN"  # noqa: S105 (a name, and no secret)
PROC = Path("/proc")
STAT_BYTES = 4096


class ProcessRow(NamedTuple):
    """One process as the kernel shows it. Units: `started` is clock ticks since boot."""

    pid: int
    state: str
    parent: int
    group: int
    started: int

    @property
    def is_dead(self) -> bool:
        """Say whether only its exit status is left."""
        return self.state in "ZX"


def has_proc() -> bool:
    """Say whether this system shows its processes under /proc."""
    return (PROC / "self" / "stat").exists()


@functools.cache
def machine_mark() -> str:
    """Name this boot and this process namespace; process ids mean nothing outside of both."""
    if not has_proc():
        return "-"
    boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        namespace = (PROC / "self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        namespace = "?"  # a kernel without namespaces has only one
    return f"{boot}/{namespace}"


def proc_token(pid: int) -> str:
    """Make the token of a live process from /proc. Errors: ProcessLookupError when it is gone."""
    row = read_process(pid)
    if row is None:
        raise ProcessLookupError(pid)
    return f"{machine_mark()}/{pid}/{row.started}"


def read_process(pid: int) -> ProcessRow | None:
    """Read one row of /proc, or None when the process is gone."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            raw = os.read(descriptor, STAT_BYTES)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the name in parentheses may itself hold spaces and parentheses
    fields = raw[raw.rindex(b")") + 2 :].split()
    return ProcessRow(
        pid=pid,
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        group=int(fields[2]),
        started=int(fields[19]),
    )


def list_processes() -> Iterator[ProcessRow]:
    """Yield every process that /proc shows."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            row = read_process(int(entry.name))
            if row is not None:
                yield row


def descendants(pid: int) -> list[int]:
    """List the live descendants of a process. Shape: parents before children; [] without /proc."""
    found: list[int] = []
    pending = [pid]
    while pending:
        children = [child for child in _children(pending.pop()) if child not in found]
        found += children
        pending += children
    return found


def _children(pid: int) -> list[int]:
    """List the children of one process, of all its threads."""
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in (PROC / str(pid) / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    return children
