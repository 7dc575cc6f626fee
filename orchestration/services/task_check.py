"""The judge of a stage: TaskCheck on `task.md`, an independent reader on a security review.

It sits in the seat of QA, so its independence, its defects and their fixes are QA's.
Source: FORMATS ("strict-plan documents"), DESIGN sections 8 and 11.
"""

from __future__ import annotations

from typing import Any

from orchestration.contracts.documents import parse_document
from orchestration.contracts.flow_results import TaskChecks
from orchestration.contracts.results import QaResult
from orchestration.errors import Fault, Invalid
from orchestration.models import Task
from orchestration.rules.flow_stages import CHECKS, TASK_CHECK, judge_of


def judge_input(task: Task) -> dict[str, Any]:
    """Say what the judge of a stage is asked; nothing where QA is nobody in particular."""
    profile = judge_of(task.role, task.step_key)
    asked: dict[str, Any] = {"profile": profile} if profile else {}
    return asked | ({"checks": list(CHECKS)} if profile == TASK_CHECK else {})


def require_task_checks(result: QaResult) -> None:
    """Raise unless TaskCheck judged its five things, and its verdict follows from them.

    Errors: Invalid listing every fault.
    """
    given = {"checks": [one.to_document() for one in result.checks]}
    judged = parse_document(TaskChecks, given, detail="TaskCheck judges five things.")
    if judged.failed and result.verdict == "pass":
        faults = [
            Fault(path="checks", message=f"{one.name} is not ok: {one.finding}")
            for one in judged.failed
        ]
        raise Invalid("A list whose check fails does not pass.", errors=faults)
