"""Run one command on our machine: the only door through which Countersign starts programs.

No shell, a directory inside the workspace, a scrubbed environment, an own process group that dies
with us, and limits on time, output, memory, file size and number of processes.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestration.errors import Unavailable
from orchestration.runner.launch import LAUNCHER, Launched
from orchestration.runner.output import OutputCollector
from orchestration.runner.processes import kill_group, process_token
from orchestration.runner.spec import (
    CommandResult,
    CommandSpec,
    Outcome,
    check_expectations,
    launch_request,
)
from orchestration.runner.workspace import open_directory_inside

__all__ = ["CommandResult", "CommandSpec", "Outcome", "check_expectations", "run_command"]

TERM_GRACE_SECONDS = 2.0
KILL_WAIT_SECONDS = 15.0
STOP_POLL_SECONDS = 0.25
FLUSH_SECONDS = 0.25
READ_BYTES = 64 * 1024
PIPE_READS = 32
"""More than a pipe can hold; what comes after that is from a process that got away."""
MISSING_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR})
EXHAUSTED_ERRORS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO})


def run_command(
    spec: CommandSpec,
    *,
    on_output: Callable[[str], None],
    on_start: Callable[[int], None],
    should_stop: Callable[[], str | None],
) -> CommandResult:
    """Run a command to its end; when this returns or raises, no process of it is left.

    `on_start` gets the process group id before the program is executed. `on_output` gets text in
    whole lines where it can. `should_stop` is asked before the start and then four times a second;
    a reason ends the command. What a callback raises ends the command and is raised on.
    Errors: Invalid for an argument the system cannot take; WorkspaceError for a bad directory;
    Unavailable when no process can be started here, or one survives SIGKILL.
    """
    request = launch_request(spec)
    directory_fd = open_directory_inside(spec.workspace, spec.cwd)
    try:
        launched = LAUNCHER.launch(request, directory_fd)
    finally:
        os.close(directory_fd)
    run = _Run(spec, launched, Path(request["scratch"]), on_output, should_stop)
    try:
        if launched.pgid:
            on_start(launched.pgid)
        run.follow()
    finally:
        run.close()
    return run.result()


class _Run:
    """Follow one launched command: read, watch the clock, end it, judge it."""

    def __init__(
        self,
        spec: CommandSpec,
        launched: Launched,
        scratch: Path,
        on_output: Callable[[str], None],
        should_stop: Callable[[], str | None],
    ) -> None:
        self.spec = spec
        self.launched = launched
        self.scratch = scratch
        self.should_stop = should_stop
        self.output = OutputCollector(
            on_output,
            limit_bytes=spec.output_limit_bytes,
            search_for=spec.expect_stdout_contains,
        )
        self.token = _token_or_nothing(launched.pgid)
        self.report: dict[str, Any] | None = launched.failure or None
        self.is_monitor_lost = False
        self.is_output_open = True
        self.verdict: Outcome | None = None
        self.detail = ""
        self.started_at = time.monotonic()
        self.ended_at = self.started_at
        self.next_stop_poll_at = self.started_at
        self.term_at: float | None = None
        self.kill_at: float | None = None
        self.output_at = self.started_at
        os.set_blocking(launched.output_fd, False)
        self.poller = select.poll()
        self.poller.register(launched.output_fd, select.POLLIN)
        self.poller.register(launched.control, select.POLLIN)

    @property
    def is_ended(self) -> bool:
        """Say whether nothing of the command is left."""
        return self.report is not None or self.is_monitor_lost

    def follow(self) -> None:
        """Open the gate and stay until the end."""
        self.started_at = time.monotonic()
        if not self.is_ended:
            self._ask_to_stop(self.started_at)
            self.launched.tell("kill" if self.verdict else "go")
        while not self.is_ended:
            for fd, _ in self.poller.poll(self._wait_ms()):
                if fd == self.launched.output_fd:
                    self._read_output()
                else:
                    self._read_control()
            self._watch_clock()
        self.ended_at = time.monotonic()
        for _ in range(PIPE_READS):
            if not self._read_output():
                break
        self.output.finish()

    def close(self) -> None:
        """Leave nothing behind, also when a callback raised in the middle."""
        if not self.is_ended:
            self.launched.tell("kill")
        self.launched.close()
        if not self.is_ended and self.launched.pgid:
            # the monitor kills too; this waits for the end of what it does
            kill_group(self.launched.pgid, self.token, wait_seconds=KILL_WAIT_SECONDS)

    def result(self) -> CommandResult:
        """Judge how it ended."""
        exit_code = (self.report or {}).get("exit")
        outcome, detail = self._judge(exit_code)
        return CommandResult(
            outcome=outcome,
            exit_code=exit_code if outcome in ("ok", "failed") and _is_exit(exit_code) else None,
            stdout_tail=self.output.tail(),
            output_bytes=self.output.total_bytes,
            duration_seconds=self.ended_at - self.started_at,
            pgid=self.launched.pgid or None,
            truncated=self.output.is_over_limit,
            is_expected_text_found=self.output.is_text_found,
            detail=detail,
        )

    def _judge(self, exit_code: int | None) -> tuple[Outcome, str]:
        """Name the outcome and say in a sentence what the name leaves open."""
        report = self.report or {}
        program = self.spec.argv[0]
        if self.verdict is not None:
            return self.verdict, self.detail
        if self.is_monitor_lost:
            return "failed", "The process that watched the command was killed, and so was it."
        if report["exec_errno"]:
            return _start_failure(program, report["exec_step"], report["exec_errno"])
        if report["limit"] == "memory_limit":
            return "memory_limit", f"More than {self.spec.memory_limit_bytes} bytes of memory."
        if report["limit"] == "process_limit":
            return "process_limit", f"More than {self.spec.max_processes} processes at once."
        if self.output.is_over_limit:
            return "output_limit", f"More than {self.spec.output_limit_bytes} bytes of output."
        refused = _refused_by_bubblewrap(self.spec, exit_code, self.output.tail())
        if refused is not None:
            return refused
        if exit_code is not None and exit_code < 0:
            return "failed", f"Ended by signal {_signal_name(-exit_code)}."
        return ("ok", "") if exit_code == 0 else ("failed", "")

    def _read_output(self) -> bool:
        """Take in one piece of output; say whether there may be more at once."""
        if not self.is_output_open:
            return False
        try:
            data = os.read(self.launched.output_fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.is_output_open = False
            self.poller.unregister(self.launched.output_fd)
            return False
        self.output_at = time.monotonic()
        self.output.feed(data)
        return True

    def _read_control(self) -> None:
        try:
            for message in self.launched.read_messages():
                self.report = message
        except EOFError:
            self.is_monitor_lost = True
            kill_group(self.launched.pgid, self.token, wait_seconds=KILL_WAIT_SECONDS)
            shutil.rmtree(self.scratch, ignore_errors=True)  # the monitor can no longer do it

    def _wait_ms(self) -> float:
        """Sleep no longer than until the next thing is due."""
        due_at = self.started_at + self.spec.timeout_seconds
        if self.term_at is not None:
            due_at = (self.kill_at or self.term_at) + TERM_GRACE_SECONDS
        return max(0.0, min(FLUSH_SECONDS, due_at - time.monotonic())) * 1000 + 1

    def _watch_clock(self) -> None:
        """Do what is due: hand a slow line on, ask whether to stop, end what must end."""
        now = time.monotonic()
        if self.output.has_partial_line and now - self.output_at >= FLUSH_SECONDS:
            self.output.flush()
        if self.is_ended:
            return
        if self.verdict is None:
            self._find_verdict(now)
        if self.verdict is not None:
            self._end(now)

    def _find_verdict(self, now: float) -> None:
        if self.output.is_over_limit:
            self.verdict = "output_limit"
            self.detail = f"More than {self.spec.output_limit_bytes} bytes of output."
        elif now - self.started_at >= self.spec.timeout_seconds:
            self.verdict = "timed_out"
            self.detail = f"Not finished after {self.spec.timeout_seconds:g} s."
        elif now >= self.next_stop_poll_at:
            self._ask_to_stop(now)

    def _ask_to_stop(self, now: float) -> None:
        self.next_stop_poll_at = now + STOP_POLL_SECONDS
        reason = self.should_stop()
        if reason is not None:
            self.verdict, self.detail = "stopped", reason

    def _end(self, now: float) -> None:
        """Ask politely, wait, then kill; give up only on what not even the kernel can end."""
        if self.term_at is None:
            self.term_at = now
            self.launched.tell("term")
        elif self.kill_at is None and now - self.term_at >= TERM_GRACE_SECONDS:
            self.kill_at = now
            self.launched.tell("kill")
        elif self.kill_at is not None and now - self.kill_at >= KILL_WAIT_SECONDS:
            raise Unavailable(f"Process group {self.launched.pgid} survived SIGKILL.")


def _token_or_nothing(pgid: int) -> str:
    """Make the token of a group whose leader may have been killed at its gate."""
    try:
        return process_token(pgid) if pgid else ""
    except ProcessLookupError:
        return ""


def _refused_by_bubblewrap(
    spec: CommandSpec, exit_code: int | None, tail: str
) -> tuple[Outcome, str] | None:
    """Recognise that bubblewrap never started the command; it tells by its own words alone.

    A command that copies them gains nothing: neither outcome is a success.
    """
    if spec.sandbox is None or spec.sandbox.kind != "bubblewrap" or exit_code != 1:
        return None
    if not tail.startswith("bwrap: ") or tail.count("\n") > 1:
        return None
    if tail.startswith("bwrap: execvp ") and os.strerror(errno.ENOENT) in tail:
        return "not_found", f"There is no program {spec.argv[0]!r} in the sandbox."
    return "not_executable", f"The sandbox did not start {spec.argv[0]!r}: {tail.strip()}"


def _is_exit(code: int | None) -> bool:
    """Say whether a status is an exit code and not a signal."""
    return code is not None and code >= 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _start_failure(program: str, step: str, number: int) -> tuple[Outcome, str]:
    """Say why a program could not be executed.

    Errors: Unavailable when the machine, not the program, is the reason.
    """
    reason = os.strerror(number)
    if step != "execute":
        raise Unavailable(f"The command could not be prepared: {reason}.")
    if number in MISSING_ERRORS:
        return "not_found", f"There is no program {program!r} ({reason})."
    if number in EXHAUSTED_ERRORS:
        raise Unavailable(f"{program!r} could not be started: {reason}.")
    return "not_executable", f"{program!r} cannot be executed: {reason}."
