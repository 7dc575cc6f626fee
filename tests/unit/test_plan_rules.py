"""Readings of a parsed plan: comparison, commands, risk, coverage."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.contracts.plan import Plan, parse_plan
from orchestration.errors import PlanInvalid
from orchestration.rules.dag import definition_hashes
from orchestration.rules.plan import (
    PlanComparison,
    compare_plans,
    constraints_in,
    criteria_in,
    highest_risk,
    planned_commands,
    require_coverage,
)
from orchestration.states import RiskLevel


def plan_of(*steps: dict[str, Any], **fields: Any) -> Plan:
    return parse_plan({"steps": [{"action": "work", **one} for one in steps], **fields})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, PlanComparison((), (), (), ())),
        ({"a": "1"}, {"a": "1"}, PlanComparison(("a",), (), (), ())),
        ({"a": "1"}, {"a": "2"}, PlanComparison((), ("a",), (), ())),
        ({"a": "1"}, {"b": "1"}, PlanComparison((), (), ("b",), ("a",))),
        (
            {"a": "1", "b": "2", "c": "3"},
            {"d": "4", "c": "3", "b": "9"},
            PlanComparison(("c",), ("b",), ("d",), ("a",)),
        ),
    ],
)
def test_plans_are_compared_by_key_and_hash(
    old: dict[str, str], new: dict[str, str], expected: PlanComparison
) -> None:
    assert compare_plans(old, new) == expected


def test_a_replan_keeps_what_a_change_does_not_reach() -> None:
    old = plan_of({"id": 1}, {"id": 2, "depends_on": [1]}, {"id": 3}, {"id": 4, "depends_on": [3]})
    new = plan_of({"id": 1}, {"id": 2, "depends_on": [1]}, {"id": 3, "run": ["make"]}, {"id": 5})
    found = compare_plans(definition_hashes(old), definition_hashes(new))
    assert found == PlanComparison(("1", "2"), ("3",), ("5",), ("4",))


def test_commands_are_listed_with_their_kind() -> None:
    plan = plan_of(
        {
            "id": 1,
            "run": ["make all"],
            "verify": ["make check"],
            "on_failure": {"fix": {"commands": ["make fix"]}},
        },
        {"id": 2},
        {"id": 3, "run": ["a", "b"], "on_failure": {"severity": "low"}},
    )
    found = [(one.step_id, one.kind, one.command.text) for one in planned_commands(plan)]
    assert found == [
        ("1", "run", "make all"),
        ("1", "verify", "make check"),
        ("1", "fix", "make fix"),
        ("3", "run", "a"),
        ("3", "run", "b"),
    ]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([None, None], RiskLevel.LOW),
        (["medium", None], RiskLevel.MEDIUM),
        (["low", "critical", "high"], RiskLevel.CRITICAL),
    ],
)
def test_the_highest_risk_counts(levels: list[str | None], expected: RiskLevel) -> None:
    plan = plan_of(*({"id": at, "risk_level": level} for at, level in enumerate(levels)))
    assert highest_risk(plan) is expected


def test_criteria_are_read_from_a_specification() -> None:
    assert criteria_in("AC-01 fast; AC-02: small, AC-01 again, MAC-03, AC-x") == ["AC-01", "AC-02"]


def test_a_plan_that_covers_its_specification_passes() -> None:
    plan = plan_of(
        {"id": 1, "action": "make AC-02 true", "verify": ["make check"]},
        {"id": 2, "verify": ["make more"], "covers": ["AC-03"]},
        test_cases=[{"id": "TC-01", "covers": ["AC-01"]}],
        metrics=[{"name": "p95", "constraint": "under 10 ms"}, {"name": "memory"}],
    )
    require_coverage(
        plan,
        criteria=["AC-01", "AC-02", "AC-03"],
        performance_constraints=["under 10 ms", "memory"],
    )


@pytest.mark.parametrize(
    ("metric", "missing"),
    [
        ({"name": "p95", "constraint": "PC-01: 95 % under 10 ms"}, ["PC-02"]),
        ({"name": "PC-02", "constraint": ""}, ["PC-01"]),
        ({"name": "PC-012"}, ["PC-01", "PC-02"]),
    ],
)
def test_a_named_performance_constraint_needs_a_metric_that_names_it(
    metric: dict[str, str], missing: list[str]
) -> None:
    named = constraints_in("PC-01 fast; PC-02: small, PC-01 again, XPC-03")
    assert named == ["PC-01", "PC-02"]
    plan = plan_of({"id": 1}, metrics=[metric])
    with pytest.raises(PlanInvalid) as refused:
        require_coverage(plan, criteria=[], performance_constraints=named)
    found = [name for one in refused.value.errors for name in constraints_in(one["message"])]
    assert found == missing
    both = plan_of({"id": 1}, metrics=[metric, {"name": "PC-01 and PC-02"}])
    require_coverage(both, criteria=[], performance_constraints=named)


def test_everything_that_is_not_covered_is_named() -> None:
    plan = plan_of({"id": 1, "action": "AC-01 without a check"}, {"id": 2, "verify": ["make"]})
    with pytest.raises(PlanInvalid) as caught:
        require_coverage(plan, criteria=["AC-01", "AC-02"], performance_constraints=["fast"])
    assert [one["message"].split()[0] for one in caught.value.errors] == ["AC-01", "AC-02", "the"]


def test_without_a_specification_nothing_is_asked() -> None:
    require_coverage(plan_of({"id": 1}), criteria=[])
