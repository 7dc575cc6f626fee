"""Red lines at the gate: a task that crosses one waits for Sir, once for the same text.

Source: DESIGN section 8 ("Red lines"), section 4 rule 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.models import Assignment, Task
from orchestration.rules.phrases import Signal
from orchestration.rules.redlines import red_line_digest, red_lines_in
from orchestration.services.clocks import stop_clock
from orchestration.services.inbox import open_decision
from orchestration.services.moves import move_task
from orchestration.services.red_line_refusals import (
    comes_back_unchanged,
    refusal_of_texts,
    refusals_of,
)
from orchestration.services.work import Work
from orchestration.states import (
    TASK_MOVES,
    Complexity,
    DecisionKind,
    RiskLevel,
    TaskStatus,
)

ASKED = "This command crosses a red line. Sir is asked; it runs only if he approves."
GO_ON = "Go on without it, or report why you cannot."


def task_texts(task: Task) -> list[str]:
    """List what the red lines read of a task: title, text, each command, and its planned fix."""
    fix = planned_fix(task)
    commands = [" ".join(command["argv"]) for command in _commands(task)]
    told = [str(fix.get(name) or "") for name in ("description", "patch")]
    return [task.title, task.description, *commands, *(one for one in told if one)]


def planned_fix(task: Task) -> Mapping[str, Any]:
    """The fix that a step's plan gives it for the case that it fails, or nothing."""
    return (task.on_failure or {}).get("fix") or {}


def _commands(task: Task) -> list[Mapping[str, Any]]:
    return [*task.run, *task.verify, *planned_fix(task).get("commands", ())]


def own_approvals(task: Task) -> list[str]:
    """The digests that Sir approved for a task's own text; they hold beyond one attempt.

    What he approved for the commands of its steps holds for the attempt only.
    """
    own = red_line_digest(task_texts(task), task.project.policy)
    return [digest for digest in task.approved_digests if digest == own]


def meets_red_line(work: Work, task: Task) -> bool:
    """Send a task that touches a red line to Sir, once for the same text (rule 13)."""
    texts = task_texts(task)
    matches = red_lines_in(texts, task.project.policy)
    if not matches:
        return False
    digest = red_line_digest(texts, task.project.policy)
    if digest in task.approved_digests:
        return False
    task.asked_from = TaskStatus.PENDING.value
    fix = {"fix": dict(planned_fix(task))} if planned_fix(task) else {}
    commands = [{"argv": list(one["argv"])} for one in _commands(task)]
    _ask(
        work, task, matches, digest, "This task crosses a red line. May it start?",
        about=_what_a_no_does(task), commands=commands, **fix,
    )  # fmt: skip
    return True


def plan_meets_red_line(work: Work, task: Task, held: Assignment, steps: Sequence[str]) -> bool:
    """Send a working task to Sir when the light plan of its agent touches a red line.

    What Sir approved in the task's own text is not asked again, nor is the same plan.
    Locks: expects task and assignment locked.
    """
    matches = red_lines_in(steps, task.project.policy)
    if own_approvals(task):
        approved = {one.text for one in red_lines_in(task_texts(task), task.project.policy)}
        matches = [one for one in matches if one.text not in approved]
    digest = red_line_digest(steps, task.project.policy)
    if not matches or digest in task.approved_digests:
        return False
    task.asked_from = TaskStatus.WORKING.value
    stop_clock(work, held)
    question = "The plan for this task crosses a red line. May it go on?"
    listed = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    _ask(work, task, matches, digest, question, about="red_line_plan", detail=listed)
    return True


def _what_a_no_does(task: Task) -> str:
    """Say for the card what becomes of a task that may not start (`about` of its options)."""
    if task.is_spawned:
        return "red_line_child"
    if not comes_back_unchanged(task):
        return "red_line_step"
    return "red_line_root" if task.parent_id is None else "red_line_end"


def _ask(
    work: Work,
    task: Task,
    matches: Sequence[Signal],
    digest: str,
    question: str,
    *,
    about: str,
    **more: Any,
) -> None:
    """Move a task to Sir and show him what was matched, and what he said to it before."""
    _make_critical(work, task)
    before = refusals_of(task).get(digest)
    if before is not None:
        more["refused_before"] = before
    work.touch(task, "asked_from")
    move_task(work, task, TaskStatus.WAITING_HUMAN, detail="red line: needs Sir", why="red_line")
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=task.project,
        task=task,
        title=task.title,
        question=question,
        content={
            "reason": "red_line",
            "digest": digest,
            "description": task.description,
            "matches": [
                {"kind": one.kind, "text": one.text, "offset": one.offset} for one in matches
            ],
            **more,
        },
        params={"about": about},
    )


def _make_critical(work: Work, task: Task) -> None:
    """Raise a task to critical risk; a high risk makes any work complex (DESIGN section 6)."""
    task.risk_level = RiskLevel.CRITICAL.value
    task.complexity = Complexity.HIGH.value
    work.touch(task, "risk_level", "complexity")


def ask_about_command(work: Work, row: Assignment, command: str) -> str:
    """Send a task to Sir whose agent is about to run a command across a red line.

    Return why it may not run now, nothing where it may. What he approved, word for word, runs; what
    he refused stays refused without another question.
    Locks: expects the task and the assignment locked.
    """
    task = row.task
    matches = red_lines_in([command], task.project.policy)
    if not matches:
        return ""
    digest = red_line_digest([command], task.project.policy)
    if digest in task.approved_digests:
        return ""
    refusal = refusal_of_texts(task, [command])
    if refusal is not None:
        return f"This command crosses a red line, and Sir refused it: {refusal} {GO_ON}"
    if TaskStatus.WAITING_HUMAN not in TASK_MOVES[TaskStatus(task.status)]:
        return ASKED
    task.asked_from = task.status
    if not row.is_clock_stopped:
        stop_clock(work, row)
    question = "An agent is about to run a command across a red line. May it?"
    with work.as_system():
        _ask(
            work, task, matches, digest, question,
            about="red_line_command", commands=[{"argv": [command]}], asked_by=row.worker,
        )  # fmt: skip
    return ASKED
