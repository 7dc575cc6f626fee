"""Kill our process in every way: nothing that it started may live on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runner.conftest import is_running, wait_until

ROOT = Path(__file__).resolve().parents[2]
PROLOGUE = """
import os, sys, threading, time
from pathlib import Path
from orchestration.runner.command import CommandSpec, run_command
from orchestration.runner.launch import LAUNCHER

def run(code, on_start=lambda pgid: None):
    return run_command(
        CommandSpec(argv=(sys.executable, "-I", "-S", "-c", code), workspace=Path(sys.argv[1])),
        on_output=lambda text: print(text, end="", flush=True),
        on_start=on_start,
        should_stop=lambda: None,
    )
"""
STUBBORN_FAMILY = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
print(f"{os.getpid()}\\n", end="", flush=True)
time.sleep(600)
"""


@contextmanager
def parent_process(code: str, workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a small program that uses the runner, as our server would."""
    with subprocess.Popen(  # noqa: S603 (our own test program)
        [sys.executable, "-c", PROLOGUE + code, str(workspace)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def read_numbers(parent: subprocess.Popen[str], count: int) -> list[int]:
    """Read process ids from the program, one a line."""
    assert parent.stdout is not None
    return [int(parent.stdout.readline()) for _ in range(count)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_family_of_a_killed_parent_dies_with_it(workspace: Path, number: signal.Signals) -> None:
    # Whoever starts the tests with nohup hands down an ignored SIGHUP.
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    code += f"threading.Thread(target=run, args=({STUBBORN_FAMILY!r},), daemon=True).start()\n"
    code += "threading.Event().wait()\n"
    with parent_process(code, workspace) as parent:
        pids = read_numbers(parent, 3)
        assert all(is_running(pid) for pid in pids)
        parent.send_signal(number)
        parent.wait(30)
        assert wait_until(lambda: not any(is_running(pid) for pid in pids), seconds=20)


def test_launcher_monitor_and_private_directory_go_too(workspace: Path) -> None:
    command = "import os, time; print(os.getppid()); print(os.environ['TMPDIR'], flush=True)\n"
    command += "open(os.environ['TMPDIR'] + '/file', 'w').close(); time.sleep(600)"
    code = f"run({command!r}, on_start=lambda pgid: print(LAUNCHER.pid, flush=True))"
    with parent_process(code, workspace) as parent:
        assert parent.stdout is not None
        pids = read_numbers(parent, 2)
        scratch = Path(parent.stdout.readline().strip())
        assert scratch.is_dir()
        parent.kill()
        assert wait_until(lambda: not any(is_running(pid) for pid in pids), seconds=20)
        assert wait_until(lambda: not scratch.exists(), seconds=20)


def test_command_at_its_gate_never_runs(workspace: Path) -> None:
    command = f"open({str(workspace / 'started')!r}, 'w').close()"
    code = f"run({command!r}, on_start=lambda pgid: (print(pgid, flush=True), time.sleep(600)))"
    with parent_process(code, workspace) as parent:
        (pgid,) = read_numbers(parent, 1)
        assert is_running(pgid)
        parent.kill()
        assert wait_until(lambda: not is_running(pgid), seconds=20)
    assert not (workspace / "started").exists()


def test_forked_sibling_that_holds_our_sockets_keeps_nothing_alive(workspace: Path) -> None:
    code = f"""
def fork_then_wait(pgid):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
run({STUBBORN_FAMILY!r}, on_start=fork_then_wait)
"""
    with parent_process(code, workspace) as parent:
        sibling, *pids = read_numbers(parent, 4)
        parent.kill()
        try:
            assert wait_until(lambda: not any(is_running(pid) for pid in pids), seconds=20)
            assert is_running(sibling)
        finally:
            os.kill(sibling, signal.SIGKILL)


def test_end_of_the_parent_ends_its_launcher(workspace: Path) -> None:
    code = "run('pass', on_start=lambda pgid: print(LAUNCHER.pid, flush=True))"
    with parent_process(code, workspace) as parent:
        (launcher,) = read_numbers(parent, 1)
        assert parent.wait(30) == 0
        assert wait_until(lambda: not is_running(launcher), seconds=20)


def test_forked_child_uses_a_launcher_of_its_own(workspace: Path) -> None:
    code = """
run("print(1)")
first = LAUNCHER.pid
child = os.fork()
run("print(2)")
print(LAUNCHER.pid == first, flush=True)
if child:
    os.waitpid(child, 0)
"""
    with parent_process(code, workspace) as parent:
        assert parent.stdout is not None
        lines = parent.stdout.read().split()
        assert parent.wait(30) == 0
    assert sorted(lines) == ["1", "2", "2", "False", "True"]
