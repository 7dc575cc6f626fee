"""A filter of system calls for code that must not be trusted: no sockets, no key rings, no setuid.

Works for anybody and cannot be taken off again. The launcher imports this, so it imports little.
Source: seccomp(2), linux/audit.h; that nothing becomes setuid is systemd's RestrictSUIDSGID.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Mapping, Sequence

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD_WORD, JUMP_EQUAL, JUMP_ABOVE, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_OFFSET, ARCH_OFFSET, ARGUMENTS_OFFSET = 0, 4, 16
X32_BIT = 0x40000000
SETUID_BITS = 0o6000
AF_UNIX = 1

ALWAYS: Mapping[str, int] = {
    "io_uring_setup": errno.ENOSYS,  # it opens sockets and files past every other filter
    "add_key": errno.EPERM,
    "request_key": errno.EPERM,
    "keyctl": errno.EPERM,
    "bpf": errno.EPERM,
    "perf_event_open": errno.EPERM,
    "userfaultfd": errno.EPERM,
    "openat2": errno.ENOSYS,  # its mode is behind a pointer, which a filter cannot follow
}
MODES: Mapping[str, int] = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "open": 2, "openat": 3,
    "mknod": 1, "mknodat": 2, "mkdir": 1, "mkdirat": 2,
}  # fmt: skip
"""Calls that give a file its mode, and which argument that is."""

NUMBERS: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "socket": 41, "io_uring_setup": 425, "add_key": 248, "request_key": 249, "keyctl": 250,
            "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "openat2": 437,
            "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "creat": 85, "open": 2,
            "openat": 257, "mknod": 133, "mknodat": 259, "mkdir": 83, "mkdirat": 258,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "socket": 198, "io_uring_setup": 425, "add_key": 217, "request_key": 218,
            "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "openat2": 437,
            "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "mknodat": 33,
            "mkdirat": 34,
        },
    ),
}  # fmt: skip


def is_known_machine() -> bool:
    """Say whether we know the numbers of this machine's system calls."""
    return sys.platform == "linux" and os.uname().machine in NUMBERS and sys.maxsize > 2**32


def filter_program(sockets: str) -> bytes:
    """Write the filter. `sockets` is `any`, `no_unix` or `none`.

    Errors: OSError on a machine whose system calls we do not know.
    """
    if not is_known_machine():
        raise OSError(errno.ENOSYS, "no filter is known for this machine")
    arch, numbers = NUMBERS[os.uname().machine]
    code = [
        *_step(LOAD_WORD, ARCH_OFFSET),
        *_step(JUMP_EQUAL, arch, 1, 0),
        *_step(RETURN, ERRNO | errno.ENOSYS),
        *_step(LOAD_WORD, NUMBER_OFFSET),
        *_step(JUMP_ABOVE, X32_BIT, 0, 1),
        *_step(RETURN, ERRNO | errno.ENOSYS),
    ]
    for name, number in ALWAYS.items():
        code += _refuse(numbers[name], number)
    if sockets == "none":
        code += _refuse(numbers["socket"], errno.EPERM)
    elif sockets == "no_unix":
        code += _refuse_where(numbers["socket"], 0, JUMP_EQUAL, AF_UNIX)
    for name, argument in MODES.items():
        if name in numbers:
            code += _refuse_where(numbers[name], argument, JUMP_BITS, SETUID_BITS)
    return b"".join([*code, *_step(RETURN, ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> Sequence[bytes]:
    return [struct.pack("HBBI", code, if_true, if_false, value)]


def _refuse(number: int, error: int) -> list[bytes]:
    return [*_step(JUMP_EQUAL, number, 0, 1), *_step(RETURN, ERRNO | error)]


def _refuse_where(number: int, argument: int, test: int, value: int) -> list[bytes]:
    """Refuse one call where the low half of an argument passes a test."""
    return [
        *_step(JUMP_EQUAL, number, 0, 4),
        *_step(LOAD_WORD, ARGUMENTS_OFFSET + 8 * argument),
        *_step(test, value, 0, 1),
        *_step(RETURN, ERRNO | errno.EPERM),
        *_step(LOAD_WORD, NUMBER_OFFSET),
    ]


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def gain_no_privileges() -> None:
    """See that no program we become gains rights by being setuid. Errors: OSError."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1, 0)


def install_filter(program: bytes) -> None:
    """Put a filter on this process and all it starts. Errors: OSError."""
    held = _Program(len(program) // 8, program)
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(held))


def _prctl(option: int, first: int, second: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(one) for one in (first, second, 0, 0)]
    if library.prctl(option, *arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
