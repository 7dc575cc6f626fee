"""Claims that are not so, each as one defect that carries all that speaks against it.

A claim may be contradicted by its own command, by our look into the workspace and by the record of
its agent. What speaks about one thing is one finding; the strongest evidence leads.
Source: DESIGN section 8 ("Marks", "Independent verification"), CASES A-01, A-05, A-10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestration.models import Task
from orchestration.rules.contradictions import Contradiction, claim_key
from orchestration.rules.spoken_marks import CONTRADICTED, PROVEN, UNVERIFIED
from orchestration.rules.tool_record import Check
from orchestration.services.verification import Evidence, fewer_key, fewer_words
from orchestration.states import DefectStatus, Severity

SPOKEN = "claim:"
"""How the source key of a claim begins."""
MOST_BESIDE = 10
"""Pieces of evidence that one finding carries beside the one that leads."""
_KINDS = {Check.TESTS: "test", Check.BUILD: "build"}


@dataclass(slots=True)
class _Finding:
    """One defect in the making. Shape: `topic` is what it speaks of; `beside` the other proofs."""

    document: dict[str, Any]
    topic: str
    keys: list[str] = field(default_factory=list)
    beside: list[dict[str, Any]] = field(default_factory=list)

    def add(self, document: Mapping[str, Any]) -> None:
        """Take in what speaks against the same claim."""
        if document["source_key"] not in self.keys:
            self.keys.append(document["source_key"])
        self.beside.append({**document["evidence"], "why": document["description"]})

    def whole(self) -> dict[str, Any]:
        """The document of the defect, with everything that supports it."""
        if not self.beside:
            return self.document
        evidence = {**self.document["evidence"], "beside": self.beside[:MOST_BESIDE],
                    "keys": self.keys}  # fmt: skip
        return {**self.document, "evidence": evidence}


def keys_of(source_key: str, evidence: Mapping[str, Any]) -> list[str]:
    """Every key by which a finding is recognised when it is found again."""
    return [source_key, *(str(one) for one in evidence.get("keys") or ())]


def unsettled(task: Task, said: Sequence[Contradiction], evidence: Evidence) -> list[Contradiction]:
    """Drop what the record says against a claim that we proved ourselves after a fix.

    The record is of the work before it was mended, and our own run is the stronger evidence.
    """
    if not task.fix_round:
        return list(said)
    proven = {one["kind"] for one in evidence.spoken if one["verdict"] == PROVEN}
    return [one for one in said if one.is_fewer or _KINDS.get(one.kind) not in proven]


def claim_findings(
    task: Task, evidence: Evidence, said: Sequence[Contradiction]
) -> list[dict[str, Any]]:
    """List the defects of claims that are not so, each thing once."""
    found: list[_Finding] = []
    for one in _spoken(task, evidence):
        _put(found, _from_spoken(task, one), topic=f"{one['kind']}:{one.get('path') or ''}",
             is_same=False)  # fmt: skip
    for one in evidence.claims:
        if not one.get("refusal") and not one["ok"]:
            _put(found, _from_claim(one), topic="", is_same=False)
    fewer = _fewer(task, evidence)
    found += fewer
    for contradiction in said:
        is_fewer = contradiction.is_fewer
        topic = "fewer" if is_fewer else f"{_KINDS.get(contradiction.kind, '')}:"
        _put(found, _from_record(contradiction), topic=topic, is_same=True)
    return [one.whole() for one in found]


def _put(found: list[_Finding], document: dict[str, Any], *, topic: str, is_same: bool) -> None:
    """Add a finding, or put it beside the one that is about the same claim.

    Two of our own checks are of one claim only where their keys are one; the record (`is_same`)
    speaks of builds or tests as such.
    """
    key = document["source_key"]
    alike = [one for one in found if is_same and one.topic == topic]
    alike += [one for one in found if key in one.keys]
    if alike:
        alike[0].add(document)
    else:
        found.append(_Finding(document, topic, [key]))


def _spoken(task: Task, evidence: Evidence) -> list[Mapping[str, Any]]:
    """What was said and is not so; a fixed claim that cannot be checked again stays open."""
    standing: set[str] = set()
    if task.fix_round and evidence.spoken:
        fixed = task.defects.filter(status=DefectStatus.FIXED.value, source_key__startswith=SPOKEN)
        for key, held in fixed.values_list("source_key", "evidence"):
            standing.update(keys_of(key, held))
    return [
        one
        for one in evidence.spoken
        if one["verdict"] == CONTRADICTED
        or (one["verdict"] == UNVERIFIED and one["key"] in standing)
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
            "claim": claim,
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
    """What the tool-call record contradicts, or shows to be less than it was."""
    severity = Severity.MEDIUM if one.is_fewer else Severity.HIGH
    title = f"Contradicted by its record: {one.text}"
    return {
        "severity": severity.value,
        "category": "defect",
        "title": (one.why if one.is_fewer else title)[:300],
        "description": one.why,
        "evidence": {
            "claim": one.text,
            "command": one.call.command,
            "exit_code": one.call.exit_code,
            "outcome": one.call.outcome,
            "output_tail": one.call.output_tail,
            "grade": one.call.grade,
            "tool_call": one.call.id,
        },
        "source_key": one.key,
    }


def _fewer(task: Task, evidence: Evidence) -> list[_Finding]:
    """Runs of ours with fewer tests than before: whoever takes tests away needs Sir's word for it.

    What he accepted as it is in this attempt is not asked again.
    """
    if not evidence.fewer:
        return []
    signed = task.defects.filter(status=DefectStatus.ACCEPTED_AS_IS.value).order_by("pk")
    accepted = {
        key: int(held.get("total", 0)) for key, held in signed.values_list("source_key", "evidence")
    }
    documents = [_from_fewer(task, one) for one in evidence.fewer]
    return [
        _Finding(one, "fewer", [one["source_key"]])
        for one in documents
        if accepted.get(one["source_key"], -1) != one["evidence"]["total"]
    ]


def _from_fewer(task: Task, run: Mapping[str, Any]) -> dict[str, Any]:
    why = fewer_words(run)
    return {
        "severity": Severity.MEDIUM.value,
        "category": "defect",
        "title": f"{task.title}: {why}"[:300],
        "description": why,
        "evidence": {
            "command": " ".join(run["argv"]),
            "exit_code": run["exit_code"],
            "outcome": "fewer_tests",
            "output_tail": run["output_tail"],
            "grade": "rerun",
            "at": run["at"],
            "total": run["total"],
            "earlier": run["earlier"],
        },
        "proposed_fix": None,
        "source_key": fewer_key(run),
    }
