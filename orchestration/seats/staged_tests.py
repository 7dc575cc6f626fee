"""Hold our own run of a test stage against what its agent handed in: RED fails, GREEN passes.

Source: FORMATS ("Test workflow": the system runs it, not the agent), CASES A-01, A-05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.contracts.flow_results import RedPhase, TestAndFixResult, read_json_result
from orchestration.errors import CountersignError, MissingOutput
from orchestration.models import Artifact, Output, Task
from orchestration.rules.flow_stages import TEST_DESIGN, is_run_by_us
from orchestration.rules.run_counts import ran_nothing, read_counts, read_coverage
from orchestration.rules.test_guides import weaker_file
from orchestration.runner.workspace import read_inside
from orchestration.seats.commands import Record

MAX_TEST_BYTES = 1_000_000
ROUNDING = 0.5
"""Percent by which a tool's own rounding may differ from what is claimed."""


def read_handed_json(model: type[Any], outputs: Iterable[Output]) -> Any:
    """Read the newest output with content as a stage's result.

    Errors: MissingOutput; Invalid with every fault.
    """
    found = [one for one in outputs if not one.path]
    if not found:
        raise MissingOutput("the result is handed in as JSON, in an output with content")
    newest = max(found, key=lambda one: one.pk)
    return read_json_result(model, newest.content, name=newest.title[:80])


def judge_staged_tests(task: Task, runs: Sequence[Record]) -> list[Record]:
    """Judge the runs of a test stage; those of any other step stay as they are.

    Shape: `ok` says whether the run shows what the stage claims, `why` what speaks against it.
    """
    if not is_run_by_us(task.role, task.step_key):
        return list(runs)
    judge = _against_red if task.step_key == TEST_DESIGN else _against_green
    outputs = task.outputs.filter(attempt=task.attempt, is_orphan=False).order_by("pk")
    judged = []
    for run in runs:
        try:
            why = judge(task, run, list(outputs))
        except CountersignError as error:
            why = f"what was handed in cannot be read: {error.detail}"
        judged.append(run | {"ok": not why, "why": why})
    return judged


def _against_red(task: Task, run: Record, outputs: Sequence[Output]) -> str:
    """Say why a run is no RED: it passed, ran nothing, or passed other tests than claimed."""
    claimed: RedPhase = read_handed_json(RedPhase, outputs)
    if _is_no_run(run):
        return "no test ran"
    if run["ok"]:
        return "TDD_VIOLATION: the tests pass before the code is there"
    if run["outcome"] != "failed":
        return f"the tests did not run to their end: {run['outcome']}"
    counts = read_counts(run["output_tail"])
    if counts is not None and counts.passed != claimed.passed:
        return f"TDD_VIOLATION: claimed {claimed.passed} passed; {counts.passed} passed"
    return ""


def _against_green(task: Task, run: Record, outputs: Sequence[Output]) -> str:
    """Say why a run is no GREEN: it failed, or its counts, coverage or tests are not as claimed."""
    claimed: TestAndFixResult = read_handed_json(TestAndFixResult, outputs)
    if not run["ok"]:
        ended = run["exit_code"] if run["exit_code"] is not None else run["outcome"]
        return f"IMPLEMENTATION_INCOMPLETE: exit {ended}"
    if _is_no_run(run):
        return "no test ran"
    said = claimed.green.results
    counts = read_counts(run["output_tail"])
    if counts is not None and (counts.passed, counts.failed) != (said.passed, said.failed):
        return (
            f"claimed {said.passed} passed, {said.failed} failed; "
            f"ran {counts.passed} passed, {counts.failed} failed"
        )
    measured = read_coverage(run["output_tail"])
    for name, value in measured.items():
        told = getattr(claimed.refactor.coverage, name)
        if told > value + ROUNDING:
            return f"claimed {told:g} % of {name} covered; the run says {value:g} %"
    return "; ".join(f"TDD_VIOLATION: {one}" for one in weakened_tests(task))


def _is_no_run(run: Mapping[str, Any]) -> bool:
    """Whether no test ran: none was found, or the tool itself is not there."""
    argv = list(run["argv"])
    if argv[1:2] == ["-m"] and f"No module named {argv[2]}" in run["output_tail"]:
        return True
    return ran_nothing(argv, run["output_tail"], run["exit_code"])


def weakened_tests(task: Task) -> list[str]:
    """Say which tests, as RED locked them, are deleted, disabled or loosened in the workspace now.

    Whatever diff the agent hands in, the files themselves are compared.
    """
    if not task.project.workspace:
        return []
    rows = Artifact.objects.filter(
        task__root_id=task.lineage_root_id, task__step_key=TEST_DESIGN, output__path__gt=""
    )
    newest = {row.name: row for row in rows.select_related("content").order_by("pk")}
    found: list[str] = []
    for name, row in newest.items():
        try:
            data = read_inside(Path(task.project.workspace), name, MAX_TEST_BYTES)
        except CountersignError:
            found.append(f"{name} is deleted")
            continue
        found += weaker_file(name, _text(bytes(row.content.data)), _text(data))
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
