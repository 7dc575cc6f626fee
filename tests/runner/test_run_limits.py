"""Limits of time, memory, processes and files; nothing of a command lives on after it."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.runner.conftest import Run, is_running

SLEEPER = "import time; time.sleep(600)"
MEBIBYTE = 1024 * 1024


def test_endless_command_times_out(run_python: Run) -> None:
    ran = run_python("while True: pass", timeout_seconds=0.3)
    assert (ran.result.outcome, ran.result.exit_code) == ("timed_out", None)
    assert 0.3 <= ran.result.duration_seconds < 20.0


def test_command_that_ignores_sigterm_is_killed_after_the_grace(run_python: Run) -> None:
    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
    ran = run_python(code, timeout_seconds=0.5)
    assert ran.result.outcome == "timed_out"
    assert 2.4 <= ran.result.duration_seconds < 20.0


def test_command_may_clean_up_on_sigterm_but_stays_timed_out(run: Run, workspace: Path) -> None:
    code = "trap 'echo tidy > note; exit 0' TERM; sleep 600 & wait"
    ran = run("sh", "-c", code, timeout_seconds=0.5)
    assert (workspace / "note").read_text() == "tidy\n"
    assert (ran.result.outcome, ran.result.exit_code) == ("timed_out", None)


def test_signals_that_we_ignore_work_in_commands(run: Run) -> None:
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    ran = run("sh", "-c", "kill -PIPE $$; echo survived")
    assert "SIGPIPE" in ran.result.detail
    ran = run("sh", "-c", "kill -TERM $$; echo survived")
    assert "SIGTERM" in ran.result.detail


def test_background_children_end_with_their_command(run: Run) -> None:
    ran = run("sh", "-c", "sleep 600 & echo $!")
    assert ran.result.outcome == "ok"
    assert ran.result.duration_seconds < 20.0
    assert not is_running(int(ran.text))


def test_child_that_left_the_session_ends_with_its_command(run_python: Run) -> None:
    ran = run_python(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        print(os.getpid(), flush=True)\n"
        f"        {SLEEPER}\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(0.2)\n"
    )
    assert ran.result.outcome == "ok"
    assert not is_running(int(ran.text))


def test_timeout_ends_children_that_ignore_sigterm(run_python: Run) -> None:
    ran = run_python(
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "print(os.getpid(), flush=True)\n"
        f"{SLEEPER}\n",
        timeout_seconds=0.5,
    )
    pids = [int(word) for word in ran.text.split()]
    assert ran.result.outcome == "timed_out"
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


def test_allocation_beyond_the_limit_fails(run_python: Run) -> None:
    ran = run_python("x = bytearray(2**30)", memory_limit_bytes=256 * MEBIBYTE)
    assert ran.result.outcome == "failed"
    assert "MemoryError" in ran.text


def test_many_processes_share_one_memory_limit(run_python: Run) -> None:
    ran = run_python(
        "import os\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "x = b'x' * (60 * 2**20)\n"
        f"{SLEEPER}\n",
        memory_limit_bytes=150 * MEBIBYTE,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "memory_limit"
    assert str(150 * MEBIBYTE) in ran.result.detail


def test_pages_that_forked_processes_share_count_once(run_python: Run) -> None:
    ran = run_python(
        "import os, time\n"
        "x = b'x' * (60 * 2**20)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "time.sleep(0.5)\n",
        memory_limit_bytes=150 * MEBIBYTE,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "ok"


def test_too_many_processes_end_the_command(run_python: Run) -> None:
    ran = run_python(
        "import os, time\n"
        "for _ in range(60):\n"
        "    if os.fork() == 0:\n"
        f"        {SLEEPER}\n"
        f"{SLEEPER}\n",
        max_processes=30,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "process_limit"


def test_file_beyond_the_limit_cannot_be_written(run: Run, workspace: Path) -> None:
    ran = run("sh", "-c", "head -c 5000000 /dev/zero > big", file_limit_bytes=1_000_000)
    assert ran.result.outcome == "failed"
    assert (workspace / "big").stat().st_size == 1_000_000
