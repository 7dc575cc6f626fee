"""Shut a forked child in, before it becomes a command that must not be trusted.

Shape of the request's `sandbox`: `{kind, readable, writable, hidden, uid, cwd}`; `kind` is
`bubblewrap`, `uid` or `landlock`, paths are real and absolute. Whatever fails here keeps the
command from starting. Source: docs/sandbox.md.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from orchestration.runner.landlock import LEAST_VERSION, landlock_version, restrict_files
from orchestration.runner.seccomp import filter_program, gain_no_privileges, install_filter

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x00020000, 0x08000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CAPABILITY_VERSION_3 = 0x20080522
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
FOR_EVERYBODY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (they are hidden, not used)
FILTER_OPTION = "--seccomp"


def confine(request: dict[str, Any], scratch: str, directory_fd: int) -> list[str]:
    """Shut this process in and return the words to execute. Errors: OSError."""
    sandbox = request["sandbox"]
    argv: list[str] = request["argv"]
    if sandbox is None:
        os.fchdir(directory_fd)
        return argv
    writable = [*sandbox["writable"], scratch]
    if sandbox["kind"] == "bubblewrap":
        return _hand_filter_over(argv)
    if sandbox["kind"] == "uid":
        _leave(sandbox, writable, directory_fd)
        filtered = filter_program("no_unix")
        writable += FOR_EVERYBODY
    else:
        os.fchdir(directory_fd)
        filtered = filter_program("none")
    gain_no_privileges()
    if sandbox["kind"] == "landlock" or landlock_version() >= LEAST_VERSION:
        restrict_files([*sandbox["readable"], "/proc"], [*writable, *DEVICES])
    if os.geteuid() == 0:
        _drop_capabilities()
    install_filter(filtered)
    return argv


def _hand_filter_over(argv: Sequence[str]) -> list[str]:
    """Give bubblewrap the filter through a pipe, as it wants it."""
    read_fd, write_fd = os.pipe()
    os.write(write_fd, filter_program("any"))
    os.close(write_fd)
    os.set_inheritable(read_fd, True)  # noqa: FBT003 (its only argument)
    return [argv[0], FILTER_OPTION, str(read_fd), *argv[1:]]


def _leave(sandbox: dict[str, Any], writable: Sequence[str], directory_fd: int) -> None:
    """Leave our mounts, network and user for others. Needs root with its capabilities."""
    seen = os.fstat(directory_fd)
    for path in writable:
        lend_tree(path, sandbox["uid"])
    _library("unshare", CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET)
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _hide(sandbox["hidden"], sandbox["readable"], writable)
    _raise_loopback()
    os.setgroups([])
    os.setresgid(sandbox["uid"], sandbox["uid"], sandbox["uid"])
    os.setresuid(sandbox["uid"], sandbox["uid"], sandbox["uid"])
    os.chdir(sandbox["cwd"])
    found = os.stat(".")  # noqa: PTH116 (imports little)
    if (found.st_dev, found.st_ino) != (seen.st_dev, seen.st_ino):
        raise OSError(errno.ESTALE, "the directory was swapped for another")


def lend_tree(root: str, uid: int) -> None:
    """Give a tree that is root's to the sandbox's user.

    What is somebody else's stays theirs; so does a file with other names, which may be outside.
    """
    for _, _, files, directory in os.fwalk(root, follow_symlinks=False):
        with suppress(FileNotFoundError):
            if os.fstat(directory).st_uid == 0:
                os.fchown(directory, uid, uid)
            for name in files:
                _lend_file(directory, name, uid)


def _lend_file(directory: int, name: str, uid: int) -> None:
    with suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if found.st_uid == 0 and found.st_nlink == 1 and stat.S_ISREG(found.st_mode):
            os.chown(name, uid, uid, dir_fd=directory, follow_symlinks=False)


def _hide(hidden: Iterable[str], readable: Sequence[str], writable: Sequence[str]) -> None:
    """Lay an empty directory over each hidden place, and put back what may be seen inside."""
    places = [path for path in hidden if os.path.isdir(path)]  # noqa: PTH112 (imports little)
    back: list[tuple[str, int, bool]] = []
    for is_writable, paths in ((False, readable), (True, writable)):
        back += [
            (path, os.open(path, os.O_PATH | os.O_CLOEXEC), is_writable)
            for path in sorted(paths, key=len)
            if os.path.isdir(path) and any(_is_below(path, place) for place in places)  # noqa: PTH112
        ]
    for place in sorted(places, key=len):
        mode = "1777" if place in FOR_EVERYBODY else "0755"
        if os.path.isdir(place):  # noqa: PTH112 (one above may have hidden it already)
            _mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode},size=256m")
    for path, opened, is_writable in back:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
        _mount(f"/proc/self/fd/{opened}", path, "", MS_BIND | MS_REC)
        if not is_writable:
            _mount("none", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)
        os.close(opened)


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


def _raise_loopback() -> None:
    """Switch on the loopback of our own, empty network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        asked = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(handle, SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))


def _drop_capabilities() -> None:
    """Stay root in name only: no right that another user would not have."""
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    _library("capset", header, bytes(24))


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _library(
        "mount", source.encode(), os.fsencode(target), kind.encode() or None,
        ctypes.c_ulong(flags), data.encode() or None,
    )  # fmt: skip


def _library(name: str, *arguments: Any) -> None:
    """Call a function of the C library. Errors: OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
