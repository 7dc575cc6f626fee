"""The policy: defaults as documented, unknown keys named, silence never consent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from orchestration.errors import PolicyInvalid
from orchestration.expiry import EXPIRY_OUTCOMES
from orchestration.policy import (
    DEFAULT_POLICY,
    SEAT_BACKENDS,
    Backend,
    Commands,
    Policy,
    load_policy,
)
from orchestration.states import DecisionKind, Seat


def faults_of(document: Any) -> dict[str, str]:
    """Parse what must be refused, and return its faults by path."""
    with pytest.raises(PolicyInvalid) as caught:
        Policy.parse(document)
    assert caught.value.status == 422
    assert caught.value.errors
    return {fault["path"]: fault["message"] for fault in caught.value.errors}


def test_default_thresholds_have_the_names_and_numbers_of_the_source() -> None:
    assert DEFAULT_POLICY.document()["thresholds"] == {
        "s0_message_length_threshold": 200,
        "s1_simple_threshold": 8,
        "s1_medium_threshold": 15,
        "s2_max_revision_rounds": 2,
        "dynamic_upgrade_failure_threshold": 2,
        "max_retries": 3,
        "step_attempts": 2,
        "fix_rounds": 3,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", 3),
        ("parallel_children", 10),
        ("children", 100),
        ("turns", 30),
        ("cost_usd", 5.0),
        ("timeouts_seconds_by_depth", (28_800, 7_200, 3_600, 1_800)),
        ("lease_seconds", 900),
        ("transient_retries", 10),
        ("concurrent_roots", 1),
        ("command_timeout_seconds", 600),
        ("command_output_bytes", 10_000_000),
        ("command_memory_bytes", 4 * 1024**3),
    ],
)
def test_default_limits(name: str, value: object) -> None:
    assert getattr(DEFAULT_POLICY.limits, name) == value


@pytest.mark.parametrize(
    ("seat", "backends"),
    [
        (Seat.SCORER, ["rules"]),
        (Seat.PLANNER, ["rules", "external"]),
        (Seat.AUDITOR, ["rules"]),
        (Seat.EXECUTOR, ["command", "external"]),
        (Seat.QA, ["rules"]),
        (Seat.FIXER, ["command", "external"]),
        (Seat.CROSS_VERIFIER, ["external"]),
        (Seat.VALIDATOR, ["rules"]),
    ],
)
def test_default_seats(seat: Seat, backends: list[str]) -> None:
    assert list(DEFAULT_POLICY.backends(seat)) == backends


def test_every_seat_has_bindings_a_hint_and_possible_backends() -> None:
    for seat in Seat:
        assert set(DEFAULT_POLICY.backends(seat)) <= SEAT_BACKENDS[seat]
        DEFAULT_POLICY.model_hint(seat)
    assert set(SEAT_BACKENDS) == set(Seat)


def test_default_model_hints() -> None:
    hints = {seat: DEFAULT_POLICY.model_hint(seat) for seat in Seat}
    named = {seat: hint for seat, hint in hints.items() if hint is not None}
    assert named == {Seat.PLANNER: "opus", Seat.AUDITOR: "sonnet", Seat.QA: "sonnet"}


@pytest.mark.parametrize(
    "word",
    [
        "开发",
        "构建",
        "设计",
        "部署",
        "迁移",
        "重构",
        "分析",
        "调研",
        "实现",
        "搭建",
        "创建",
        "优化",
    ],
)
def test_source_intent_verbs_are_defaults(word: str) -> None:
    assert word in DEFAULT_POLICY.triggers.intent_verbs


@pytest.mark.parametrize(
    "word", ["整个", "全部", "系统", "架构", "从零开始", "端到端", "完整", "全面", "整套"]
)
def test_source_scope_words_are_defaults(word: str) -> None:
    assert word in DEFAULT_POLICY.triggers.scope_words


@pytest.mark.parametrize("word", ["复杂任务", "三步法", "需要规划", "完整流程"])
def test_source_explicit_triggers_are_defaults(word: str) -> None:
    assert word in DEFAULT_POLICY.triggers.explicit_triggers


def test_document_round_trips_through_json() -> None:
    text = json.dumps(DEFAULT_POLICY.document())
    assert load_policy(text) == DEFAULT_POLICY
    assert load_policy("{}") == DEFAULT_POLICY


def test_equal_documents_give_one_object() -> None:
    text = json.dumps({"limits": {"turns": 7}})
    assert load_policy(text) is load_policy(text)


def test_partial_document_keeps_the_other_defaults() -> None:
    policy = Policy.parse({"seats": {"scorer": ["external", "rules"]}, "limits": {"turns": 4}})
    assert policy.backends(Seat.SCORER) == (Backend.EXTERNAL, Backend.RULES)
    assert policy.backends(Seat.QA) == (Backend.RULES,)
    assert policy.limits.turns == 4
    assert policy.limits.children == 100


def test_merged_replaces_lists_whole_and_leaves_the_original() -> None:
    first = DEFAULT_POLICY.merged({"triggers": {"scope_words": ["整个", "galaxy"]}})
    second = first.merged({"triggers": {"scope_words": ["all"]}, "limits": {"turns": 1}})
    assert first.triggers.scope_words == ("整个", "galaxy")
    assert second.triggers.scope_words == ("all",)
    assert second.triggers.intent_verbs == DEFAULT_POLICY.triggers.intent_verbs
    assert DEFAULT_POLICY.limits.turns == 30


def test_merged_null_takes_an_expiry_rule_away() -> None:
    rule = {"policy_id": "budget-24h", "after_seconds": 86_400, "outcome": "abort"}
    policy = Policy.parse({"expiry": {"budget_exceeded": rule}})
    found = policy.expiry_rule(DecisionKind.BUDGET_EXCEEDED)
    assert found is not None
    assert found.policy_id == "budget-24h"
    cleared = policy.merged({"expiry": {"budget_exceeded": None}})
    assert cleared.expiry_rule(DecisionKind.BUDGET_EXCEEDED) is None


def test_policy_is_immutable_and_hashable() -> None:
    assert hash(Policy()) == hash(DEFAULT_POLICY)
    with pytest.raises(ValidationError):
        DEFAULT_POLICY.limits.turns = 3


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"treshold": {}}, "treshold"),
        ({"limits": {"turn": 3}}, "limits.turn"),
        ({"triggers": {"verbs": []}}, "triggers.verbs"),
        ({"commands": {"deny": []}}, "commands.deny"),
        ({"expiry": {"nothing": None}}, "expiry.nothing"),
        ({"seats": {"king": ["rules"]}}, "seats.king"),
        ({"models": {"king": "opus"}}, "models.king"),
        ({"workflow": {"x": 1}}, "workflow.x"),
    ],
)
def test_unknown_keys_are_named(document: dict[str, Any], path: str) -> None:
    assert faults_of(document) == {path: "unknown key"}


def test_every_fault_is_listed() -> None:
    faults = faults_of({"limits": {"turns": 0, "cost_usd": -1}, "seats": {"qa": []}, "x": 1})
    assert set(faults) == {"limits.turns", "limits.cost_usd", "seats.qa", "x"}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"limits": {"turns": True}}, "limits.turns"),
        ({"limits": {"turns": "30"}}, "limits.turns"),
        ({"limits": {"turns": 2.0}}, "limits.turns"),
        ({"limits": {"depth": 4}}, "limits.depth"),
        ({"limits": {"cost_usd": float("nan")}}, "limits.cost_usd"),
        ({"limits": {"cost_usd": float("inf")}}, "limits.cost_usd"),
        ({"limits": {"cost_usd": True}}, "limits.cost_usd"),
        ({"limits": {"timeouts_seconds_by_depth": [1, 2, 3]}}, "limits.timeouts_seconds_by_depth"),
        ({"limits": None}, "limits"),
        ({"limits": []}, "limits"),
        ({"thresholds": {"s1_simple_threshold": 26}}, "thresholds.s1_simple_threshold"),
        ({"thresholds": {"s1_simple_threshold": 16}}, "thresholds"),
        ({"seats": {"scorer": ["command"]}}, "seats.scorer"),
        ({"seats": {"executor": ["rules"]}}, "seats.executor"),
        ({"seats": {"scorer": ["llm"]}}, "seats.scorer.0"),
        ({"seats": {"scorer": ["rules", "rules"]}}, "seats.scorer"),
        ({"triggers": {"intent_verbs": [""]}}, "triggers.intent_verbs.0"),
        ({"triggers": {"intent_verbs": ["\u200b"]}}, "triggers.intent_verbs.0"),
        ({"triggers": {"intent_verbs": ["\ud800"]}}, "triggers.intent_verbs.0"),
        ({"triggers": {"intent_verbs": [7]}}, "triggers.intent_verbs.0"),
        ({"triggers": {"intent_verbs": "开发"}}, "triggers.intent_verbs"),
        ({"triggers": {"intent_verbs": ["x" * 201]}}, "triggers.intent_verbs.0"),
        ({"triggers": {"intent_verbs": ["x"] * 501}}, "triggers.intent_verbs"),
        ({"triggers": {"red_lines": ["…"]}}, "triggers.red_lines.0"),
        ({"triggers": {"red_lines": ["删…"]}}, "triggers.red_lines.0"),
        ({"triggers": {"multi_step": ["... then"]}}, "triggers.multi_step.0"),
        ({"commands": {"allow": [[]]}}, "commands.allow.0"),
        ({"commands": {"allow": [""]}}, "commands.allow.0"),
        ({"commands": {"allow": [["make", ""]]}}, "commands.allow.0.1"),
        ({"commands": {"allow": ["make 'x"]}}, "commands.allow.0"),
        ({"commands": {"allow": [3]}}, "commands.allow.0"),
        ({"commands": {"allow": ["a " * 5_000_000]}}, "commands.allow.0"),
        ({"commands": {"allow": ["a" * 4_097]}}, "commands.allow.0"),
        ({"workflow": {"subcoding_may_spawn": 1}}, "workflow.subcoding_may_spawn"),
    ],
)
def test_values_out_of_range_are_named(document: dict[str, Any], path: str) -> None:
    assert list(faults_of(document)) == [path]


@pytest.mark.parametrize("document", [[], None, "x", 3])
def test_a_document_that_is_no_object_is_refused(document: Any) -> None:
    assert faults_of(document) == {"": "must be an object"}


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000, '{"\\ud800": 1}'])
def test_stored_text_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(PolicyInvalid):
        load_policy(text)


def expiring(kind: DecisionKind, outcome: str) -> dict[str, Any]:
    """Write a policy whose decisions of one kind expire with an outcome."""
    rule = {"policy_id": "p1", "after_seconds": 60, "outcome": outcome}
    return {"expiry": {kind.value: rule}}


@pytest.mark.parametrize("kind", list(DecisionKind))
def test_named_outcomes_are_accepted_for_each_kind(kind: DecisionKind) -> None:
    for outcome in EXPIRY_OUTCOMES[kind]:
        rule = Policy.parse(expiring(kind, outcome)).expiry_rule(kind)
        assert rule is not None
        assert rule.outcome == outcome


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (DecisionKind.MEDIUM_DEFECT, "approve"),
        (DecisionKind.MEDIUM_DEFECT, "accept_as_is"),
        (DecisionKind.MAX_RETRIES, "retry"),
        (DecisionKind.MAX_RETRIES, "waive"),
        (DecisionKind.FINAL_REVIEW, "approve"),
        (DecisionKind.PLAN_REJECTED, "accept"),
        (DecisionKind.WAITING_HUMAN, "approve"),
        (DecisionKind.WAITING_HUMAN, "answer"),
        (DecisionKind.SAFE_STOP, "resume"),
        (DecisionKind.BUDGET_EXCEEDED, "raise"),
        (DecisionKind.CLARIFICATION, "no such verdict"),
    ],
)
def test_silence_is_never_consent(kind: DecisionKind, outcome: str) -> None:
    faults = faults_of(expiring(kind, outcome))
    assert list(faults) == [f"expiry.{kind.value}"]
    assert faults[f"expiry.{kind.value}"].startswith("silence is never consent")


@pytest.mark.parametrize("kind", ["medium_defect", "max_retries", "final_review"])
def test_no_outcome_of_the_three_guarded_kinds_lets_work_go_on(kind: str) -> None:
    assert EXPIRY_OUTCOMES[DecisionKind(kind)] <= {"reject", "abort"}


def test_every_kind_of_decision_has_an_expiry_field() -> None:
    assert set(EXPIRY_OUTCOMES) == set(DecisionKind)
    assert all(DEFAULT_POLICY.expiry_rule(kind) is None for kind in DecisionKind)


@pytest.mark.parametrize("policy_id", ["", "Has Blank", "-x", "x" * 65, "名", "a\n"])
def test_a_policy_id_must_be_a_plain_name(policy_id: str) -> None:
    rule = {"policy_id": policy_id, "after_seconds": 60, "outcome": "abort"}
    assert list(faults_of({"expiry": {"budget_exceeded": rule}})) == [
        "expiry.budget_exceeded.policy_id"
    ]


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["python", "-m", "pytest"], True),
        (["python", "-m", "pytest", "-q", "tests"], True),
        (["python", "-m", "pytests"], False),
        (["python", "-m"], False),
        (["python3", "-m", "pytest"], False),
        (["make", "check"], True),
        (["make"], True),
        (["echo", "a b"], True),
        (["echo", "a", "b"], False),
        ([], False),
    ],
)
def test_allow_list_entries_are_argv_prefixes(argv: list[str], allowed: bool) -> None:  # noqa: FBT001
    policy = Policy.parse({"commands": {"allow": ["python -m pytest", ["make"], 'echo "a b"']}})
    assert policy.commands.allows(argv) is allowed


def test_nothing_is_allowed_by_default() -> None:
    assert Commands().allows(["ls"]) is False


@pytest.mark.parametrize(("depth", "seconds"), [(0, 28_800), (1, 7_200), (2, 3_600), (3, 1_800)])
def test_timeouts_follow_depth(depth: int, seconds: int) -> None:
    assert DEFAULT_POLICY.limits.timeout_seconds(depth) == seconds
