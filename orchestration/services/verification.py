"""The verification layers, cheapest first, stopping at the first failure.

L1 format and L2 logic are by rules. L3 anchors are re-run where we may run them; what cannot run is
`not_possible` with its reason, never silently passed. L4 and L5 are asked for by `services.layers`.
Source: DESIGN section 8 ("Layers", "Evidence grades").
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestration.models import Assignment, Output, Task, Verification
from orchestration.models.rows import new_row
from orchestration.rules.contradictions import Contradiction, claim_key
from orchestration.rules.early_layers import format_findings, logic_findings
from orchestration.services.work import Work
from orchestration.states import CommentType, Complexity, LayerOutcome

RERUN, OBSERVED, NONE = "rerun", "observed", "none"
CLAIMS = "claims"
"""Name of the L2 row that holds claims against the record; its failure is a defect, no redo."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The outcome of one layer or one command of it.

    `finding_key` is the source key of the defect that a failure of it opens.
    """

    layer: str
    outcome: LayerOutcome
    name: str = ""
    findings: tuple[str, ...] = ()
    grade: str = NONE
    record: Mapping[str, Any] | None = None
    finding_key: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What we gathered ourselves about a handed-in step, outside any transaction.

    Shape: `runs` and `verifies` are command records `{index, argv, ok, exit_code, outcome,
    output_tail, duration_ms}`; `claims` the same for claims' own commands, each with `output` and
    `assertion` (ids), a `refusal` where it was not run; `spoken` what we found of each claim in the
    agent's words, as `seats.independent` shapes it; `fewer` runs with fewer tests than an earlier
    one, as `seats.earlier_runs` shapes them; `files` the bytes of outputs that are paths;
    `missing` expected artifacts that are absent or empty; `changed` paths whose content differs
    from the hand-in; `refusal` why commands may not run here; `held_back` the findings of L1 or L2
    for which nothing of L3 was run; `not_run` planned checks that say nothing of the work, each
    with `why` and `is_outage`.
    """

    runs: tuple[Mapping[str, Any], ...] = ()
    verifies: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()
    spoken: tuple[Mapping[str, Any], ...] = ()
    fewer: tuple[Mapping[str, Any], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    refusal: str = ""
    not_run: tuple[Mapping[str, Any], ...] = ()


def step_layers(
    task: Task,
    outputs: Sequence[Output],
    evidence: Evidence,
    said: Sequence[Contradiction] = (),
) -> list[Layer]:
    """Run the layers L1 to L3 that a step's complexity asks for, up to the first failure.

    `said` are the claims that the record contradicts.
    """
    layers = [_judged("L1", format_findings(outputs, evidence.missing))]
    if layers[-1].outcome is not LayerOutcome.FAILED:
        layers.append(_judged("L2", _logic(task, outputs, evidence, said)))
    if layers[-1].outcome is LayerOutcome.FAILED:
        return layers
    if said:
        findings = tuple(f"{one.text[:200]}: {one.why}" for one in said)
        layers.append(Layer("L2", LayerOutcome.FAILED, CLAIMS, findings, OBSERVED))
    is_due = task.verify or evidence.claims
    if not said and (is_due or task.complexity in (Complexity.MEDIUM, Complexity.HIGH)):
        layers += _anchor_layers(task, evidence)
    # Only what a mend may have settled, or Sir may accept, is run beside a claim that L2 denies.
    return layers + spoken_layers(evidence) + fewer_layers(evidence)


def _logic(
    task: Task, outputs: Sequence[Output], evidence: Evidence, said: Sequence[Contradiction]
) -> list[str]:
    found = logic_findings(
        outputs,
        changed=evidence.changed,
        runs=evidence.runs,
        is_failure_planned=task.on_failure is not None,
    )
    # Where nothing of L3 was run, the work cannot pass, also when the reason is gone since.
    return found or ([] if said else list(evidence.held_back))


def _judged(layer: str, findings: Sequence[str]) -> Layer:
    outcome = LayerOutcome.FAILED if findings else LayerOutcome.PASSED
    return Layer(layer, outcome, findings=tuple(findings), grade=OBSERVED)


def _anchor_layers(task: Task, evidence: Evidence) -> list[Layer]:
    """One row a command that was run again: the planned ones, then those of claims."""
    rows = [
        _anchor_row(run, " ".join(run["argv"]), key=command_key("verify", run))
        for run in evidence.verifies
    ]
    if evidence.refusal and (task.verify or task.run):
        rows.append(Layer("L3", LayerOutcome.NOT_POSSIBLE, findings=(evidence.refusal,)))
    rows += [_not_run_row(one) for one in evidence.not_run]
    refused: dict[str, int] = {}
    for one in evidence.claims:
        if one.get("refusal"):
            refused[one["refusal"]] = refused.get(one["refusal"], 0) + 1
        else:
            claim = str(one.get("claim", ""))
            rows.append(_anchor_row(one, claim, key=claim_key(claim)))
    for why, count in refused.items():
        words = f"{count} claims name a command of their agent's own; {why}"
        rows.append(Layer("L3", LayerOutcome.NOT_POSSIBLE, findings=(words,)))
    return rows or [Layer("L3", LayerOutcome.PASSED, findings=("nothing to re-run",))]


def _not_run_row(run: Mapping[str, Any]) -> Layer:
    """A check that met an outage is named; one that may not run as it is written is not."""
    is_outage = run["is_outage"]
    return Layer(
        "L3",
        LayerOutcome.NOT_POSSIBLE,
        " ".join(run["argv"]) if is_outage else "",
        (str(run["why"]),),
        record=run if is_outage else None,
        finding_key=command_key("verify", run) if is_outage else "",
    )


def _anchor_row(run: Mapping[str, Any], name: str, *, key: str) -> Layer:
    outcome = LayerOutcome.PASSED if run["ok"] else LayerOutcome.FAILED
    findings = (str(run["why"]),) if run.get("why") else ()
    return Layer("L3", outcome, name, findings, RERUN, record=run, finding_key=key)


_SPOKEN = {
    "proven": LayerOutcome.PASSED,
    "contradicted": LayerOutcome.FAILED,
    "unverified": LayerOutcome.NOT_POSSIBLE,
}


def spoken_layers(evidence: Evidence) -> list[Layer]:
    """One L3 row a claim that we checked ourselves: what was said, and what we found."""
    return [
        Layer(
            "L3",
            _SPOKEN[one["verdict"]],
            name=f"{one['key']}: {one['claim']}",
            findings=(one["why"],) if one["why"] else (),
            grade=NONE if one["verdict"] == "unverified" else RERUN,
            record=one if one["argv"] else None,
            finding_key=one["key"],
        )
        for one in evidence.spoken
    ]


def fewer_layers(evidence: Evidence) -> list[Layer]:
    """One L3 row a run of ours that had fewer tests than an earlier one."""
    return [
        Layer("L3", LayerOutcome.FAILED, name=f"fewer tests: {shlex.join(one['argv'])}",
              findings=(fewer_words(one),), grade=RERUN, finding_key=fewer_key(one))
        for one in evidence.fewer
    ]  # fmt: skip


def command_key(kind: str, run: Mapping[str, Any]) -> str:
    """Name a planned command of a step, `run` or `verify`, as its finding does."""
    return f"{kind}:{run['index']}"


def fewer_key(run: Mapping[str, Any]) -> str:
    """Name a run that had fewer tests than an earlier one, as its finding does."""
    digest = hashlib.sha256(json.dumps(run["argv"]).encode()).hexdigest()
    return f"fewer:{digest[:40]}"


def fewer_words(run: Mapping[str, Any]) -> str:
    """Say how many tests ran, and how many did before."""
    return f"{run['total']} tests ran, {run['earlier']} in an earlier run of the same command"


def report_layers(task: Task) -> list[Layer]:
    """L1 and L2 of a planned task's own report: written by us from rows that were just read."""
    return [Layer("L1", LayerOutcome.PASSED, grade=OBSERVED), Layer("L2", LayerOutcome.PASSED,
            grade=OBSERVED)]  # fmt: skip


def record_layers(
    work: Work, task: Task, layers: Sequence[Layer], output: Output | None = None
) -> None:
    """Store the outcome of the layers, one row each; the event of the review names them."""
    work.insert([_row(work, task, layer, output) for layer in layers])


def layer_facts(layers: Sequence[Layer]) -> list[list[str]]:
    """Shape the layers for an event: name and outcome of each."""
    return [[layer.layer, layer.outcome.value] for layer in layers]


def _row(work: Work, task: Task, layer: Layer, output: Output | None) -> Verification:
    record = layer.record or {}
    return new_row(
        Verification,
        task=task,
        output=output,
        attempt=task.attempt,
        fix_round=task.fix_round,
        layer=layer.layer,
        name=layer.name[:300],
        finding_key=layer.finding_key,
        outcome=layer.outcome.value,
        grade=layer.grade,
        command={"argv": list(record["argv"])} if record else None,
        exit_code=record.get("exit_code"),
        output_tail=record.get("output_tail", ""),
        duration_ms=record.get("duration_ms"),
        findings=list(layer.findings),
        created_at=work.now,
    )


def failed_early(layers: Sequence[Layer]) -> list[str]:
    """The findings of L1 or L2, if either failed: the work is unusable as handed in."""
    return [
        finding
        for layer in layers
        if layer.layer in ("L1", "L2")
        and layer.outcome is LayerOutcome.FAILED
        and layer.name != CLAIMS
        for finding in layer.findings
    ]


def is_handed_in(assignment: Assignment) -> tuple[bool, bool]:
    """Whether this attempt has an output and its holder's hand-off. Shape: (output, hand-off).

    Anyone may comment; what another agent wrote, or held this work and wrote, hands nothing over.
    """
    task = assignment.task
    has_output = task.outputs.filter(attempt=task.attempt, is_orphan=False).exists()
    handoffs = task.comments.filter(
        assignment=assignment,
        attempt=task.attempt,
        agent=assignment.agent,
        comment_type=CommentType.HANDOFF.value,
    )
    return has_output, handoffs.exists()
