"""The `command` backend: it runs a step's own commands, or applies a step's own fix.

Source: DESIGN sections 2 and 8.
"""

from __future__ import annotations

from pathlib import Path

from orchestration.contracts.plan import ProposedFix
from orchestration.errors import CountersignError, WorkspaceError
from orchestration.models import Assignment, Task
from orchestration.runner.patches import apply_patch, is_applied
from orchestration.runner.workspace import artifact_exists
from orchestration.seats.authority import fix_of, is_own_fix, refusal_of, refusal_of_fix
from orchestration.seats.base import MAX_ARTIFACT_BYTES, Document, SeatJob, SeatLink
from orchestration.seats.commands import (
    Record,
    is_misconfigured,
    outage_words,
    refused_by_environment,
    require_environment,
    run_all,
)
from orchestration.states import Seat

HANDOFF_CHARACTERS = 480


class CommandSeat:
    """Run what the plan wrote down: `run` as executor, `fix` as fixer."""

    name = "command"
    is_system = True

    def can_fill(self, job: SeatJob) -> bool:
        """A step with commands that may run here; a round whose every fix can be applied."""
        task = job.task
        if job.seat is Seat.EXECUTOR:
            return bool(task.run) and not refusal_of(task, task.run)
        if job.seat is not Seat.FIXER or job.input.get("mode") != "fix":
            return False
        defects = job.input.get("defects", ())
        return bool(defects) and not any(refusal_of_fix(task, one) for one in defects)

    def is_instant(self, job: SeatJob) -> bool:
        """Return false: a command takes time."""
        return False

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Run the step, or apply the fixes of a round."""
        if job.seat is Seat.EXECUTOR:
            return self._execute(job.task, job.assignment, link)
        return self._fix(job, link)

    def _execute(self, task: Task, held: Assignment | None, link: SeatLink) -> Document:
        """Run the step's commands. A failing run that `on_failure` covers is handed in for QA."""
        refusal = refusal_of(task, task.run)
        if refusal:
            return {"status": "failed", "detail": refusal, "class": "config_error", "runs": []}
        runs = run_all(task, task.run, link)
        require_environment(held, runs)
        failing = next((run for run in runs if not run["ok"]), None)
        is_outage = bool(refused_by_environment(runs))
        document: Document = {"runs": runs, "status": "review", "detail": "", "class": ""}
        if failing is not None and failing["outcome"] == "stopped":
            document |= {"status": "stopped", "detail": "stopped"}
        elif failing is not None and (task.on_failure is None or is_outage):
            document |= {
                "status": "failed",
                "detail": outage_words(failing) if is_outage else _failure_words(failing),
                "class": "environment" if is_outage else _failure_class(failing),
            }
        document["outputs"] = _outputs(task, runs)
        document["handoff"] = _handoff(task, runs)
        return document

    def _fix(self, job: SeatJob, link: SeatLink) -> Document:
        """Apply each fix of the round: its patch, then its commands. A problem is told."""
        problems: dict[str, str] = {}
        runs: list[Record] = []
        notes: list[str] = []
        for one in job.input["defects"]:
            fix, problem = fix_of(one), refusal_of_fix(job.task, one)
            if fix is not None and not problem:
                notes.append(fix.description or "the proposed fix")
                is_ours = is_own_fix(job.task, one["proposed_fix"])
                problem = _apply(job.task, fix, link, runs, is_proposed=not is_ours)
            if problem:
                problems[one["id"]] = problem
        return {
            "defects": [one["id"] for one in job.input["defects"]],
            "change_note": "; ".join(notes)[:1000],
            "problems": problems,
            "runs": runs,
        }


def _apply(
    task: Task, fix: ProposedFix, link: SeatLink, runs: list[Record], *, is_proposed: bool
) -> str:
    """Apply one fix; return why it could not be applied, or the empty string."""
    workspace = Path(task.project.workspace)
    if fix.patch.strip():
        try:
            if is_applied(workspace, fix.patch):
                link.log("the patch is already applied\n")
            else:
                result = apply_patch(workspace, fix.patch)
                link.log(f"patched {', '.join(one.path for one in result.files)}\n")
        except CountersignError as error:
            link.log(f"the patch does not apply: {error.detail}\n")
            return f"the patch does not apply: {error.detail}"
    commands = [one.to_document() for one in fix.commands]
    records = run_all(task, commands, link, is_proposed=is_proposed)
    runs += records
    failing = next((one for one in records if not one["ok"]), None)
    return _failure_words(failing) if failing is not None else ""


def _outputs(task: Task, runs: list[Record]) -> list[Document]:
    """The expected artifacts that can be read, and the record of the run itself."""
    outputs: list[Document] = []
    workspace = Path(task.project.workspace)
    for expected in task.expected_artifacts:
        path = expected.get("path")
        if path and _is_readable(workspace, path):
            outputs.append({"type": _type_of(expected), "title": path, "path": path})
    lines = [f"$ {' '.join(run['argv'])}\n{run['output_tail']}" for run in runs]
    outputs.append(
        {
            "type": "other",
            "title": "Run record",
            "content": "\n".join(lines)[-100_000:] or "nothing was run",
            "summary": _summary(runs),
        }
    )
    return outputs


def _is_readable(workspace: Path, path: str) -> bool:
    """Whether a file with something in it can be handed in; anything else is QA's finding."""
    try:
        size = artifact_exists(workspace, path)
    except WorkspaceError:
        return False
    return size is not None and 0 < size <= MAX_ARTIFACT_BYTES


def _type_of(expected: Document) -> str:
    known = {"code", "document", "data", "config"}
    given = str(expected.get("type") or "other")
    return given if given in known else "other"


def _summary(runs: list[Record]) -> str:
    passed = sum(1 for run in runs if run["ok"])
    noun = "command" if len(runs) == 1 else "commands"
    return f"{passed} of {len(runs)} {noun} succeeded"


def _handoff(task: Task, runs: list[Record]) -> str:
    """Say in at most 500 characters what ran and how it ended."""
    lines = [_summary(runs)]
    lines += [f"{' '.join(run['argv'])[:80]}: {run['outcome']}" for run in runs]
    return "; ".join(lines)[:HANDOFF_CHARACTERS]


def _failure_class(run: Record) -> str:
    if is_misconfigured(run):
        return "config_error"
    return "timeout" if run["outcome"] == "timed_out" else "check_failed"


def _failure_words(run: Record) -> str:
    command = " ".join(run["argv"])[:200]
    if run["exit_code"] is not None:
        return f"{command}: exit {run['exit_code']}"
    return f"{command}: {run['outcome']}"
