"""What agents hand in: results by seat, outputs, assertions, comments, tool calls, deviations."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from orchestration.contracts.results import (
    AuditorResult,
    CrossVerifierResult,
    DeviationInput,
    ExecutorResult,
    FixerResult,
    QaResult,
    ScorerResult,
    ToolCallInput,
    Usage,
    parse_document,
)
from orchestration.errors import Invalid
from orchestration.states import AuditVerdict, CommentType, Severity


def refused(model: type[BaseModel], document: object) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        parse_document(model, document)
    return {one["path"]: one["message"] for one in caught.value.errors}


def accepts(model: type[BaseModel], document: object) -> bool:
    try:
        parse_document(model, document)
    except Invalid:
        return False
    return True


FIVE = {"steps": 1, "domains": 2, "uncertainty": 3, "failure_cost": 4, "toolchain": 5}


def test_a_score_is_the_sum_of_five_dimensions() -> None:
    result = parse_document(ScorerResult, {"dimensions": FIVE, "rationale": "because"})
    assert (result.total, result.rationale) == (15, "because")


@pytest.mark.parametrize("name", list(FIVE))
@pytest.mark.parametrize("value", [0, 6, -1, 1.5, "3", None, True])
def test_a_dimension_out_of_range_is_named(name: str, value: object) -> None:
    assert list(refused(ScorerResult, {"dimensions": {**FIVE, name: value}})) == [
        f"dimensions.{name}"
    ]


def test_missing_dimensions_are_all_named() -> None:
    found = refused(ScorerResult, {"dimensions": {"steps": 1}})
    assert list(found) == [f"dimensions.{name}" for name in list(FIVE)[1:]]
    assert set(found.values()) == {"is required"}


def test_an_audit_is_read() -> None:
    result = parse_document(
        AuditorResult,
        {
            "verdict": "NEEDS_REVISION",
            "checks": [{"name": "risk", "ok": False, "finding": "none is named"}],
            "suggestions": ["name one", {"text": "split step 2", "why": "too big"}],
        },
    )
    assert result.verdict is AuditVerdict.NEEDS_REVISION
    assert result.suggestions == ("name one", "split step 2; why: too big")


def test_only_the_count_of_revisions_rejects() -> None:
    assert "NEEDS_REVISION" in refused(AuditorResult, {"verdict": "REJECTED"})["verdict"]


@pytest.mark.parametrize("verdict", ["approved", "", None, 1, "OK"])
def test_an_unknown_audit_verdict_is_refused(verdict: object) -> None:
    assert list(refused(AuditorResult, {"verdict": verdict})) == ["verdict"]


DEFECT_SETS = [
    combination
    for size in range(3)
    for combination in itertools.combinations_with_replacement(list(Severity), size)
]


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize("severities", DEFECT_SETS)
def test_qa_says_what_its_defects_allow(verdict: str, severities: tuple[Severity, ...]) -> None:
    document = {
        "verdict": verdict,
        "defects": [{"severity": str(one), "title": "broken"} for one in severities],
    }
    may = bool(severities) if verdict == "fail" else set(severities) <= {Severity.LOW}
    assert accepts(QaResult, document) == may


def test_a_refused_pass_names_the_severities() -> None:
    document = {"verdict": "pass", "defects": [{"severity": "Medium", "title": "x"}]}
    assert refused(QaResult, document) == {"": "a 'pass' cannot stand beside an open medium defect"}


def test_a_defect_is_read_whole() -> None:
    result = parse_document(
        QaResult,
        {
            "verdict": "fail",
            "artifact_digests": ["ab"],
            "low_defects": "fix",
            "defects": [
                {
                    "severity": "MEDIUM",
                    "category": "scope",
                    "title": "too wide",
                    "description": "d",
                    "evidence": {"lines": [1, 2]},
                    "proposed_fix": {"description": "narrow it", "commands": ["make fix"]},
                }
            ],
        },
    )
    defect = result.defects[0]
    assert (defect.severity, defect.category) == (Severity.MEDIUM, "scope")
    assert defect.evidence == '{"lines": [1, 2]}'
    assert defect.proposed_fix is not None
    assert not defect.proposed_fix.is_empty


@pytest.mark.parametrize(
    ("defect", "path"),
    [
        ({"severity": "urgent", "title": "x"}, "severity"),
        ({"title": "x"}, "severity"),
        ({"severity": "low"}, "title"),
        ({"severity": "low", "title": ""}, "title"),
        ({"severity": "low", "title": "x" * 301}, "title"),
        ({"severity": "low", "title": "x", "category": "style"}, "category"),
        ({"severity": "low", "title": "x", "proposed_fix": {"patch": 3}}, "proposed_fix.patch"),
    ],
)
def test_a_malformed_defect_is_named(defect: dict[str, Any], path: str) -> None:
    document = {"verdict": "pass", "defects": [defect]}
    assert list(refused(QaResult, document)) == [f"defects.0.{path}"]


def test_qa_verdicts_are_two() -> None:
    assert "'pass' or 'fail'" in refused(QaResult, {"verdict": "ok"})["verdict"]


def test_an_executor_hands_in_everything_at_once() -> None:
    result = parse_document(
        ExecutorResult,
        {
            "status": "review",
            "output": {"type": "code", "title": "t", "path": "./out//a.py"},
            "comment": {"comment_type": "handoff", "body": "done"},
        },
    )
    assert result.output is not None
    assert result.comment is not None
    assert (result.output.path, result.comment.body) == ("out/a.py", "done")


@pytest.mark.parametrize(
    ("comment", "body"),
    [
        ("done", "done"),
        ({"body": "done"}, "done"),
        ({"completed": "x", "artifacts": []}, '{"completed": "x", "artifacts": []}'),
        ({"body": {"completed": "x", "artifacts": []}}, '{"completed": "x", "artifacts": []}'),
    ],
)
def test_the_comment_of_a_result_is_a_hand_off(comment: object, body: str) -> None:
    result = parse_document(ExecutorResult, {"status": "review", "comment": comment})
    assert result.comment is not None
    assert (result.comment.comment_type, result.comment.body) == (CommentType.HANDOFF, body)


def test_a_failure_needs_its_detail() -> None:
    assert refused(ExecutorResult, {"status": "failed", "detail": " "}) == {
        "": "a failed result needs 'detail'"
    }
    failed = parse_document(ExecutorResult, {"status": "failed", "detail": "disk full"})
    assert failed.detail == "disk full"


@pytest.mark.parametrize("status", ["done", "blocked", "working", "", None])
def test_a_result_ends_in_review_or_failed(status: object) -> None:
    assert list(refused(ExecutorResult, {"status": status})) == ["status"]


def test_a_fixer_may_propose_another_fix() -> None:
    result = parse_document(
        FixerResult, {"status": "review", "proposed_fix": {"patch": "--- a\n"}, "change_note": "n"}
    )
    assert result.proposed_fix is not None
    assert result.change_note == "n"


def test_a_cross_verifier_agrees_or_not() -> None:
    result = parse_document(CrossVerifierResult, {"agrees": False, "findings": ["wrong total"]})
    [finding] = result.findings
    assert not result.agrees
    assert (finding.title, finding.severity, finding.category) == ("wrong total", "high", "defect")
    assert list(refused(CrossVerifierResult, {"agrees": "no"})) == ["agrees"]
    assert refused(CrossVerifierResult, {"agrees": False})
    graver = {"title": "wrong unit", "severity": "medium", "category": "assumption"}
    assert refused(CrossVerifierResult, {"agrees": True, "findings": [graver]})


def test_unknown_usage_stays_unknown() -> None:
    usage = parse_document(Usage, {"turns": 0, "cost_usd": 0.1})
    assert (usage.turns, usage.input_tokens, usage.cost_usd) == (0, None, Decimal("0.1"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("turns", -1),
        ("turns", 1.5),
        ("turns", "3"),
        ("turns", True),
        ("input_tokens", -1),
        ("output_tokens", 10**16),
        ("cost_usd", -0.01),
        ("cost_usd", "1"),
        ("cost_usd", True),
        ("cost_usd", float("inf")),
    ],
)
def test_usage_is_a_count(field: str, value: object) -> None:
    assert list(refused(Usage, {field: value})) == [field]


def test_a_tool_call_is_read() -> None:
    call = parse_document(
        ToolCallInput,
        {
            "tool": "Bash",
            "command": ["pytest", "-k", "a b"],
            "exit_code": 1,
            "outcome": "failed",
            "output_tail": "x" * 9_000 + "END",
            "duration_ms": 12,
            "source": "harness",
            "at": "2026-01-02T03:04:05+08:00",
        },
    )
    assert call.command == "pytest -k 'a b'"
    assert len(call.output_tail) == 8_000
    assert call.output_tail.endswith("END")
    assert call.at is not None
    assert call.at.utcoffset() is not None


@pytest.mark.parametrize(("code", "outcome"), [(0, "ok"), (1, "failed"), (-9, "failed")])
def test_the_outcome_follows_from_the_exit_code(code: int, outcome: str) -> None:
    assert parse_document(ToolCallInput, {"tool": "x", "exit_code": code}).outcome == outcome


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"outcome": "fine"}, "outcome"),
        ({}, "outcome"),
        ({"outcome": "ok", "tool": ""}, "tool"),
        ({"outcome": "ok", "duration_ms": -1}, "duration_ms"),
        ({"outcome": "ok", "source": "me"}, "source"),
        ({"outcome": "ok", "at": "2026-01-02T03:04:05"}, "at"),
        ({"outcome": "ok", "exit_code": "0"}, "exit_code"),
    ],
)
def test_a_malformed_tool_call_is_named(fields: dict[str, Any], path: str) -> None:
    assert list(refused(ToolCallInput, {"tool": "x", **fields})) == [path]


NEW = {"id": "9", "action": "work"}


@pytest.mark.parametrize(
    ("document", "is_whole"),
    [
        ({"change": "added", "new_step": NEW}, True),
        ({"change": "added"}, False),
        ({"change": "skipped", "step": 2}, True),
        ({"change": "skipped", "new_step": NEW}, False),
        ({"change": "changed", "step": "2", "new_step": NEW}, True),
        ({"change": "changed", "step": "2"}, False),
        ({"change": "changed", "new_step": NEW}, False),
        ({"change": "moved", "step": "2"}, False),
    ],
)
def test_a_deviation_names_what_goes_and_what_comes(
    document: dict[str, Any], *, is_whole: bool
) -> None:
    assert accepts(DeviationInput, {**document, "reason": "why"}) == is_whole


@pytest.mark.parametrize("reason", [{}, {"reason": ""}, {"reason": " "}, {"reason": None}])
def test_a_deviation_needs_a_reason(reason: dict[str, Any]) -> None:
    assert not accepts(DeviationInput, {"change": "skipped", "step": 2, **reason})
