"""Landlock: a process gives up every file but those below the places it names, for ever.

Works for anybody, root included. The launcher imports this, so it imports little.
Source: Documentation/userspace-api/landlock.rst of Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1
LEAST_VERSION = 3
"""Before it (Linux 6.2), any file could be truncated."""
SIGNALS_VERSION = 6
"""From it on (Linux 6.12), other processes of the same user cannot be signalled."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
ALL_FILE_RIGHTS = (1 << 15) - 1
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
RIGHTS_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP_RIGHTS, NETWORK_VERSION = 0b11, 4
SCOPES = 0b11
IOCTL_VERSION = 5


def landlock_version() -> int:
    """Ask the kernel for its version of Landlock; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    found = ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(0, int(found))


def restrict_files(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Give up every file but those at or below these places; of what is missing, say nothing.

    Needs `no_new_privs`, or root. Errors: OSError.
    """
    version = landlock_version()
    if version < LEAST_VERSION:
        raise OSError(errno.ENOSYS, "Landlock is missing or too old")
    handled = ALL_FILE_RIGHTS | (IOCTL_DEV if version >= IOCTL_VERSION else 0)
    attributes = struct.pack("Q", handled)
    if version >= NETWORK_VERSION:
        attributes += struct.pack("Q", TCP_RIGHTS)
    if version >= SIGNALS_VERSION:
        attributes += struct.pack("Q", SCOPES)
    ruleset = _call(CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in readable:
            _allow(ruleset, path, READ_RIGHTS)
        for path in writable:
            _allow(ruleset, path, handled)
        _call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= RIGHTS_OF_A_FILE
        _call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: int | bytes) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    answer = int(library.syscall(ctypes.c_long(number), *given))
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer
