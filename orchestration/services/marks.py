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
from orchestration.rules.spoken_marks import (
    fewer_marks,
    marks_of_spoken,
    own_tests_mark,
    planned_marks,
)
from orchestration.rules.tool_record import (
    BY,
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
from orchestration.states import CommentType, OutputType


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
    found = contradictions(said, calls)
    return list({(one.key, one.kind): one for one in found}.values())


def is_denied_by_record(task: Task, outputs: Sequence[Output]) -> bool:
    """Whether L2 fails by the record alone, so that nothing of L3 is due.

    After a fix the record is of the work before it, and fewer tests are Sir's to accept: both are
    held against our own runs.
    """
    if task.fix_round:
        return False
    return any(not one.is_fewer for one in contradicted(task, outputs, calls_of(task)))


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
    # A check of what a failed run left behind says nothing of the run itself.
    failed = run_marks([one for one in evidence.runs if not one["ok"]])
    ran = failed or evidence.verifies or evidence.claims or evidence.spoken
    if task.assignee_id is None and not (task.fix_round or ran):
        return
    present = [one for one in calls if one.attempt == task.attempt]
    earned = agent_marks(present)
    checked = planned_marks(evidence.verifies, evidence.spoken)
    shared = [*failed, *checked, *fewer_marks(evidence.fewer)]
    said = {output.pk: f"{output.summary}\n{output.content}" for output in outputs}
    own_tests = own_tests_mark(
        [one.path or one.title for one in outputs if one.type == OutputType.CODE]
    )
    planned = [(_expected(task.verify[run["index"]]), run) for run in evidence.verifies]
    for output in outputs:
        rerun = {
            int(one["assertion"]): one
            for one in evidence.claims
            if str(one.get("output")) == str(output.pk)
        }
        own = _file_marks(output, evidence)
        own += _spoken_marks(output, evidence, said)
        own += [_claim_mark(one) for one in rerun.values() if not one.get("refusal")]
        found = [*own, *shared, *earned] or [unverified_mark()]
        output.marks = [*found, *own_tests, *(one for one in output.marks if one.get(BY))]
        output.assertions = [
            {
                **claim,
                "proof": proof_of(
                    claim, present, _ran(rerun.get(at)) or _planned_run(claim, planned)
                ),
            }
            for at, claim in enumerate(output.assertions)
        ]
        work.touch(output, "marks", "assertions")


def _spoken_marks(
    output: Output, evidence: Evidence, said: Mapping[int, str]
) -> list[dict[str, Any]]:
    """What we found of the claims in an output's words; its own file is marked already."""
    others = "\n".join(words for pk, words in said.items() if pk != output.pk)
    found = marks_of_spoken(evidence.spoken, path=output.path, words=said[output.pk], others=others)
    is_seen = output.path in evidence.files
    return [
        one
        for one in found
        if not (is_seen and one["code"] == "file_exists" and one["params"]["path"] == output.path)
    ]


def _planned_run(
    claim: Mapping[str, Any], planned: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> Mapping[str, Any] | None:
    """The step's own check that is the claim's command too: we ran it, so it speaks for both."""
    wanted = _expected(claim.get("verify_command") or {})
    return next((run for command, run in planned if wanted and command == wanted), None)


def _expected(command: Mapping[str, Any]) -> dict[str, Any]:
    """What a command runs and must answer; how long it may take is no part of it."""
    return {name: value for name, value in command.items() if name != "timeout_seconds"}


def _ran(record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if record is None or record.get("refusal") else record


def _file_marks(output: Output, evidence: Evidence) -> list[dict[str, Any]]:
    """That a file is there is seen by us, whoever says so."""
    if not output.path or output.path not in evidence.files:
        return []
    return [mark(INDEPENDENT_OK, "file_exists", grade=OBSERVED, path=output.path)]


def _claim_mark(record: Mapping[str, Any]) -> dict[str, Any]:
    if record["ok"]:
        return run_mark(record, str(record.get("claim", "")))
    return mark(INDEPENDENT_FAILED, "claim_contradicted", grade=RERUN,
                claim=str(record.get("claim", ""))[:SHOWN_COMMAND])  # fmt: skip
