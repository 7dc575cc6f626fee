"""What QA finds: failing commands, contradicted claims, objections of a cross-verifier.

Each finding is the document of a defect; `services.defects` opens it.
Source: DESIGN section 8 ("QA", "Defects"), section 4 rule 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.results import CrossFinding
from orchestration.models import Task
from orchestration.rules.contradictions import Contradiction
from orchestration.services.claim_findings import claim_findings
from orchestration.services.verification import Evidence, command_key
from orchestration.states import Severity


def found_defects(
    task: Task, evidence: Evidence, said: Sequence[Contradiction] = ()
) -> list[dict[str, Any]]:
    """List the defects that QA by rules finds.

    A covered failing run, a failing verify command, a claim that its own check, the record (`said`)
    or our own look into the workspace contradicts.
    """
    found = []
    covered = task.on_failure or {}
    for run in evidence.runs:
        if not run["ok"]:
            found.append(_from_command(task, run, "run", covered.get("severity", "high"),
                                       covered.get("fix")))  # fmt: skip
    for run in evidence.verifies:
        if not run["ok"]:
            found.append(_from_command(task, run, "verify", Severity.HIGH.value, None))
    return found + claim_findings(task, evidence, said)


def cross_finding(one: CrossFinding, *, raised_by: str) -> dict[str, Any]:
    """Shape a cross-verifier's objection as a defect."""
    return {
        "severity": one.severity.value,
        "category": one.category.value,
        "title": one.title[:300],
        "description": one.description,
        "evidence": {"text": one.evidence or one.description or one.title, "by": raised_by},
        "proposed_fix": one.proposed_fix.to_document() if one.proposed_fix else None,
        "source_key": f"l4:{one.title}"[:64],
        "raised_by": raised_by,
    }


def _from_command(
    task: Task,
    run: Mapping[str, Any],
    kind: str,
    severity: str,
    fix: Mapping[str, Any] | None,
) -> dict[str, Any]:
    command = " ".join(run["argv"])
    exit_words = f"exit {run['exit_code']}" if run["exit_code"] is not None else run["outcome"]
    return {
        "severity": severity,
        "category": "defect",
        "title": f"{task.title}: {run.get('why') or exit_words}"[:300],
        "description": (fix or {}).get("description", ""),
        "evidence": {
            "command": command,
            "exit_code": run["exit_code"],
            "outcome": run["outcome"],
            "output_tail": run["output_tail"],
            "grade": "rerun",
            "at": run.get("at", ""),
        },
        "proposed_fix": dict(fix) if fix else None,
        "source_key": command_key(kind, run),
    }
