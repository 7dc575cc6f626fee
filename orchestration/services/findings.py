"""What QA finds: failing commands, contradicted claims, objections of a cross-verifier.

Each finding is the document of a defect; `services.defects` opens it.
Source: DESIGN section 8 ("QA", "Defects"), section 4 rule 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.results import CrossFinding
from orchestration.models import Task
from orchestration.rules.contradictions import Contradiction, claim_key
from orchestration.services.verification import Evidence
from orchestration.states import DefectStatus, Severity

SPOKEN = "claim:"
"""How the source key of a claim begins."""


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
    for one in evidence.claims:
        if not one.get("refusal") and not one["ok"]:
            found.append(_from_claim(one))
    found += [_from_record(one) for one in said]
    return found + _spoken_defects(task, evidence)


def _spoken_defects(task: Task, evidence: Evidence) -> list[dict[str, Any]]:
    """What was said and is not so; a fixed claim that cannot be checked again stays open."""
    standing: set[str] = set()
    if task.fix_round and evidence.spoken:
        fixed = task.defects.filter(status=DefectStatus.FIXED.value, source_key__startswith=SPOKEN)
        standing = set(fixed.values_list("source_key", flat=True))
    return [
        _from_spoken(task, one)
        for one in evidence.spoken
        if one["verdict"] == "contradicted"
        or (one["verdict"] == "unverified" and one["key"] in standing)
    ]


def _from_spoken(task: Task, checked: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "severity": Severity.HIGH.value,
        "category": "defect",
        "title": f"{task.title}: claimed, but not so: {checked['claim']}"[:300],
        "description": checked["why"],
        "evidence": {
            "claim": checked["claim"],
            "command": " ".join(checked["argv"]),
            "exit_code": checked["exit_code"],
            "outcome": checked["verdict"],
            "output_tail": checked["output_tail"] or checked["why"],
            "grade": "rerun",
        },
        "proposed_fix": None,
        "source_key": checked["key"],
    }


def _from_claim(one: Mapping[str, Any]) -> dict[str, Any]:
    """A claim whose own command fails: it is contradicted, whatever it is called."""
    claim = str(one.get("claim", ""))
    return {
        "severity": Severity.HIGH.value,
        "category": "defect",
        "title": f"Contradicted by its own check: {claim}"[:300],
        "description": claim,
        "evidence": {
            "command": " ".join(one["argv"]),
            "exit_code": one["exit_code"],
            "outcome": one["outcome"],
            "output_tail": one["output_tail"],
            "grade": "rerun",
            "at": one.get("at", ""),
        },
        "source_key": claim_key(claim),
    }


def _from_record(one: Contradiction) -> dict[str, Any]:
    """A claim that the tool-call record contradicts."""
    return {
        "severity": Severity.HIGH.value,
        "category": "defect",
        "title": f"Contradicted by its record: {one.text}"[:300],
        "description": one.why,
        "evidence": {
            "command": one.call.command,
            "exit_code": one.call.exit_code,
            "outcome": one.call.outcome,
            "output_tail": one.call.output_tail,
            "grade": one.call.grade,
            "tool_call": one.call.id,
        },
        "source_key": one.key,
    }


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
        "title": f"{task.title}: {exit_words}",
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
        "source_key": f"{kind}:{run['index']}",
    }
