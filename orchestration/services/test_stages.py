"""The stages of `/test` whose tests the system runs itself: what has to stand before it does.

The run follows in the evidence that QA gathers, as of any verify command.
Source: FORMATS ("Test workflow"), DESIGN section 11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from orchestration.contracts.commands import VerificationCommand, split_command
from orchestration.contracts.flow_results import (
    RedPhase,
    TestAndFixResult,
    require_green,
    require_red,
)
from orchestration.contracts.results import OutputInput
from orchestration.errors import Conflict, CountersignError, Fault, Invalid
from orchestration.models import Assignment, Output, Task
from orchestration.rules import flow_stages as stages
from orchestration.rules.test_guides import loosened_tests
from orchestration.runner.workspace import artifact_exists, read_inside
from orchestration.seats.staged_tests import MAX_TEST_BYTES, read_handed_json, weakened_tests
from orchestration.seats.test_commands import confirmed_commands, sirs_word_on
from orchestration.services.outputs import add_output
from orchestration.services.work import Work
from orchestration.states import OutputType


class Stage(Protocol):
    """Check a stage, set what the system will run, and return its outputs."""

    def __call__(
        self, work: Work, task: Task, outputs: Sequence[Output], assignment: Assignment
    ) -> list[Output]: ...


def design_tests(
    work: Work, task: Task, outputs: Sequence[Output], assignment: Assignment
) -> list[Output]:
    """Take RED: its test files exist, are handed in with it, and are run by us to fail.

    Errors: Invalid (TDD_VIOLATION), Conflict for an unconfirmed command.
    """
    result: RedPhase = read_handed_json(RedPhase, outputs)
    require_red(result)
    command = _command_to_run(task, result.run_command)
    _require_files(task, "test_files", result.test_files)
    _run_later(work, task, command)
    return [*outputs, *_hand_in_files(work, task, outputs, result.test_files, assignment)]


def make_tests_pass(
    work: Work, task: Task, outputs: Sequence[Output], assignment: Assignment
) -> list[Output]:
    """Take GREEN: its files exist, no test of RED is weaker, and we run them to pass.

    Errors: Invalid (IMPLEMENTATION_INCOMPLETE, COVERAGE_BELOW_THRESHOLD, TDD_VIOLATION), Conflict
    for an unconfirmed command.
    """
    result: TestAndFixResult = read_handed_json(TestAndFixResult, outputs)
    require_green(result)
    command = _command_to_run(task, result.run_command)
    _require_files(task, "green.files", result.green.files)
    edits = dict.fromkeys([*loosened_tests(result.green.diff), *weakened_tests(task)])
    if edits:
        faults = [Fault(path="green", message=one) for one in edits]
        raise Invalid("Tests may not be deleted, disabled or loosened.", code="TDD_VIOLATION",
                      errors=faults)  # fmt: skip
    _run_later(work, task, command)
    return list(outputs)


def _command_to_run(task: Task, command: str) -> VerificationCommand:
    """Read the command that the system will run.

    Errors: Conflict for one that neither the guide names nor Sir approved; Invalid for one that
    only a shell could run.
    """
    wanted = command.strip()
    if wanted not in confirmed_commands(task):
        word = sirs_word_on(task, wanted)
        raise Conflict(
            f"`{wanted}` is no command of {stages.TEST_GUIDE_MD} that runs unasked: ask Sir "
            "first, with the command in backticks in the question; it is confirmed by his approval "
            "only"
            if word is None
            else f"Sir did not approve `{wanted}`; his word was {word.verdict!r}: {word.reason} "
            "Take another command, or ask him again; only his approval confirms it",
            code="command_unconfirmed",
        )
    try:
        return VerificationCommand(argv=tuple(split_command(wanted)))
    except ValueError as broken:
        faults = [Fault(path="run_command", message=str(broken))]
        raise Invalid("run_command cannot be run.", errors=faults) from None


def _require_files(task: Task, path: str, names: Sequence[str]) -> None:
    """Raise for files that are named but not there. Errors: Invalid naming each."""
    if not task.project.workspace:
        return
    faults = []
    for number, name in enumerate(names):
        try:
            why = "" if artifact_exists(Path(task.project.workspace), name) else "is not there"
        except CountersignError as error:
            why = error.detail
        if why:
            faults.append(Fault(path=f"{path}.{number}", message=f"{name}: {why}"))
    if faults:
        raise Invalid(f"{len(faults)} of {path} are not in the workspace.", errors=faults)


def _run_later(work: Work, task: Task, command: VerificationCommand) -> None:
    task.verify = [command.to_document()]
    work.touch(task, "verify")


def _hand_in_files(
    work: Work,
    task: Task,
    outputs: Sequence[Output],
    names: Sequence[str],
    assignment: Assignment,
) -> list[Output]:
    """Hand the test files in with their stage, so that they are locked as RED left them."""
    if not task.project.workspace:
        return []
    standing = {one.path: one.sha256 for one in outputs if one.path}
    made = []
    for name in dict.fromkeys(names):
        data = read_inside(Path(task.project.workspace), name, MAX_TEST_BYTES)
        if standing.get(name) == hashlib.sha256(data).hexdigest():
            continue
        document = OutputInput(type=OutputType.CODE, title=name, path=name)
        made.append(add_output(work, task, document, assignment=assignment, data=data))
    return made


STAGES: Mapping[tuple[str, str], Stage] = {
    ("TddTestDesign", stages.TEST_DESIGN): design_tests,
    ("TddTestAndFix", stages.TEST_FIX): make_tests_pass,
}
"""By profile and step."""
