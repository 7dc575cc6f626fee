"""Recognise an old process group after a crash, and never take a stranger for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestration.runner.command import CommandSpec, run_command
from orchestration.runner.proc import TOKEN_VARIABLE
from orchestration.runner.processes import (
    group_alive,
    is_local_token,
    kill_group,
    process_token,
)
from tests.runner.conftest import is_running, wait_until

FAMILY = """
import os, sys, time
os.environ["VARIABLE"] = sys.stdin.readline().strip()
program = [sys.executable, "-I", "-S", "-c", "import time; print(1, flush=True); time.sleep(600)"]
for change in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        if change == "leave":
            os.setsid()
        if change == "scrub":
            os.environ.clear()
        os.execv(sys.executable, program)
    print(pid, flush=True)
sys.stdin.readline()
""".replace("VARIABLE", TOKEN_VARIABLE)


@dataclass
class Family:
    """A group like that of a command: its leader, its token, its children."""

    leader: subprocess.Popen[str]
    token: str
    children: list[int]

    @property
    def pgid(self) -> int:
        """Give the number of the group."""
        return self.leader.pid


@contextmanager
def family(*changes: str, has_leader: bool = True) -> Iterator[Family]:
    """Start a leader and one child for each change; end the leader first where asked."""
    with subprocess.Popen(  # noqa: S603 (our own test program)
        [sys.executable, "-I", "-S", "-c", FAMILY, *changes],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as leader:
        assert leader.stdin is not None
        assert leader.stdout is not None
        token = process_token(leader.pid)
        leader.stdin.write(token + "\n")
        leader.stdin.flush()
        numbers = [int(leader.stdout.readline()) for _ in range(2 * len(changes))]
        children = [number for number in numbers if number != 1]
        if not has_leader:
            leader.stdin.write("end\n")
            leader.stdin.flush()
            leader.wait(10)
        try:
            yield Family(leader, token, children)
        finally:
            leader.kill()
            for pid in children:
                if is_running(pid):
                    os.kill(pid, signal.SIGKILL)


def test_live_group_is_alive_and_is_killed() -> None:
    with family("stay") as found:
        assert is_local_token(found.token)
        assert group_alive(found.pgid, found.token)
        assert kill_group(found.pgid, found.token)
        assert not group_alive(found.pgid, found.token)
        assert not is_running(found.leader.pid)
        assert not is_running(found.children[0])


def test_members_that_outlived_their_leader_are_killed() -> None:
    with family("stay", has_leader=False) as found:
        assert group_alive(found.pgid, found.token)
        assert kill_group(found.pgid, found.token)
        assert not is_running(found.children[0])


def test_process_that_left_the_group_is_killed() -> None:
    with family("leave", has_leader=False) as found:
        assert group_alive(found.pgid, found.token)
        assert kill_group(found.pgid, found.token)
        assert not is_running(found.children[0])


def test_number_that_was_handed_out_again_is_left_alone() -> None:
    with family("stay") as stranger:
        head, started = stranger.token.rsplit("/", 1)
        earlier = f"{head}/{int(started) - 1}"
        assert not group_alive(stranger.pgid, earlier)
        assert kill_group(stranger.pgid, earlier)
        assert is_running(stranger.leader.pid)
        assert is_running(stranger.children[0])


def test_member_in_doubt_counts_as_alive_and_is_not_killed() -> None:
    with family("scrub", has_leader=False) as found:
        assert group_alive(found.pgid, found.token)
        assert not kill_group(found.pgid, found.token, wait_seconds=0.1)
        assert is_running(found.children[0])


def test_dead_group_is_dead() -> None:
    with family(has_leader=False) as found:
        assert not group_alive(found.pgid, found.token)
        assert kill_group(found.pgid, found.token)


def test_zombie_leader_is_dead() -> None:
    with family() as found:
        os.kill(found.leader.pid, signal.SIGKILL)
        assert wait_until(lambda: not is_running(found.leader.pid))
        assert not group_alive(found.pgid, found.token)


def test_token_of_another_boot_says_nothing_here() -> None:
    with family() as found:
        _, rest = found.token.split("/", 1)
        foreign = f"00000000-0000-0000-0000-000000000000/{rest}"
        assert not is_local_token(foreign)
        assert not group_alive(found.pgid, foreign)
        assert kill_group(found.pgid, foreign)
        assert is_running(found.leader.pid)


def test_empty_or_broken_token_kills_nobody() -> None:
    with family() as found:
        for token in ("", "-", "a/b/c"):
            assert not group_alive(found.pgid, token)
            assert kill_group(found.pgid, token)
        assert is_running(found.leader.pid)


def test_token_of_a_missing_process_is_refused() -> None:
    with family(has_leader=False) as found, pytest.raises(ProcessLookupError):
        process_token(found.pgid)


def test_recorded_token_is_the_one_in_the_environment(workspace: Path) -> None:
    recorded: list[str] = []
    seen: list[str] = []
    result = run_command(
        CommandSpec(argv=("printenv", TOKEN_VARIABLE), workspace=workspace),
        on_output=seen.append,
        on_start=lambda pgid: recorded.append(process_token(pgid)),
        should_stop=lambda: None,
    )
    assert result.pgid is not None
    assert "".join(seen).split() == recorded
    assert not group_alive(result.pgid, recorded[0])
