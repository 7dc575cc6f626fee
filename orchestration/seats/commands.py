"""Run the commands of a step, in order, through the one runner, and say what came of each.

Whether they may run is `authority`'s to say, before they come here.
Source: DESIGN section 8 ("Commands on our machine").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from orchestration.contracts.plan import VerificationCommand
from orchestration.errors import CountersignError, EnvironmentDown
from orchestration.models import Assignment, Task
from orchestration.policy import Policy
from orchestration.rules.toolchains import is_outage, lacks_program
from orchestration.runner.command import CommandSpec, check_expectations, run_command
from orchestration.runner.processes import process_token
from orchestration.seats.base import SeatLink
from orchestration.seats.sandboxing import sandbox_of

Record = dict[str, Any]


def run_all(
    task: Task,
    commands: Sequence[Mapping[str, Any]],
    link: SeatLink,
    *,
    keep_going: bool = False,
    is_proposed: bool = False,
) -> list[Record]:
    """Run commands in order; stop at the first that fails, unless `keep_going`.

    `is_proposed` says that the commands are not of the step's own plan.
    """
    records: list[Record] = []
    for record in _each(task, commands, link, is_proposed=is_proposed):
        records.append(record)
        if record["outcome"] == "stopped" or not (record["ok"] or keep_going):
            break
    return records


def refused_by_environment(runs: Sequence[Record]) -> list[Record]:
    """The failing runs that met a network that is not there."""
    return [
        one for one in runs
        if not one["ok"]
        and is_outage(one["outcome"], one["output_tail"])
    ]  # fmt: skip


def is_misconfigured(run: Record) -> bool:
    """Whether a command could not run as it is written here."""
    lacks = lacks_program(run["argv"], run["outcome"], run["exit_code"], run["output_tail"])
    return run["outcome"] == "refused" or lacks


def outage_words(run: Record) -> str:
    """Say what a command met that was not there."""
    words = " ".join(run["argv"])[:200]
    last = (run["output_tail"].strip().splitlines() or [run["outcome"]])[-1][:200]
    return f"{words}: {last}"


def require_environment(assignment: Assignment | None, runs: Sequence[Record]) -> None:
    """Let work wait that met an outage, unless it waited as often as the policy lets it.

    A run that failed for another reason is an answer, so nothing waits then.
    Errors: EnvironmentDown.
    """
    down = refused_by_environment(runs)
    if assignment is None or not down or len(down) < sum(not one["ok"] for one in runs):
        return
    if assignment.transient_count < assignment.project.policy.limits.transient_retries:
        raise EnvironmentDown(outage_words(down[0]))


def _each(
    task: Task, commands: Sequence[Mapping[str, Any]], link: SeatLink, *, is_proposed: bool
) -> Iterator[Record]:
    for index, document in enumerate(commands):
        command = VerificationCommand.from_stored(document)
        link.log(f"$ {command.text}\n")
        record = run_one(task, command, link, is_proposed=is_proposed)
        record["index"] = index
        link.log(f"[{record['outcome']}, exit {record['exit_code']}]\n")
        yield record


def run_one(
    task: Task, command: VerificationCommand, link: SeatLink, *, is_proposed: bool = False
) -> Record:
    """Run one command. Shape: `{argv, ok, exit_code, outcome, output_tail, duration_ms, at}`.

    A command that the runner refuses (bad directory, bad argument) is a record too, not an error.
    """
    at = timezone.now().isoformat()
    try:
        sandbox = sandbox_of(task, is_proposed=is_proposed)
        spec = replace(build_spec(task, command, task.project.policy), sandbox=sandbox)
        result = run_command(
            spec,
            on_output=link.log,
            on_start=lambda pgid: link.process_started(f"{pgid} {process_token(pgid)}"),
            should_stop=link.should_stop,
        )
    except CountersignError as error:
        return {
            "argv": list(command.argv), "ok": False, "exit_code": None, "outcome": "refused",
            "output_tail": error.detail, "duration_ms": 0, "at": at,
        }  # fmt: skip
    faults = check_expectations(spec, result)
    tail = result.stdout_tail
    if faults and result.outcome not in ("ok", "failed"):
        tail = f"{tail}\n{' '.join(faults)}".strip()
    return {
        "argv": list(command.argv),
        "sandbox": sandbox.kind if sandbox is not None else None,
        "ok": not faults,
        "exit_code": result.exit_code,
        "outcome": result.outcome if faults or result.outcome == "ok" else "ok",
        "output_tail": tail,
        "faults": list(faults),
        "duration_ms": round(result.duration_seconds * 1000),
        "at": at,
    }


def build_spec(task: Task, command: VerificationCommand, policy: Policy) -> CommandSpec:
    """Give a command its workspace and the limits of the policy."""
    limits = policy.limits
    return CommandSpec(
        argv=command.argv,
        workspace=Path(task.project.workspace),
        cwd=command.cwd or ".",
        timeout_seconds=command.timeout_seconds or limits.command_timeout_seconds,
        output_limit_bytes=limits.command_output_bytes,
        memory_limit_bytes=limits.command_memory_bytes,
        expect_exit_code=command.expect_exit_code,
        expect_stdout_contains=command.expect_stdout_contains,
    )
