"""Run the commands that claims name themselves, where they may run here; say why one may not.

An agent's own command outside the allow-list is not asked for: it is not run, and the claim stays
self-reported.
Source: DESIGN section 8 ("Acceptance by risk", "Commands on our machine").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.plan import VerificationCommand
from orchestration.models import Output, Task
from orchestration.rules.trust import to_validate
from orchestration.seats.authority import refusal_of
from orchestration.seats.base import SeatLink
from orchestration.seats.commands import Record, run_one
from orchestration.states import Complexity, RiskLevel

NOT_LISTED = "not possible: not on the project's list of allowed commands"


def has_checks(task: Task, assertions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any claim has a command that this task's complexity and risk ask to run."""
    return bool(assertions) and bool(_due(task, assertions))


def _due(task: Task, assertions: Sequence[Mapping[str, Any]]) -> list[int]:
    return to_validate(
        assertions,
        Complexity(task.complexity or Complexity.LOW),
        RiskLevel(task.risk_level or RiskLevel.LOW),
    )


def check_claims(task: Task, link: SeatLink) -> list[Record]:
    """Run what is due of the newest outputs. Shape: records with output, assertion and claim.

    One that may not run has a `refusal` and no outcome of its own.
    """
    newest: dict[str, Output] = {}
    for output in task.outputs.filter(attempt=task.attempt, is_orphan=False).order_by("pk"):
        newest[output.path or output.title] = output
    records: list[Record] = []
    for output in newest.values():
        for at in _due(task, output.assertions):
            claim = output.assertions[at]
            about = {"output": str(output.pk), "assertion": at, "claim": str(claim["claim"])}
            records.append(about | _check(task, claim["verify_command"], link))
    return records


def _check(task: Task, document: Mapping[str, Any], link: SeatLink) -> Record:
    command = VerificationCommand.from_stored(document)
    allowed = task.project.policy.commands.allows(command.argv)
    why = refusal_of(task, [document]) if allowed else NOT_LISTED
    if why:
        return {"argv": list(command.argv), "ok": False, "refusal": why, "exit_code": None,
                "outcome": "not_possible", "output_tail": "", "duration_ms": 0}  # fmt: skip
    link.log(f"$ {command.text}\n")
    record = run_one(task, command, link)
    link.log(f"[{record['outcome']}, exit {record['exit_code']}]\n")
    return record
