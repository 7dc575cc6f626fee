"""The audit by rules: five checks, and what sends a plan back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from orchestration.contracts.plan import parse_plan
from orchestration.contracts.results import AuditorResult, parse_document
from orchestration.policy import Commands
from orchestration.rules.listed_steps import plan_from_message
from orchestration.rules.plan_audit import (
    AuditOutcome,
    CheckName,
    Level,
    audit_plan,
    is_allowed,
)
from orchestration.rules.profiles import known_roles
from orchestration.states import AuditVerdict

TOOLS = frozenset({"python", "make", "git", "rm", "psql", "kubectl", "dd"})
PATCH = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


def audit(
    *steps: dict[str, Any], planner: str = "external", allow: Sequence[Sequence[str]] = ()
) -> AuditOutcome:
    """Audit steps that are complete but for what a test says."""
    whole = [
        {"action": f"work {one['id']}", "expected_artifacts": [f"out/{one['id']}"], **one}
        for one in steps
    ]
    return audit_plan(
        parse_plan({"steps": whole}),
        policy_allow=allow,
        known_roles=known_roles(),
        tools_available=TOOLS.__contains__,
        planner=planner,
    )


def codes(outcome: AuditOutcome, level: Level) -> list[str]:
    return [one.code for one in outcome.findings if one.level is level]


def test_a_sound_plan_is_approved() -> None:
    outcome = audit(
        {"id": 1, "role": "SubCoding", "resources": ["git"], "estimate_minutes": 30},
        {"id": 2, "depends_on": [1], "run": ["make all"], "irreversible": True, "risks": ["no"]},
        allow=[["make"]],
    )
    assert outcome.verdict is AuditVerdict.APPROVED
    assert outcome.findings == ()
    document = outcome.to_document()
    assert [one["name"] for one in document["checks"]] == [
        "completeness",
        "dependencies",
        "risk",
        "resources",
        "time",
    ]
    assert all(one["ok"] for one in document["checks"])


@pytest.mark.parametrize(
    ("step", "check", "code"),
    [
        ({"irreversible": True}, "risk", "irreversible_unflagged"),
        ({"irreversible": True, "risk_level": "low"}, "risk", "irreversible_unflagged"),
        ({"run": ["rm -rf data"]}, "risk", "destructive_unflagged"),
        ({"run": ["rm -v -R data"]}, "risk", "destructive_unflagged"),
        ({"run": ["git push origin main --force"]}, "risk", "destructive_unflagged"),
        ({"run": ["psql -c 'DROP TABLE users'"]}, "risk", "destructive_unflagged"),
        ({"run": ["kubectl delete pod x"]}, "risk", "destructive_unflagged"),
        ({"run": ["dd if=a of=b"]}, "risk", "destructive_unflagged"),
        (
            {"on_failure": {"fix": {"commands": ["git reset --hard"]}}},
            "risk",
            "destructive_unflagged",
        ),
        ({"role": "Boss"}, "resources", "unknown_role"),
        ({"role": "subcoding"}, "resources", "unknown_role"),
        ({"estimate_minutes": 0}, "time", "time_not_positive"),
        ({"estimate_minutes": -3}, "time", "time_not_positive"),
        ({"estimate_minutes": 43_201}, "time", "time_too_long"),
        (
            {"expected_artifacts": [], "risk_level": "high"},
            "completeness",
            "risky_without_check",
        ),
        (
            {"expected_artifacts": [], "irreversible": True, "risks": ["x"]},
            "completeness",
            "risky_without_check",
        ),
    ],
)
def test_what_sends_a_plan_back(step: dict[str, Any], check: str, code: str) -> None:
    outcome = audit({"id": "a"}, {"id": "b", **step})
    assert outcome.verdict is AuditVerdict.NEEDS_REVISION
    assert codes(outcome, Level.REVISE) == [code]
    failed = [one for one in outcome.to_document()["checks"] if not one["ok"]]
    assert [one["name"] for one in failed] == [check]
    assert "step b" in failed[0]["finding"]


@pytest.mark.parametrize(
    "step",
    [
        {"irreversible": True, "risks": ["data may be lost; back up first"]},
        {"irreversible": True, "risk_level": "medium"},
        {"run": ["rm -rf data"], "risks": ["data is gone"]},
        {"run": ["rm out.txt"]},
        {"run": ["git push origin main"]},
        {"estimate_minutes": 43_200},
        {"estimate_minutes": 0.5},
        {"expected_artifacts": [], "verify": ["make check"], "risk_level": "critical"},
        {"role": "TaskCheck"},
    ],
)
def test_what_does_not(step: dict[str, Any]) -> None:
    assert codes(audit({"id": "a"}, {"id": "b", **step}), Level.REVISE) == []


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([{"id": 1, "expected_artifacts": []}, {"id": 2}], "missing_artifacts"),
        ([{"id": 1, "depend_on": [2]}, {"id": 2}], "unknown_fields"),
        ([{"id": 1, "action": "Do it"}, {"id": 2, "action": "do  IT"}], "repeated_step"),
        ([{"id": 1, "resources": ["quantum computer"]}, {"id": 2}], "missing_tool"),
        ([{"id": 1, "run": ["cargo build"]}, {"id": 2}], "missing_tool"),
        ([{"id": 1, "on_failure": {"fix": {"patch": "words"}}}, {"id": 2}], "unreadable_patch"),
        ([{"id": 1}], "single_step"),
    ],
)
def test_what_is_only_suggested(steps: list[dict[str, Any]], code: str) -> None:
    outcome = audit(*steps)
    assert outcome.verdict is AuditVerdict.APPROVED_WITH_SUGGESTIONS
    assert codes(outcome, Level.SUGGEST) == [code]
    assert "step" in outcome.suggestions[0]


TASK = "Build the shop, with sign-in"


@pytest.mark.parametrize(
    ("first", "is_found"),
    [
        ({"action": "build the SHOP with “sign in”"}, True),
        ({"action": "First read the rest, then: Build the shop, with sign-in!"}, True),
        ({"action": "Build the shop"}, False),
        ({"action": TASK, "delegate": False}, False),
        ({"action": TASK, "run": ["make"]}, False),
    ],
)
def test_a_step_that_says_all_of_its_task_is_pointed_out(
    first: dict[str, Any], *, is_found: bool
) -> None:
    steps = [{"id": 1, "expected_artifacts": ["a"], **first},
             {"id": 2, "action": "look", "expected_artifacts": ["b"]}]  # fmt: skip
    outcome = audit_plan(
        parse_plan({"steps": steps}), policy_allow=(), known_roles=known_roles(),
        tools_available=lambda _: True, planner="external", task_text=TASK,
    )  # fmt: skip
    found = [one.steps for one in outcome.findings if one.code == "whole_task"]
    assert found == [("1",)] * is_found
    assert outcome.verdict is not AuditVerdict.NEEDS_REVISION


def test_a_readable_patch_and_a_built_tool_need_no_word() -> None:
    outcome = audit(
        {"id": 1, "on_failure": {"fix": {"patch": PATCH}}},
        {"id": 2, "run": ["./build/tool --check"]},
        allow=[["./build/tool"]],
    )
    assert outcome.findings == ()


def test_commands_outside_the_list_are_only_noted() -> None:
    outcome = audit({"id": 1, "run": ["make"]}, {"id": 2, "verify": ["python x"]}, allow=[["make"]])
    assert outcome.verdict is AuditVerdict.APPROVED_WITH_SUGGESTIONS
    assert [(one.code, one.level, one.steps) for one in outcome.findings] == [
        ("commands_to_approve", Level.NOTE, ("2",))
    ]
    assert all(one["ok"] for one in outcome.to_document()["checks"])


@pytest.mark.parametrize(
    ("edges", "is_ordered"),
    [
        ({"a": [], "b": []}, False),
        ({"a": [], "b": ["a"]}, True),
        ({"b": ["a"], "a": []}, True),
        ({"a": [], "x": ["a"], "b": ["x"]}, True),
        ({"x": [], "a": ["x"], "b": ["x"]}, False),
    ],
)
def test_two_writers_of_one_path_need_an_order(
    edges: dict[str, list[str]], *, is_ordered: bool
) -> None:
    steps = [
        {"id": key, "depends_on": needed, "writes": ["./same//file"] if key in "ab" else []}
        for key, needed in edges.items()
    ]
    outcome = audit(*steps)
    assert ("same_path" not in codes(outcome, Level.REVISE)) == is_ordered
    assert (outcome.verdict is AuditVerdict.NEEDS_REVISION) != is_ordered


def test_three_writers_are_compared_through_the_middle_one() -> None:
    ordered = audit(
        {"id": 1, "writes": ["f"]},
        {"id": 2, "writes": ["f"], "depends_on": [1]},
        {"id": 3, "expected_artifacts": ["f"], "depends_on": [2]},
    )
    assert codes(ordered, Level.REVISE) == []
    forked = audit(
        {"id": 1, "writes": ["f"]},
        {"id": 2, "writes": ["f"], "depends_on": [1]},
        {"id": 3, "expected_artifacts": ["f"], "depends_on": [1]},
    )
    (finding,) = forked.findings
    assert (finding.code, set(finding.steps)) == ("same_path", {"2", "3"})
    assert "'f'" in finding.text


def chain(length: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"id": at, "depends_on": [at - 1] if at > 1 else [], **fields}
        for at in range(1, length + 1)
    ]


@pytest.mark.parametrize(("length", "is_long"), [(8, False), (9, True), (30, True)])
def test_more_than_seven_hand_overs_are_over_splitting(length: int, *, is_long: bool) -> None:
    outcome = audit(*chain(length))
    assert ("long_chain" in codes(outcome, Level.SUGGEST)) == is_long
    assert [one.steps for one in outcome.findings] == [(str(length),)] * is_long


def test_a_merge_starts_the_count_again() -> None:
    left = chain(6)
    merged: list[dict[str, Any]] = [{"id": "other"}, {"id": "merge", "depends_on": [6, "other"]}]
    right = [{"id": f"r{at}", "depends_on": [f"r{at - 1}" if at else "merge"]} for at in range(7)]
    assert audit(*left, *merged, *right).findings == ()
    more = {"id": "r7", "depends_on": ["r6"]}
    assert [one.code for one in audit(*left, *merged, *right, more).findings] == ["long_chain"]


def test_a_chain_of_commands_does_not_drift() -> None:
    assert audit(*chain(200, run=["make"]), allow=[["make"]]).findings == ()


def test_estimates_add_up_along_the_longest_way_only() -> None:
    month = 30 * 24 * 60
    parallel = [{"id": at, "estimate_minutes": month} for at in range(5)]
    assert codes(audit(*parallel), Level.REVISE) == []
    following = {"id": "end", "depends_on": [0], "estimate_minutes": 1}
    outcome = audit(*parallel, following)
    assert codes(outcome, Level.REVISE) == ["plan_too_long"]
    assert outcome.findings[0].steps == ("end",)


PLAYBOOK_STEPS: list[dict[str, Any]] = [
    {"id": "inventory", "run": ["python -m inventory"], "expected_artifacts": ["out/list.txt"]},
    {"id": "clean", "run": ["rm -rf build"], "expected_artifacts": []},
    {
        "id": "tests",
        "depends_on": ["clean"],
        "run": ["python -m pytest"],
        "expected_artifacts": [],
        "on_failure": {"severity": "medium", "fix": {"patch": PATCH}},
    },
    {"id": "report", "depends_on": ["inventory", "tests"], "run": ["python -m report"]},
]


def test_a_playbook_is_not_sent_back_for_its_trusted_commands() -> None:
    outcome = audit(*PLAYBOOK_STEPS, planner="playbook")
    assert codes(outcome, Level.REVISE) == []
    assert codes(outcome, Level.NOTE) == ["destructive_unflagged"]
    assert codes(audit(*PLAYBOOK_STEPS), Level.REVISE) == ["destructive_unflagged"]


@pytest.mark.parametrize(
    "message",
    [
        "1. 删除旧数据\n2. 导入新数据\n3. 写报告",
        "- write a.py\n- test a.py\n- finally write report.md",
        "先清洗数据，然后训练模型，最后写报告",
        "\n".join(f"{at}. do part {at}" for at in range(1, 60)),
    ],
)
def test_a_message_planned_by_rules_is_never_sent_back(message: str) -> None:
    document = plan_from_message(message)
    outcome = audit_plan(
        parse_plan(document),
        policy_allow=(),
        known_roles=known_roles(),
        tools_available=TOOLS.__contains__,
        planner="rules",
    )
    assert outcome.verdict is AuditVerdict.APPROVED_WITH_SUGGESTIONS
    assert codes(outcome, Level.NOTE) == ["missing_artifacts"]


def test_the_document_is_an_auditors_result() -> None:
    outcome = audit({"id": 1, "irreversible": True}, {"id": 2, "expected_artifacts": []})
    result = parse_document(AuditorResult, outcome.to_document())
    assert result.verdict is AuditVerdict.NEEDS_REVISION
    assert [one.name for one in result.checks] == [str(name) for name in CheckName]
    assert result.suggestions == outcome.suggestions


def test_many_steps_are_named_shortly_and_kept_whole() -> None:
    outcome = audit(*({"id": at, "irreversible": True} for at in range(1, 31)))
    (finding,) = outcome.findings
    assert "steps 1, 2, 3, 4, 5 and 25 more" in finding.text
    assert len(finding.steps) == 30


def test_thousands_of_shared_paths_are_audited() -> None:
    steps = [
        {"id": at, "writes": [f"f{at % 50}"], "depends_on": [at - 1] if at > 0 else []}
        for at in range(3_000)
    ]
    assert codes(audit(*steps), Level.REVISE) == []
    steps[1_500]["depends_on"] = []
    assert codes(audit(*steps), Level.REVISE) == ["same_path"] * 50


ALLOW = [["make", "test"], ["python", "-m", "pytest"], []]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["make", "test"], True),
        (["make", "test", "-j2"], True),
        (["make"], False),
        (["make", "tests"], False),
        (["make", "all"], False),
        (["python", "-m", "pytest", "x"], True),
        (["/usr/bin/make", "test"], False),
        (["sh", "-c", "make test"], False),
        ([], False),
    ],
)
def test_the_allow_list_compares_argument_by_argument(argv: list[str], *, expected: bool) -> None:
    assert is_allowed(argv, ALLOW) == expected
    policy = Commands.model_validate({"allow": [one for one in ALLOW if one]})
    assert policy.allows(argv) == expected
