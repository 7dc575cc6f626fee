"""Find a sandbox that holds on this machine, by trying to break out of each.

Nothing is believed because a program or a kernel feature is there: a probe runs inside, and a
mechanism counts only when the probe could do its work and reached nothing that it must not reach.
Source: DESIGN section 8; docs/sandbox.md.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pwd
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.errors import CountersignError
from orchestration.runner.command import CommandSpec, run_command
from orchestration.runner.landlock import LEAST_VERSION, SIGNALS_VERSION, landlock_version
from orchestration.runner.sandbox import FIRST_FREE_UID, Kind, Sandbox
from orchestration.runner.seccomp import is_known_machine

logger = logging.getLogger(__name__)

KINDS: Sequence[Kind] = ("bubblewrap", "uid", "landlock")
"""In the order of preference."""
PROBE_SECONDS = 20.0
MOST_UIDS = 200
MARK = "countersign-probe"
NO_WORKSPACE_FOR_OTHERS = "as root it can write only to workspaces that are root's"
NO_LOOPBACK = "a command can open no socket at all, not even to itself"
NO_METADATA = "a command can change mode and times of files that its user owns elsewhere"
CAN_SIGNAL = "a command can signal other processes of its user (Linux before 6.12)"
NO_SHARED_MEMORY = "a command has no shared memory (/dev/shm)"

PROBE = r"""
import json, os, socket, sys
secret, beside, port, server = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
reached = []
def attempt(name, action):
    try:
        action()
    except Exception:
        return
    reached.append(name)
def connect():
    with socket.create_connection(("127.0.0.1", port), 2):
        pass
def connect_unix():
    here = os.open(".", os.O_RDONLY)
    os.chdir(os.path.dirname(secret))  # such a name must be short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(2)
            one.connect("secret.socket")
    finally:
        os.fchdir(here)
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("192.0.2.1", 9))
attempt("data", lambda: open(secret).read())
attempt("data by its real path", lambda: open(os.path.realpath(secret)).read())
attempt("list of the data", lambda: os.listdir(os.path.dirname(secret)).index("secret"))
attempt("environment of the server", lambda: open("/proc/" + server + "/environ", "rb").read())
attempt("files of the server", lambda: os.readlink("/proc/" + server + "/cwd"))
attempt("TCP", connect)
attempt("UDP", send)
attempt("socket of a database", connect_unix)
attempt("write outside", lambda: open(beside, "x").close())
try:
    with open("inside", "w") as stream:
        stream.write("ok")
    os.mkdir("folder"); os.rename("inside", "folder/inside"); os.listdir(".")
    open(os.path.join(os.environ["TMPDIR"], "note"), "w").close()
    open("/dev/null", "w").close()
    open(os.path.abspath("own")).close()
    works = ""
except Exception as error:
    works = str(error) or type(error).__name__
print("countersign-probe" + json.dumps({"reached": reached, "works": works}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one mechanism. Shape: `sandbox` where it holds, else `why` not."""

    kind: Kind
    sandbox: Sandbox | None
    why: str = ""


def find_sandbox(
    secret: Sequence[Path], extra: Sequence[Path] = (), *, kinds: Sequence[Kind] = KINDS
) -> tuple[Sandbox | None, tuple[Finding, ...]]:
    """Return the first mechanism that holds, and what was found on the way to it.

    `secret` are directories that exist and belong to us: the first is where the probe hides a file.
    """
    findings: list[Finding] = []
    for kind in kinds:
        finding = try_kind(kind, secret, extra)
        findings.append(finding)
        if finding.sandbox is not None:
            return finding.sandbox, tuple(findings)
        logger.info("no sandbox by %s: %s", kind, finding.why)
    return None, tuple(findings)


def try_kind(kind: Kind, secret: Sequence[Path], extra: Sequence[Path] = ()) -> Finding:
    """Try one mechanism on this machine."""
    missing = _missing(kind)
    if missing:
        return Finding(kind, None, missing)
    bare = Sandbox(
        kind=kind,
        secret=tuple(path.resolve() for path in secret),
        extra=tuple(extra),
        program=shutil.which("bwrap") or "",
        uid=_free_uid() if kind == "uid" else 0,
        limits=_limits(kind),
    )
    try:
        why = _probe(bare)
    except (CountersignError, OSError) as error:
        why = str(error)
    return Finding(kind, None if why else bare, why)


def _missing(kind: Kind) -> str:
    """Say what a mechanism lacks here, before it is tried."""
    if not is_known_machine():
        return f"not known for {sys.platform} on {os.uname().machine}"
    if kind == "bubblewrap" and not shutil.which("bwrap"):
        return "the program bwrap is not installed"
    if kind == "uid" and os.geteuid() != 0:
        return "only root can run a command as another user"
    if kind == "landlock" and landlock_version() < LEAST_VERSION:
        return f"the kernel has Landlock version {landlock_version()}, 3 is needed (Linux 6.2)"
    return ""


def _limits(kind: Kind) -> tuple[str, ...]:
    """Say what a mechanism does not hold, though it keeps everything that the probe tries."""
    is_root = os.geteuid() == 0
    if kind == "bubblewrap":
        return (NO_WORKSPACE_FOR_OTHERS,) if is_root else ()
    if kind == "uid":
        return (NO_WORKSPACE_FOR_OTHERS,)
    limits = [NO_LOOPBACK, NO_SHARED_MEMORY, NO_METADATA]
    if landlock_version() < SIGNALS_VERSION:
        limits.append(CAN_SIGNAL)
    return (*limits, NO_WORKSPACE_FOR_OTHERS) if is_root else tuple(limits)


def _free_uid() -> int:
    """Find a user id that nobody has."""
    for uid in range(FIRST_FREE_UID, FIRST_FREE_UID + MOST_UIDS):
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid
    raise OSError("no user id is free for the sandbox")


def _probe(bare: Sandbox) -> str:
    """Run the probe inside; return why the mechanism does not hold, or the empty string."""
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(_directory(bare.secret[0])))
        secret, workspace = place / "secret", place / "workspace"
        secret.write_text("secret", encoding="ascii")
        workspace.mkdir()
        (workspace / "own").write_text("own", encoding="ascii")
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.enter_context(_unix_listener(place, "secret.socket"))
        beside = Path(tempfile.gettempdir()) / f"{MARK}-{secrets.token_hex(8)}"
        stack.callback(beside.unlink, missing_ok=True)
        port = listener.getsockname()[1]
        words = (str(secret), str(beside), str(port), str(os.getpid()))
        spec = CommandSpec(
            argv=(sys.executable, "-I", "-S", "-c", PROBE, *words),
            workspace=workspace,
            timeout_seconds=PROBE_SECONDS,
            sandbox=bare,
        )
        pieces: list[str] = []
        result = run_command(
            spec,
            on_output=pieces.append,
            on_start=lambda _: None,
            should_stop=lambda: None,
        )
        return _judge("".join(pieces), result.detail, is_written=beside.exists())


def _judge(text: str, detail: str, *, is_written: bool) -> str:
    """Read what the probe says of itself."""
    _, mark, said = text.partition(MARK)
    if not mark:
        return f"a command did not run in it: {detail or text.strip()[-300:] or 'it said nothing'}"
    report = json.loads(said)
    reached = [one for one in report["reached"] if one != "write outside" or is_written]
    if reached:
        return f"a command in it reached: {', '.join(reached)}"
    return f"a command could not work in it: {report['works']}" if report["works"] else ""


@contextlib.contextmanager
def _directory(parent: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix=f"{MARK}-", dir=parent) as made:
        yield made


@contextlib.contextmanager
def _unix_listener(place: Path, name: str) -> Iterator[None]:
    """Listen as a database would; by way of a descriptor, since such names must be short."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{descriptor}/{name}")
            listener.listen(1)
            yield
    finally:
        os.close(descriptor)
