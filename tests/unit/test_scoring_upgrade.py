"""Dynamic upgrade: what calls for a new score, and what the run record adds to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.rules.scoring import RunRecord, rescore, score, upgrade_due
from orchestration.states import Complexity, RiskLevel, Route

CALM = RunRecord(actual_steps=1, estimated_steps=1)
PLAIN = "给这个函数加个注释"


@pytest.mark.parametrize(
    ("record", "trigger"),
    [
        (RunRecord(), None),
        (CALM, None),
        (RunRecord(failure_count=1), None),
        (RunRecord(failure_count=2), "failures"),
        (RunRecord(failure_count=3), "failures"),
        (RunRecord(actual_steps=2, estimated_steps=1), None),
        (RunRecord(actual_steps=3, estimated_steps=1), "steps"),
        (RunRecord(actual_steps=8, estimated_steps=4), None),
        (RunRecord(actual_steps=9, estimated_steps=4), "steps"),
        (RunRecord(unexpected_blockers=1), "blockers"),
        (RunRecord(reported_domains=("legal",)), "new_domain"),
        (RunRecord(is_uncertain=True), "uncertain"),
        (RunRecord(failure_count=2, is_uncertain=True), "failures"),
        (RunRecord(unexpected_blockers=1, is_uncertain=True), "blockers"),
    ],
)
def test_what_calls_for_a_new_score(record: RunRecord, trigger: str | None) -> None:
    assert upgrade_due(record, DEFAULT_POLICY) == trigger


def test_the_failure_threshold_comes_from_the_policy() -> None:
    policy = Policy.parse({"thresholds": {"dynamic_upgrade_failure_threshold": 4}})
    assert upgrade_due(RunRecord(failure_count=3), policy) is None
    assert upgrade_due(RunRecord(failure_count=4), policy) == "failures"
    patient = rescore(PLAIN, RunRecord(failure_count=3), policy)
    assert patient.dimensions == score(PLAIN, policy).dimensions


def test_a_calm_record_changes_nothing() -> None:
    before = score(PLAIN, DEFAULT_POLICY)
    after = rescore(PLAIN, CALM, DEFAULT_POLICY)
    assert after.dimensions == before.dimensions


@pytest.mark.parametrize(
    ("actual", "value"), [(0, 1), (1, 1), (2, 1), (3, 3), (5, 3), (6, 5), (60, 5)]
)
def test_steps_come_from_what_was_done(actual: int, value: int) -> None:
    result = rescore(PLAIN, replace(CALM, actual_steps=actual), DEFAULT_POLICY)
    assert result.dimensions.steps == value


def test_steps_done_so_far_never_lower_what_the_text_lists() -> None:
    text = "\n".join(f"{n}. 事" for n in range(1, 8))
    assert rescore(text, CALM, DEFAULT_POLICY).dimensions.steps == 5


@pytest.mark.parametrize(
    ("reported", "value"),
    [
        ((), 1),
        (("legal",), 3),
        (("database",), 1),
        (("PostgreSQL",), 1),
        (("数据库",), 1),
        (("legal", "Legal ", "合同"), 3),
        (("legal", "medical", "astronomy"), 5),
        (("underwater basket weaving",), 3),
    ],
)
def test_reported_domains_join_those_of_the_text(reported: tuple[str, ...], value: int) -> None:
    record = replace(CALM, reported_domains=reported)
    result = rescore("看看数据库", record, DEFAULT_POLICY)
    assert result.dimensions.domains == value


@pytest.mark.parametrize(
    "record", [replace(CALM, unexpected_blockers=1), replace(CALM, is_uncertain=True)]
)
def test_a_blocker_or_doubt_sets_uncertainty_to_five(record: RunRecord) -> None:
    result = rescore(PLAIN, record, DEFAULT_POLICY)
    assert result.dimensions == score(PLAIN, DEFAULT_POLICY).dimensions._replace(uncertainty=5)


@pytest.mark.parametrize(
    ("text", "uncertainty", "cost"),
    [(PLAIN, 3, 3), ("改支付页面", 3, 5), ("做数据迁移", 3, 5), ("调研后改支付", 5, 5)],
)
def test_two_failures_add_two_up_to_five(text: str, uncertainty: int, cost: int) -> None:
    result = rescore(text, replace(CALM, failure_count=2), DEFAULT_POLICY)
    assert (result.dimensions.uncertainty, result.dimensions.failure_cost) == (uncertainty, cost)


def test_one_failure_adds_nothing() -> None:
    result = rescore(PLAIN, replace(CALM, failure_count=1), DEFAULT_POLICY)
    assert result.dimensions == score(PLAIN, DEFAULT_POLICY).dimensions


def test_failures_that_raise_the_cost_to_five_raise_the_risk() -> None:
    result = rescore("做数据迁移", replace(CALM, failure_count=2), DEFAULT_POLICY)
    assert result.risk_level is RiskLevel.HIGH
    assert result.complexity is Complexity.HIGH


def test_a_bad_run_of_a_simple_task_upgrades_it() -> None:
    record = RunRecord(
        actual_steps=7,
        estimated_steps=1,
        failure_count=2,
        unexpected_blockers=1,
        reported_domains=("legal", "payment"),
    )
    result = rescore(PLAIN, record, DEFAULT_POLICY)
    assert score(PLAIN, DEFAULT_POLICY).route is Route.DIRECT
    assert tuple(result.dimensions) == (5, 3, 5, 3, 1)
    assert result.total == 17
    assert result.route is Route.THREE_STEP


def test_a_slightly_longer_run_does_not_upgrade() -> None:
    result = rescore(PLAIN, RunRecord(actual_steps=3, estimated_steps=1), DEFAULT_POLICY)
    assert result.route is Route.DIRECT


def test_at_the_deepest_level_nothing_is_upgraded() -> None:
    record = RunRecord(actual_steps=9, failure_count=2, is_uncertain=True)
    text = "从零搭建一个带用户认证的电商系统"
    assert rescore(text, record, DEFAULT_POLICY, depth=2).route is Route.THREE_STEP
    assert rescore(text, record, DEFAULT_POLICY, depth=3).route is Route.LIGHT_PLAN


def test_the_record_shows_in_the_evidence() -> None:
    record = RunRecord(
        actual_steps=9,
        failure_count=2,
        unexpected_blockers=3,
        reported_domains=("astronomy",),
    )
    result = rescore(PLAIN, record, DEFAULT_POLICY)
    reasons = {evidence.reason: evidence for evidence in result.evidence}
    assert reasons["actual_steps"].count == 9
    assert reasons["failures"].count == 2
    assert reasons["blockers"].count == 3
    assert reasons["reported"].text == "astronomy"


@pytest.mark.parametrize("text", ["", "\x00", "\ud800"])
def test_a_record_is_enough_without_a_text(text: str) -> None:
    result = rescore(text, RunRecord(actual_steps=6, is_uncertain=True), DEFAULT_POLICY)
    assert tuple(result.dimensions) == (5, 1, 5, 1, 1)
