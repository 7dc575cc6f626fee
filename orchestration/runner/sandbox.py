"""What code that must not be trusted may see of this machine, and how that is enforced.

A `Sandbox` is one mechanism that was tried on this machine and held. `runner/probing.py` finds it;
a `CommandSpec` that carries one runs inside it.
Source: DESIGN section 8; docs/sandbox.md says what each mechanism holds.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from orchestration.errors import WorkspaceError
from orchestration.runner.worktrees import worktree_places

Kind = Literal["bubblewrap", "uid", "landlock"]

SYSTEM_PLACES = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
    "/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts",
    "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime",
    "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/protocols",
    "/etc/python3", "/etc/services", "/etc/shells", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
    "/etc/terminfo", "/etc/timezone",
)  # fmt: skip
"""What programs need of a system. Not all of /etc: it holds keys, and settings of services."""
PROGRAM_DIRECTORIES = frozenset({"bin", "sbin", "shims", "scripts"})
HIDDEN_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/root", "/home", "/run", "/mnt", "/media", "/srv")  # noqa: S108
"""What the separate user does not get to see, beside the data directory."""
FIRST_FREE_UID = 60_700
"""In a range that Debian and systemd leave alone."""
ENVIRONMENT = MappingProxyType(
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
)
"""Git refuses repositories of other users, and in a sandbox we may be another user."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """One mechanism that holds here. Shape: `secret` are places that nothing inside may see,
    `extra` places the operator adds to what may be read; `program` is bubblewrap's."""

    kind: Kind
    secret: tuple[Path, ...]
    extra: tuple[Path, ...] = ()
    program: str = ""
    uid: int = 0
    limits: tuple[str, ...] = field(default=())
    """What it does not hold, in words."""

    def request(self, workspace: Path, cwd: str, scratch: str) -> dict[str, Any]:
        """Write what the child needs to shut itself in.

        Errors: WorkspaceError for a workspace around a secret place: only bubblewrap hides that.
        """
        secret = [str(path.resolve()) for path in self.secret]
        within = [one for one in secret if _is_in(one, str(workspace.resolve()))]
        if within and self.kind != "bubblewrap":
            raise WorkspaceError(f"The workspace holds {within[0]}, which a sandbox cannot hide.")
        more = (*self.extra, *worktree_places(workspace, self.secret))
        readable = readable_places(tuple(secret), tuple(map(str, more)))
        real = workspace.resolve()
        closed = _closed_places((*readable, str(real), str(Path(scratch).parent)))
        return {
            "kind": self.kind,
            "readable": [path for path in readable if path != str(real)],
            "writable": [str(real)],
            "hidden": _without_doubles([*secret, *HIDDEN_PLACES, *closed]),
            "within": within,
            "uid": self.uid,
            "cwd": str((real / cwd).resolve()),
        }

    def wrapped(self, argv: Sequence[str], request: dict[str, Any], scratch: str) -> list[str]:
        """Put bubblewrap and its options before a command; the others need nothing there."""
        if self.kind != "bubblewrap":
            return list(argv)
        options = [
            self.program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL",
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp",  # noqa: S108
        ]  # fmt: skip
        for path in sorted(request["readable"], key=len):
            options += ["--ro-bind-try", path, path]
        for path in (*request["writable"], scratch):
            options += ["--bind", path, path]
        for path in request["within"]:
            options += ["--tmpfs", path]
        return [*options, "--remount-ro", "/", "--chdir", request["cwd"], "--", *argv]


@functools.lru_cache(maxsize=64)
def readable_places(secret: tuple[str, ...], extra: tuple[str, ...]) -> tuple[str, ...]:
    """List what may be read: the system, the programs of our PATH, our Python, and `extra`.

    A place that holds a secret one is listed by its parts; what lies in a secret one is left out.
    """
    wanted = [*SYSTEM_PLACES, *_program_places(), *extra]
    found: list[str] = []
    for path in wanted:
        found += _spared(path, secret)
        real = os.path.realpath(path)
        if real != path:
            found += _spared(real, secret)
    return tuple(_without_doubles(found))


def _program_places() -> Iterator[str]:
    """Yield the directories of our PATH, and what stands beside such as are part of a whole."""
    yield from {sys.prefix, sys.base_prefix}
    homes = {"/", "/root", "/home", str(Path.home()), str(Path.home() / ".local")}
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not entry.startswith("/"):
            continue
        yield entry
        whole = str(Path(entry).parent)
        is_home = whole in homes or str(Path(whole).parent) == "/home"
        if Path(entry).name.lower() in PROGRAM_DIRECTORIES and not is_home:
            yield whole


def _spared(path: str, secret: Sequence[str]) -> list[str]:
    """Return a place, or its parts without what is secret. Shape: only what exists."""
    if path == "/" or any(_is_in(path, one) for one in secret) or not Path(path).exists():
        return []
    if not any(_is_in(one, path) for one in secret):
        return [path]
    parts = sorted(str(part) for part in Path(path).iterdir() if not part.is_symlink())
    return [kept for part in parts for kept in _spared(part, secret)]


@functools.lru_cache(maxsize=64)
def _closed_places(paths: tuple[str, ...]) -> tuple[str, ...]:
    """List the uppermost directory above each path that another user may not pass."""
    closed = []
    for path in paths:
        parents = [*reversed(Path(path).parents), Path(path)]
        closed += [str(one) for one in parents if not one.stat().st_mode & stat.S_IXOTH][:1]
    return tuple(closed)


def _is_in(path: str, place: str) -> bool:
    return Path(path).is_relative_to(place)


def _without_doubles(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))
