"""Marks and proofs of what was handed in: data on its outputs, said in the reader's language.

Independent marks are of what we ran or saw ourselves; agent marks of what its record shows. Where
there is neither, the work is marked as not verified.
Source: DESIGN section 8 ("Evidence grades", "Marks", "Trust"), source document 003.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.models import Comment, Output, Task
from orchestration.rules.contradictions import Contradiction, contradictions
from orchestration.rules.tool_record import (
    INDEPENDENT_FAILED,
    INDEPENDENT_OK,
    OBSERVED,
    RERUN,
    SHOWN_COMMAND,
    Call,
    agent_marks,
    mark,
    run_mark,
    run_marks,
    unverified_mark,
)
from orchestration.rules.trust import proof_of
from orchestration.services.tool_calls import recorded_calls
from orchestration.services.verification import Evidence
from orchestration.services.work import Work
from orchestration.states import CommentType


def calls_of(task: Task) -> list[Call]:
    """Read the record of a task that an agent made or mended; else there is none."""
    if task.assignee_id is None and not task.fix_round:
        return []
    return recorded_calls(task)


def contradicted(
    task: Task, outputs: Sequence[Output], calls: Sequence[Call]
) -> list[Contradiction]:
    """Hold what is claimed of the present work against its record, each claim once."""
    if not calls:
        return []
    texts = [one.summary for one in outputs]
    texts += [str(claim.get("claim", "")) for one in outputs for claim in one.assertions]
    handoffs = Comment.objects.filter(
        task=task, attempt=task.attempt, comment_type=CommentType.HANDOFF.value
    )
    texts += handoffs.order_by("-pk").values_list("body", flat=True)[:1]
    said = [text for text in dict.fromkeys(texts) if text.strip()]
    return list({one.key: one for one in contradictions(said, calls)}.values())


def mark_outputs(
    work: Work,
    task: Task,
    outputs: Sequence[Output],
    evidence: Evidence,
    calls: Sequence[Call],
) -> None:
    """Write the marks of some outputs and the proof of each of their claims.

    Locks: expects the task locked.
    """
    if task.assignee_id is None and not (task.fix_round or evidence.verifies or evidence.claims):
        return
    present = [one for one in calls if one.attempt == task.attempt]
    earned = agent_marks(present)
    shared = _check_marks(evidence)
    for output in outputs:
        rerun = {
            int(one["assertion"]): one
            for one in evidence.claims
            if str(one.get("output")) == str(output.pk)
        }
        own = _file_marks(output, evidence) + [_claim_mark(one) for one in rerun.values()
                                               if not one.get("refusal")]  # fmt: skip
        marks = [*own, *shared, *earned]
        output.marks = marks or [unverified_mark()]
        output.assertions = [
            {**claim, "proof": proof_of(claim, present, _ran(rerun.get(at)))}
            for at, claim in enumerate(output.assertions)
        ]
        work.touch(output, "marks", "assertions")


def _ran(record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if record is None or record.get("refusal") else record


def _file_marks(output: Output, evidence: Evidence) -> list[dict[str, Any]]:
    """That a file is there is seen by us, whoever says so."""
    if not output.path or output.path not in evidence.files:
        return []
    return [mark(INDEPENDENT_OK, "file_exists", grade=OBSERVED, path=output.path)]


def _check_marks(evidence: Evidence) -> list[dict[str, Any]]:
    return run_marks(evidence.verifies)


def _claim_mark(record: Mapping[str, Any]) -> dict[str, Any]:
    if record["ok"]:
        return run_mark(record, str(record.get("claim", "")))
    return mark(INDEPENDENT_FAILED, "claim_contradicted", grade=RERUN,
                claim=str(record.get("claim", ""))[:SHOWN_COMMAND])  # fmt: skip
