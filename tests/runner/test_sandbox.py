"""Code in a sandbox reaches nothing of ours, by each mechanism that this machine has."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.errors import WorkspaceError
from orchestration.runner.command import CommandResult, CommandSpec, run_command
from orchestration.runner.landlock import SIGNALS_VERSION, landlock_version
from orchestration.runner.probing import find_sandbox, try_kind
from orchestration.runner.sandbox import Sandbox, readable_places
from tests.runner.conftest import is_running, wait_until
from tests.runner.sandboxes import findings, kinds_that_hold

SLEEPER = "import time; time.sleep(600)"
SECRET = "the-secret-key-of-this-server"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Make a data directory as ours is: for its owner alone, with workspaces inside."""
    made = tmp_path / "data"
    made.mkdir(mode=0o700)
    (made / "secret_key").write_text(SECRET)
    (made / "countersign.sqlite3").write_text(SECRET)
    (made / "workspaces" / "one").mkdir(parents=True)
    (made / "workspaces" / "other").mkdir()
    (made / "workspaces" / "other" / "notes").write_text(SECRET)
    return made


@pytest.fixture
def workspace(data_dir: Path) -> Path:
    return data_dir / "workspaces" / "one"


@pytest.fixture(params=kinds_that_hold())
def sandbox(request: pytest.FixtureRequest, data_dir: Path) -> Sandbox:
    """Each mechanism that holds here, around this test's own data directory."""
    held = findings()[request.param].sandbox
    assert held is not None
    return replace(held, secret=(data_dir.resolve(),))


Inside = Callable[..., tuple[CommandResult, str]]


@pytest.fixture
def inside(sandbox: Sandbox, workspace: Path) -> Inside:
    """Run a command in the sandbox; answer its result and all it said."""

    def runner(*argv: str, **options: object) -> tuple[CommandResult, str]:
        pieces: list[str] = []
        spec = CommandSpec(argv=argv, workspace=workspace, sandbox=sandbox, **options)  # type: ignore[arg-type]
        result = run_command(
            spec, on_output=pieces.append, on_start=lambda _: None, should_stop=lambda: None
        )
        return result, "".join(pieces)

    return runner


@pytest.fixture
def python(inside: Inside) -> Inside:
    """Run a piece of Python in the sandbox."""

    def runner(code: str, *words: str, **options: object) -> tuple[CommandResult, str]:
        return inside(sys.executable, "-I", "-S", "-c", code, *words, **options)

    return runner


def test_some_mechanism_holds_on_this_machine(data_dir: Path) -> None:
    found, tried = find_sandbox([data_dir])
    assert found is not None, [f"{one.kind}: {one.why}" for one in tried]


def test_what_does_not_hold_says_why() -> None:
    assert all(one.sandbox or one.why for one in findings().values())


def test_without_a_sandbox_the_probe_reaches_everything(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sandbox, "request", lambda *_: None)
    monkeypatch.setattr(Sandbox, "wrapped", lambda _self, argv, *_: list(argv))
    why = try_kind(kinds_that_hold()[0], [data_dir]).why
    names = ["data,", "environment", "files of the server", "TCP", "database", "write outside"]
    assert [name for name in names if name not in why] == []


def test_ordinary_work_is_possible(python: Inside, workspace: Path) -> None:
    (workspace / "module.py").write_text("print(6 * 7)")
    result, text = python(
        "import os, subprocess, sys, tempfile\n"
        "os.makedirs('deep/er'); os.rename('deep/er', 'deeper')\n"
        "open('made', 'w').write('x')\n"
        "tempfile.NamedTemporaryFile().close()\n"
        "print(subprocess.run([sys.executable, os.path.abspath('module.py')],"
        " capture_output=True, text=True, check=True).stdout, end='')\n"
        "print(os.getcwd())\n"
    )
    assert (result.outcome, text) == ("ok", f"42\n{workspace.resolve()}\n")
    assert (workspace / "made").read_text() == "x"


@pytest.mark.parametrize(
    "name", ["secret_key", "countersign.sqlite3", "workspaces/other/notes", "."]
)
def test_data_directory_cannot_be_read(python: Inside, data_dir: Path, name: str) -> None:
    code = (
        "import os, sys\n"
        "paths = (sys.argv[1], os.path.relpath(sys.argv[1]),\n"
        "         '/proc/self/cwd/../../' + sys.argv[2],\n"
        "         '/proc/' + sys.argv[3] + '/root' + sys.argv[1])\n"
        "reads = (lambda p: open(p).read(), os.listdir, lambda p: os.link(p, 'link'))\n"
        "writes = (lambda p: open(p, 'a').write('x'), os.remove,\n"
        "          lambda p: os.truncate(p, 0), lambda p: os.rename(p, 'mine'))\n"
        "for actions in (reads, writes):\n"
        "    for path in paths:\n"
        "        for action in actions:\n"
        "            try:\n"
        "                got = action(path)\n"
        "            except OSError:\n"
        "                continue\n"
        "            if actions is reads and got not in ([], ['one'], ['workspaces']):\n"
        "                print('reached', path, got)\n"
    )
    before = everything_in(data_dir)
    result, text = python(code, str(data_dir / name), name, str(os.getpid()))
    assert (result.outcome, text) == ("ok", "")
    # A mechanism may show an empty directory of its own that takes writes; ours has none of them.
    assert everything_in(data_dir) == before


def everything_in(data_dir: Path) -> dict[str, str]:
    """Read every file outside the workspace, and name every directory."""
    found = {one.relative_to(data_dir): one for one in data_dir.rglob("*")}
    return {
        str(name): one.read_text() if one.is_file() else ""
        for name, one in found.items()
        if name.parts[:2] != ("workspaces", "one")
    }


def test_link_in_the_workspace_leads_nowhere(
    inside: Inside, data_dir: Path, workspace: Path
) -> None:
    (workspace / "way").symlink_to(data_dir / "secret_key")
    result, text = inside("cat", "way")
    assert result.outcome == "failed"
    assert SECRET not in text


def test_server_process_cannot_be_looked_into(python: Inside) -> None:
    code = (
        "import os, sys\n"
        "for name in ('environ', 'mem', 'maps', 'cwd', 'exe', 'root', 'fd/0', 'fd/1', 'fd/2'):\n"
        "    path = f'/proc/{sys.argv[1]}/{name}'\n"
        "    for action in (lambda p: open(p, 'rb').read(10), os.readlink, os.listdir):\n"
        "        try:\n"
        "            action(path); print('reached', path)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    result, text = python(code, str(os.getpid()))
    assert (result.outcome, text) == ("ok", "")


def test_environment_of_the_server_is_not_handed_on(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", SECRET)
    monkeypatch.setenv("SECRET_KEY", SECRET)
    result, text = inside("env")
    assert result.outcome == "ok"
    assert SECRET not in text


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Listen where a database or a server of this machine would."""
    name = f"countersign-{secrets.token_hex(4)}"
    path = Path(tempfile.mkdtemp(dir="/tmp")) / "s"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0)
        named.bind(str(path))
        abstract.bind(f"\0{name}")
        for one in (named, abstract):
            one.listen(1)
        ports = f"{tcp.getsockname()[1]},{udp.getsockname()[1]}"
        yield {"ports": ports, "path": str(path), "name": name}
        with pytest.raises(BlockingIOError):
            udp.recv(10)
    path.unlink()
    path.parent.rmdir()


def test_network_and_sockets_cannot_be_reached(python: Inside, listeners: dict[str, str]) -> None:
    code = (
        "import socket, sys\n"
        "tcp, udp = map(int, sys.argv[1].split(','))\n"
        "def stream(kind, address):\n"
        "    with socket.socket(kind) as one:\n"
        "        one.settimeout(2); one.connect(address)\n"
        "    print('reached', address)\n"
        "def datagram(address):\n"
        "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:\n"
        "        one.sendto(b'x', address)\n"
        "for action in (lambda: stream(socket.AF_INET, ('127.0.0.1', tcp)),\n"
        "               lambda: stream(socket.AF_INET, ('192.0.2.1', 80)),\n"
        "               lambda: stream(socket.AF_UNIX, sys.argv[2]),\n"
        "               lambda: stream(socket.AF_UNIX, '\\0' + sys.argv[3]),\n"
        "               lambda: datagram(('127.0.0.1', udp)),\n"
        "               lambda: print('reached', socket.getaddrinfo('example.org', 80))):\n"
        "    try:\n"
        "        action()\n"
        "    except OSError:\n"
        "        pass\n"
    )
    words = (listeners["ports"], listeners["path"], listeners["name"])
    result, text = python(code, *words)
    assert (result.outcome, text) == ("ok", "")


def test_nothing_is_written_outside_the_workspace(
    python: Inside, workspace: Path, tmp_path: Path
) -> None:
    name = f"countersign-{secrets.token_hex(8)}"
    places = [
        *(workspace.parent, workspace.parent.parent, tmp_path, Path.home(), Path("/")),
        *map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/usr", "/etc", "/run", "/proc/sys/kernel")),  # noqa: S108
        *(Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parent),
    ]
    code = (
        "import os, sys\n"
        "for place in sys.argv[2:]:\n"
        "    try:\n"
        "        open(os.path.join(place, sys.argv[1]), 'w').close()\n"
        "    except OSError:\n"
        "        pass\n"
    )
    result, _ = python(code, name, *map(str, places))
    assert result.outcome == "ok"
    assert [place for place in places if (place / name).exists()] == []


def test_existing_files_outside_are_not_changed(python: Inside, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    kept.chmod(0o666)
    code = (
        "import os, sys\n"
        "for action in (lambda p: open(p, 'w'), lambda p: os.truncate(p, 0), os.remove,\n"
        "               lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC),\n"
        "               lambda p: os.link(p, 'x')):\n"
        "    try:\n"
        "        action(sys.argv[1])\n"
        "    except OSError:\n"
        "        pass\n"
    )
    result, _ = python(code, str(kept))
    assert result.outcome == "ok"
    assert kept.read_text() == "as it was"


def test_children_do_not_outlive_the_command(python: Inside, workspace: Path) -> None:
    result, _ = python(
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            os.setsid(); open(f'alive-{os.getpid()}', 'w').close()\n"
        "            while True: open('beat', 'a').write('.'); time.sleep(0.01)\n"
        "        os._exit(0)\n"
        "time.sleep(0.3)\n"
    )
    assert result.outcome == "ok"
    assert len(list(workspace.glob("alive-*"))) == 3
    size = (workspace / "beat").stat().st_size
    assert not wait_until(lambda: (workspace / "beat").stat().st_size > size, seconds=0.3)


def test_deadline_ends_all_of_it(python: Inside, workspace: Path) -> None:
    result, _ = python(
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"os.fork(); os.setsid() if os.fork() == 0 else 0\n{SLEEPER}",
        timeout_seconds=0.5,
    )
    assert (result.outcome, result.exit_code) == ("timed_out", None)
    assert result.duration_seconds < 20
    assert result.pgid is not None
    assert not is_running(result.pgid)


def test_command_may_clean_up_at_its_deadline(inside: Inside, workspace: Path) -> None:
    code = "trap 'echo tidy > note; exit 0' TERM; sleep 600 & wait"
    result, _ = inside("sh", "-c", code, timeout_seconds=0.5)
    assert (result.outcome, (workspace / "note").read_text()) == ("timed_out", "tidy\n")


def test_limits_hold(python: Inside) -> None:
    hungry = "x = [b'x' * 2**20 for _ in range(400)]"
    assert python(hungry, memory_limit_bytes=128 * 2**20)[0].outcome in ("failed", "memory_limit")
    forks = f"import os\nfor _ in range(60):\n    if os.fork() == 0:\n        {SLEEPER}\n{SLEEPER}"
    assert python(forks, max_processes=20)[0].outcome == "process_limit"
    loud = "while True: print('x' * 1000)"
    assert python(loud, output_limit_bytes=10_000)[0].outcome == "output_limit"
    assert python("open('big', 'wb').write(bytes(2**21))", file_limit_bytes=2**20)[0].outcome == (
        "failed"
    )


def test_outcomes_are_those_of_a_bare_command(inside: Inside) -> None:
    assert inside("sh", "-c", "exit 7")[0].exit_code == 7
    assert inside("no-such-program")[0].outcome == "not_found"
    assert inside("sh", "-c", "echo out; echo err >&2")[1] == "out\nerr\n"


def test_nobody_can_make_a_program_that_gives_rights(python: Inside) -> None:
    code = (
        "import os\n"
        "os.umask(0); open('p', 'w').close()\n"
        "for mode in (0o4755, 0o2755):\n"
        "    for action in (lambda: os.chmod('p', mode), lambda: os.mkdir('d', mode),\n"
        "                   lambda: os.open(f'q{mode}', os.O_CREAT | os.O_WRONLY, mode)):\n"
        "        try:\n"
        "            action(); print('made', mode)\n"
        "        except OSError:\n"
        "            pass\n"
        "os.chmod('p', 0o755)\n"
    )
    result, text = python(code)
    assert (result.outcome, text) == ("ok", "")


def test_no_rights_are_left(python: Inside) -> None:
    result, text = python("print(open('/proc/self/status').read())")
    rows = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert result.outcome == "ok"
    assert {int(rows[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
    assert (rows["NoNewPrivs"], rows["Seccomp"]) == ("1", "2")


@pytest.mark.skipif(
    landlock_version() < SIGNALS_VERSION and kinds_that_hold() == ["landlock"],
    reason="only Landlock is here, and this kernel's cannot stop signals",
)
def test_other_processes_cannot_be_signalled(python: Inside) -> None:
    code = (
        "import os, sys\n"
        "try:\n"
        "    os.kill(int(sys.argv[1]), 0); print('reached')\n"
        "except OSError:\n"
        "    pass\n"
    )
    result, text = python(code, str(os.getpid()))
    assert (result.outcome, text) == ("ok", "")


def test_workspace_around_the_data_directory_gives_nothing_away(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    spec = CommandSpec(argv=("cat", "data/secret_key"), workspace=tmp_path, sandbox=sandbox)
    pieces: list[str] = []
    try:
        result = run_command(
            spec, on_output=pieces.append, on_start=lambda _: None, should_stop=lambda: None
        )
    except WorkspaceError as error:
        assert "cannot hide" in str(error)  # noqa: PT017 (a mechanism may refuse it instead)
        return
    assert result.outcome == "failed"
    assert SECRET not in "".join(pieces)


def test_place_around_a_secret_is_shown_without_it(tmp_path: Path) -> None:
    for name in ("a", "b/secret", "b/c"):
        (tmp_path / name).mkdir(parents=True)
    places = readable_places((str(tmp_path / "b" / "secret"),), (str(tmp_path),))
    ours = {path for path in places if Path(path).is_relative_to(tmp_path)}
    assert ours == {str(tmp_path / "a"), str(tmp_path / "b" / "c")}
