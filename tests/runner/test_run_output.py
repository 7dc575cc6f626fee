"""What a command prints: order, encoding, liveness, and the limit."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from orchestration.runner.command import CommandSpec, run_command
from tests.runner.conftest import Run

SLEEPER = "import time; time.sleep(600)"
MEBIBYTE = 1024 * 1024


def test_both_streams_come_in_the_order_written(run: Run) -> None:
    ran = run("sh", "-c", "echo 1; echo 2 >&2; echo 3")
    assert ran.text == "1\n2\n3\n"


def test_invalid_utf8_and_nul_are_replaced(run_python: Run) -> None:
    ran = run_python("import os; os.write(1, b'a\\xff\\xfeb\\0c \\xe6\\xbc')")
    assert ran.text == ran.result.stdout_tail == "a\ufffd\ufffdb\ufffdc \ufffd"


def test_character_cut_by_two_reads_stays_whole(run_python: Run) -> None:
    code = "import os, time\nfor b in '漢字\\n'.encode(): os.write(1, bytes([b])); time.sleep(0.01)"
    assert run_python(code).text == "漢字\n"


def test_output_comes_while_the_command_runs(run: Run, workspace: Path) -> None:
    os.mkfifo(workspace / "gate")
    seen: list[str] = []

    def answer(text: str) -> None:
        seen.append(text)
        if "ready" in text:
            (workspace / "gate").write_text("go\n")

    result = run_command(
        CommandSpec(
            argv=("sh", "-c", "echo ready; read word < gate; echo $word"), workspace=workspace
        ),
        on_output=answer,
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert result.outcome == "ok"
    assert seen == ["ready\n", "go\n"]


def test_line_without_end_comes_while_the_command_runs(workspace: Path) -> None:
    os.mkfifo(workspace / "gate")
    seen: list[str] = []

    def answer(text: str) -> None:
        seen.append(text)
        if text == "your name? ":
            (workspace / "gate").write_text("go\n")

    result = run_command(
        CommandSpec(
            argv=("sh", "-c", "printf 'your name? '; read word < gate"), workspace=workspace
        ),
        on_output=answer,
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert (result.outcome, seen) == ("ok", ["your name? "])


def test_whole_lines_are_handed_on_together(run_python: Run) -> None:
    ran = run_python("print('\\n'.join(map(str, range(100_000))))")
    assert ran.text.splitlines() == [str(number) for number in range(100_000)]
    assert all(piece.endswith("\n") for piece in ran.pieces)
    assert len(ran.pieces) < 1000


def test_hundred_megabytes_stop_at_the_limit_and_cost_no_memory(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = run("sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x", output_limit_bytes=MEBIBYTE)
    assert ran.result.outcome == "output_limit"
    assert ran.result.exit_code is None
    assert len(ran.text) == MEBIBYTE
    assert ran.result.output_bytes > MEBIBYTE
    assert ran.result.truncated
    assert len(ran.result.stdout_tail) == 8192
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown_bytes < 16 * MEBIBYTE


def test_hundred_megabytes_within_the_limit_cost_no_memory(workspace: Path) -> None:
    counts: list[int] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run_command(
        CommandSpec(
            argv=("head", "-c", "100000000", "/dev/zero"),
            workspace=workspace,
            output_limit_bytes=100_000_000,
        ),
        on_output=lambda text: counts.append(len(text)),
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert (result.outcome, result.output_bytes, sum(counts)) == ("ok", 100_000_000, 100_000_000)
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown_bytes < 16 * MEBIBYTE


def test_output_of_exactly_the_limit_is_fine(run: Run) -> None:
    ran = run("printf", "12345678", output_limit_bytes=8)
    assert (ran.result.outcome, ran.result.truncated) == ("ok", False)
    ran = run("printf", "123456789", output_limit_bytes=8)
    assert (ran.result.outcome, ran.text) == ("output_limit", "12345678")
