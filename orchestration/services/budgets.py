"""What an assignment used, and what happens when it used too much: it stops and Sir is asked.

Reported figures only grow; what nobody reports stays unknown and is never taken for zero.
Source: DESIGN section 8 ("Limits"), section 9 (`budget_exceeded`), CASES A-40, A-43.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.contracts.results import Usage
from orchestration.errors import Invalid
from orchestration.models import Assignment, Decision
from orchestration.services.clocks import stop_clock
from orchestration.services.inbox import open_decision
from orchestration.services.moves import move_task
from orchestration.services.work import Work
from orchestration.states import TASK_MOVES, DecisionKind, TaskStatus

LIMITED = ("turns", "cost_usd")
"""Figures of `Assignment.usage` that `Assignment.limits` bounds."""
BUDGET = "budget_exceeded"
MOST = 1_000_000
"""The highest limit that can be typed."""


def note_usage(work: Work, row: Assignment, usage: Usage | None) -> None:
    """Note what an assignment used so far; what is unknown stays as it was."""
    if usage is None:
        return
    known = usage.model_dump(mode="json", exclude_none=True, exclude={"extra"})
    if "cost_usd" in known:
        known["cost_usd"] = float(known["cost_usd"])
    grown = {
        name: max(value, row.usage[name]) if name in row.usage else value
        for name, value in known.items()
    }
    if grown:
        row.usage = {**row.usage, **grown}
        work.touch(row, "usage")


def exceeded(row: Assignment) -> dict[str, dict[str, float]]:
    """Say which limits an assignment is over. Shape: by figure, what was used and the limit."""
    over: dict[str, dict[str, float]] = {}
    for name in LIMITED:
        used, limit = row.usage.get(name), row.limits.get(name)
        if used is not None and limit is not None and used > limit:
            over[name] = {"used": used, "limit": limit}
    return over


def stop_over_budget(work: Work, row: Assignment, *, is_finished: bool = False) -> bool:
    """Stop a leased assignment that is over a limit: its clock stands, its task waits for Sir.

    `is_finished` says that its result came with the figures and is held. Return whether it stopped.
    Locks: expects the task and the assignment locked, and the lease checked.
    """
    over, task = exceeded(row), row.task
    if not over or TaskStatus.WAITING_HUMAN not in TASK_MOVES[TaskStatus(task.status)]:
        return False
    asked_from = TaskStatus(task.status)
    task.asked_from = asked_from.value
    work.touch(task, "asked_from")
    with work.as_system():
        move_task(work, task, TaskStatus.WAITING_HUMAN, detail="over budget", why=BUDGET)
        if not row.is_clock_stopped:
            stop_clock(work, row)
        _ask(work, row, over, is_finished=is_finished)
    return True


def _ask(
    work: Work, row: Assignment, over: Mapping[str, Mapping[str, float]], *, is_finished: bool
) -> Decision:
    words = "; ".join(f"{name} {one['used']:g} of {one['limit']:g}" for name, one in over.items())
    return open_decision(
        work,
        kind=DecisionKind.BUDGET_EXCEEDED,
        project=row.task.project,
        task=row.task,
        title=row.task.title,
        question="This assignment used more than it may. Raise the limit?",
        content={
            "reason": "budget",
            "assignment": str(row.pk),
            "seat": row.seat,
            "agent": row.worker,
            "exceeded": {name: dict(one) for name, one in over.items()},
            "usage": dict(row.usage),
            "detail": words,
            "description": row.task.description,
            "is_finished": is_finished,
        },
    )


def record_overrun(work: Work, row: Assignment) -> None:
    """Put it in the trail when a finished piece of work turns out to have used too much."""
    over = exceeded(row)
    if over:
        work.record(
            "assignment.over_budget",
            subject=f"assignment:{row.pk}",
            project_id=row.project_id,
            task_id=row.task_id,
            after={"exceeded": over},
            why="its result came before its figures",
        )


def raised_limits(row: Assignment, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Work out the new limits: what Sir typed, else as much again on top of what was used.

    A figure that is not over keeps its limit.
    Errors: Invalid for what is no number, or less than was used already.
    """
    limits = dict(row.limits)
    for name, one in exceeded(row).items():
        given = payload.get(name)
        if given is None or given == "":
            limits[name] = one["used"] + one["limit"]
            continue
        raised = _amount(given)
        if raised is None or not one["used"] <= raised <= MOST:
            message = f"must be a number from {one['used']:g} to {MOST:,}"
            raise Invalid(
                f"{name} {message}", errors=[{"path": f"payload.{name}", "message": message}]
            )
        limits[name] = int(raised) if name == "turns" else raised
    return limits


def _amount(given: object) -> float | None:
    """Read a typed amount; None for anything that is no number."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        return float(given)
    except ValueError:
        return None
