"""What agents hand in: results by seat, outputs with assertions, comments, tool calls, deviations.

Source: DESIGN sections 8, 12 and 14 ("Results by seat"), FORMATS ("Tool-call record").
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from orchestration.contracts.documents import (
    Document,
    fault,
    parse_document,
    unknown_fields,
)
from orchestration.contracts.outputs import (
    TITLE_MAX_CHARACTERS,
    AssertionInput,
    CommentInput,
    Confidence,
    Evidence,
    HandoffComment,
    OutputFileInput,
    OutputInput,
    Title,
    Words,
)
from orchestration.contracts.plan import (
    Grade,
    Names,
    PlanStep,
    ProposedFix,
    StepId,
    Texts,
)
from orchestration.states import AuditVerdict, CommentType, Severity

__all__ = [
    "AssertionInput",
    "AuditorResult",
    "CommentInput",
    "Confidence",
    "CrossFinding",
    "CrossVerifierResult",
    "DefectInput",
    "DeviationInput",
    "ExecutorResult",
    "FixerResult",
    "HandoffComment",
    "OutputFileInput",
    "OutputInput",
    "QaResult",
    "ScorerResult",
    "TaskCommentInput",
    "ToolCallInput",
    "Usage",
    "parse_document",
    "unknown_fields",
]

TAIL_CHARACTERS = 8_000
ROW_LIMIT = 2**31 - 1
"""The largest number that a column of the database holds."""
BLOCKS_PASS = frozenset({Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM})

Score = Annotated[StrictInt, Field(ge=1, le=5)]
MOST_COUNTED = 10**15
Count = Annotated[StrictInt, Field(ge=0, le=MOST_COUNTED)]


def _command_line(value: Any) -> Any:
    return shlex.join(value) if _is_argv(value) else value


def _is_argv(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise fault("number", "must be a number")
    return value


class Usage(Document):
    """What a piece of work used. Units: cost_usd in US dollars. None means unknown, never zero."""

    turns: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: (
        Annotated[Decimal, BeforeValidator(_number), Field(ge=0, le=1_000_000, allow_inf_nan=False)]
        | None
    ) = None


class ExecutorResult(Document):
    """What an executor hands in: the same as its output, its comment and its status call."""

    output: OutputInput | None = None
    comment: HandoffComment | None = None
    status: Literal["review", "failed"]
    detail: StrictStr = ""

    @model_validator(mode="after")
    def require_detail(self) -> Self:
        """Require a reason of a failure."""
        if self.status == "failed" and not self.detail.strip():
            raise fault("detail", "a failed result needs 'detail'")
        return self


class FixerResult(ExecutorResult):
    """What a fixer hands in; asked for another proposal, it gives `proposed_fix` instead."""

    proposed_fix: ProposedFix | None = None
    change_note: StrictStr = ""


class Dimensions(Document):
    """The five dimensions of S1, each 1 to 5."""

    steps: Score
    domains: Score
    uncertainty: Score
    failure_cost: Score
    toolchain: Score


class ScorerResult(Document):
    """What a scorer hands in."""

    dimensions: Dimensions
    rationale: Evidence = ""

    @property
    def total(self) -> int:
        """The score, 5 to 25."""
        five = self.dimensions
        return five.steps + five.domains + five.uncertainty + five.failure_cost + five.toolchain


class AuditCheck(Document):
    """One check of an audit."""

    name: Words
    ok: StrictBool
    finding: Evidence = ""


class AuditorResult(Document):
    """What an auditor hands in. The third NEEDS_REVISION becomes REJECTED."""

    verdict: AuditVerdict
    checks: tuple[AuditCheck, ...] = ()
    suggestions: Texts = ()

    @field_validator("verdict")
    @classmethod
    def refuse_rejected(cls, verdict: AuditVerdict) -> AuditVerdict:
        """Refuse the verdict that only the count of revisions gives."""
        if verdict is AuditVerdict.REJECTED:
            raise fault(
                "verdict",
                "must be APPROVED, APPROVED_WITH_SUGGESTIONS or NEEDS_REVISION; "
                "the third NEEDS_REVISION becomes REJECTED",
            )
        return verdict


class IntentResult(Document):
    """What an auditor hands in about an executor's intent."""

    status: Literal["confirmed", "confirmed_with_correction", "rejected"]
    corrections: Texts = ()
    detail: StrictStr = ""

    @model_validator(mode="after")
    def require_words(self) -> Self:
        """Require the corrections of a correction and the reason of a refusal."""
        if self.status == "confirmed_with_correction" and not self.corrections:
            raise fault("corrections", "say what is corrected in 'corrections'")
        if self.status == "rejected" and not (self.detail.strip() or self.corrections):
            raise fault("detail", "a rejected intent needs 'detail'")
        return self


class DefectCategory(StrEnum):
    """What kind of finding it is: a defect, or a deviation from what was asked."""

    DEFECT = "defect"
    SCOPE = "scope"
    GRANULARITY = "granularity"
    ASSUMPTION = "assumption"


class DefectInput(Document):
    """A graded finding of QA."""

    severity: Grade
    category: DefectCategory = DefectCategory.DEFECT
    title: Title
    description: Evidence = ""
    evidence: Evidence = ""
    proposed_fix: ProposedFix | None = None


class QaResult(Document):
    """What QA hands in. Shape: `low_defects` says what to do with the Low ones.

    `checks` are the five judgements of TaskCheck, where it sits in this seat.

    Errors: fails on `fail` without defects, and on `pass` with a Critical, High or Medium one.
    """

    verdict: Literal["pass", "fail"]
    artifact_digests: Names = ()
    defects: tuple[DefectInput, ...] = ()
    low_defects: Literal["fix", "accept"] = "accept"
    checks: tuple[AuditCheck, ...] = ()

    @model_validator(mode="after")
    def require_consistency(self) -> Self:
        """Require defects for `fail`, and none above Low for `pass`."""
        if self.verdict == "fail" and not self.defects:
            raise fault("qa", "a 'fail' needs at least one defect")
        graver = sorted({one.severity for one in self.defects} & BLOCKS_PASS)
        if self.verdict == "pass" and graver:
            raise fault("qa", f"a 'pass' cannot stand beside an open {' or '.join(graver)} defect")
        return self


class CrossFinding(DefectInput):
    """One objection of a cross-verifier; plain text is a High defect of that title."""

    severity: Grade = Severity.HIGH

    @model_validator(mode="before")
    @classmethod
    def accept_text(cls, value: Any) -> Any:
        """Take plain text as the finding."""
        if isinstance(value, str) and value.strip():
            title = value.strip()[:TITLE_MAX_CHARACTERS]
            return {"title": title, "description": value if len(value) > len(title) else ""}
        return value

    @property
    def words(self) -> str:
        """The finding in one line."""
        return f"{self.severity} {self.category}: {self.title}"


class CrossVerifierResult(Document):
    """What a cross-verifier hands in. Errors: fails where it disagrees without saying why."""

    agrees: StrictBool
    findings: Annotated[tuple[CrossFinding, ...], Field(max_length=200)] = ()

    @model_validator(mode="after")
    def require_grounds(self) -> Self:
        """Require findings of a disagreement, and none above Low beside an agreement."""
        if not self.agrees and not self.findings:
            raise fault("findings", "one that does not agree needs at least one finding")
        graver = sorted({one.severity for one in self.findings} & BLOCKS_PASS)
        if self.agrees and graver:
            raise fault("findings", f"cannot agree beside a {' or '.join(graver)} finding")
        return self


class ToolCallInput(Document):
    """One recorded tool call. Units: duration in milliseconds. `at` None means when it came in.

    Shape: `call_id` is the harness's own name of the call; the same again is not recorded twice.
    `input_digest` tells calls apart whose `command` is only a part of their input.
    `source` is ours to say: what an agent sends is its own word, whatever it names here.
    """

    tool: Title
    command: Annotated[StrictStr, BeforeValidator(_command_line)] | None = None
    exit_code: Annotated[StrictInt, Field(ge=-ROW_LIMIT, le=ROW_LIMIT)] | None = None
    outcome: Literal["ok", "failed", "interrupted"]
    output_tail: StrictStr = ""
    duration_ms: Annotated[StrictInt, Field(ge=0, le=ROW_LIMIT)] | None = None
    source: Literal["harness", "agent"] = "agent"
    at: AwareDatetime | None = None
    call_id: Annotated[StrictStr, Field(max_length=200)] = ""
    input_digest: Annotated[StrictStr, Field(max_length=64)] = ""

    @model_validator(mode="before")
    @classmethod
    def derive_outcome(cls, value: Any) -> Any:
        """Take the outcome from the exit code where only that was recorded."""
        if isinstance(value, Mapping) and "outcome" not in value and "exit_code" in value:
            return {**value, "outcome": "ok" if value["exit_code"] == 0 else "failed"}
        return value

    @field_validator("at")
    @classmethod
    def require_a_time_of_ours(cls, at: datetime | None) -> datetime | None:
        """Require a time that has a year in UTC."""
        try:
            return at.astimezone(UTC) if at is not None else None
        except OverflowError:
            raise fault("at", "lies outside the years 1 to 9999 in UTC") from None

    @field_validator("output_tail")
    @classmethod
    def keep_the_end(cls, output_tail: str) -> str:
        """Keep the last 8,000 characters: it is a tail."""
        return output_tail[-TAIL_CHARACTERS:]


class TaskCommentInput(CommentInput):
    """A comment as it is posted. A review by whoever delegated the task may bring tool calls."""

    tool_calls: Annotated[tuple[ToolCallInput, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def require_review(self) -> Self:
        """Require a review where tool calls come along."""
        if self.tool_calls and self.comment_type is not CommentType.REVIEW:
            raise fault("tool_calls", "only a 'review' comes with 'tool_calls'")
        return self


class DeviationInput(Document):
    """A wish to leave the locked plan. A changed step is a skipped one and an added one."""

    change: Literal["added", "skipped", "changed"]
    step: StepId | None = None
    new_step: PlanStep | None = None
    reason: Words

    @model_validator(mode="after")
    def require_parts(self) -> Self:
        """Require the step that goes, the step that comes, and a reason."""
        if self.change != "added" and self.step is None:
            raise fault("deviation", f"a {self.change} step needs 'step'")
        if self.change != "skipped" and self.new_step is None:
            raise fault("deviation", f"a step that is {self.change} needs 'new_step'")
        if not self.reason.strip():
            raise fault("deviation", "needs a reason")
        return self
