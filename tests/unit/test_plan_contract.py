"""The plan document: every fault at once, lenient for agents, strict for playbooks."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from orchestration.contracts.plan import MAX_PLAN_BYTES, MAX_STEPS, Plan, PlanStep, parse_plan
from orchestration.errors import PlanInvalid
from orchestration.states import RiskLevel, Severity

WHOLE: dict[str, Any] = {
    "title": "Check",
    "summary": "What it is about",
    "assumptions": ["the network is there"],
    "steps": [
        {
            "id": 1,
            "action": "分析需求",
            "depends_on": [],
            "phase": 1,
            "expected_artifacts": ["out/a.md", {"name": "Notes", "type": "document"}],
            "verify": ["test -f out/a.md", {"cmd": "make check", "timeout_seconds": 5}],
            "run": [{"argv": ["make", "all"], "cwd": "sub", "expect_exit_code": 1}],
            "on_failure": {
                "severity": "Medium",
                "fix": {"description": "mend it", "patch": "--- a\n", "commands": ["make fix"]},
            },
            "scope": ["src/**"],
            "writes": ["./out//b.md"],
            "risks": ["it may break", {"risk": "slow", "mitigation": "cache"}],
            "risk_level": "HIGH",
            "irreversible": True,
            "resources": ["git"],
            "role": "SubCoding",
            "estimate_minutes": 2.5,
            "delegate": False,
            "mood": "good",
        },
        {"id": "2a", "action": "b", "depends_on": [1, "1"]},
    ],
    "test_cases": [{"id": "TC-01", "covers": ["AC-01"]}],
    "rollback": ["git revert"],
    "metrics": [{"name": "p95", "constraint": "fast"}],
    "author": "an agent",
}


def faults(document: object, *, strict: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(PlanInvalid) as caught:
        parse_plan(document, strict=strict)
    return [(one["path"], one["message"]) for one in caught.value.errors]


def steps(*many: dict[str, Any]) -> dict[str, Any]:
    return {"steps": [{"action": "work", **one} for one in many]}


def test_a_whole_plan_is_read() -> None:
    plan = parse_plan(WHOLE)
    first, second = plan.steps
    assert (first.id, second.id, second.depends_on) == ("1", "2a", ("1",))
    assert [one.label for one in first.expected_artifacts] == ["out/a.md", "Notes"]
    assert first.written_paths == ("out/b.md", "out/a.md")
    assert first.risks == ("it may break", "slow; mitigation: cache")
    assert first.risk_level is RiskLevel.HIGH
    assert first.on_failure is not None
    assert first.on_failure.severity is Severity.MEDIUM
    assert [one.argv[0] for one in first.commands] == ["make", "test", "make", "make"]
    assert first.extra == {"mood": "good"}
    assert plan.extra == {"author": "an agent"}
    assert (second.phase, second.delegate, second.irreversible) == (None, True, False)
    assert plan.by_id["2a"] is second
    assert plan.graph == {"1": (), "2a": ("1",)}


def test_the_canonical_document_reads_back_as_the_same_plan() -> None:
    plan = parse_plan(WHOLE)
    document = plan.to_document()
    assert parse_plan(document) == plan
    assert Plan.from_stored(document) == plan
    assert parse_plan(document).to_document() == document


def test_reading_a_plan_leaves_the_document_alone() -> None:
    document = copy.deepcopy(WHOLE)
    parse_plan(document)
    assert document == WHOLE


def test_what_is_not_said_is_not_in_the_canonical_document() -> None:
    assert parse_plan(steps({"id": 1})).to_document() == {"steps": [{"id": "1", "action": "work"}]}


def test_null_lists_are_empty_ones() -> None:
    step = parse_plan(steps({"id": 1, "depends_on": None, "verify": None, "risks": None})).steps[0]
    assert (step.depends_on, step.verify, step.risks) == ((), (), ())


def test_every_fault_is_listed_at_once() -> None:
    found = faults(
        steps(
            {"id": 1, "depends_on": [1, 9], "phase": 0},
            {"id": "1", "irreversible": "yes"},
            {"id": 3, "depends_on": [4], "run": ["a | b"]},
            {"id": 4, "depends_on": [3], "phase": 1},
            {"id": 5, "phase": 2},
            {"id": 6, "phase": 1, "depends_on": [5], "expected_artifacts": ["../x", 3, {}]},
        )
    )
    said = {path for path, _ in found}
    assert said == {
        "steps.0.phase",
        "steps.0.depends_on.0",
        "steps.0.depends_on.1",
        "steps.1.id",
        "steps.1.irreversible",
        "steps.2.run.0",
        "steps.2.depends_on",
        "steps.5.depends_on",
        "steps.5.expected_artifacts.0.path",
        "steps.5.expected_artifacts.1",
        "steps.5.expected_artifacts.2",
    }


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        (None, "", "must be an object"),
        ([], "", "must be an object"),
        ("plan", "", "must be an object"),
        ({}, "steps", "is required"),
        ({"steps": None}, "steps", "must be a list"),
        ({"steps": {"1": {}}}, "steps", "must be a list"),
        ({"steps": []}, "steps", "has 0 steps"),
        ({"steps": ["one"]}, "steps.0", "must be an object"),
        ({"steps": [{"id": 1}]}, "steps.0.action", "is required"),
        ({"steps": [{"action": "x"}]}, "steps.0.id", "is required"),
        (steps({"id": True}), "steps.0.id", "must be text or a whole number"),
        (steps({"id": 1.5}), "steps.0.id", "must be text or a whole number"),
        (steps({"id": "  "}), "steps.0.id", "must be 1 to 64 printable characters"),
        (steps({"id": "x" * 65}), "steps.0.id", "must be 1 to 64 printable characters"),
        (steps({"id": "a\nb"}), "steps.0.id", "must be 1 to 64 printable characters"),
        (steps({"id": 1, "action": "  "}), "steps.0.action", "must not be empty"),
        (steps({"id": 1, "action": ["x"]}), "steps.0.action", "must be text"),
        (steps({"id": 1, "depends_on": "2"}), "steps.0.depends_on", "must be a list"),
        (steps({"id": 1, "phase": "1"}), "steps.0.phase", "must be a whole number"),
        (steps({"id": 1, "phase": True}), "steps.0.phase", "must be a whole number"),
        (steps({"id": 1, "phase": 10_001}), "steps.0.phase", "must be at most 10000"),
        (steps({"id": 1, "risk_level": "severe"}), "steps.0.risk_level", "must be one of"),
        (steps({"id": 1, "delegate": 1}), "steps.0.delegate", "must be true or false"),
        (steps({"id": 1, "estimate_minutes": "9"}), "steps.0.estimate_minutes", "a number"),
        (steps({"id": 1, "risks": [3]}), "steps.0.risks.0", "must be text"),
        (steps({"id": 1, "writes": ["/etc"]}), "steps.0.writes.0", "relative to the workspace"),
        (steps({"id": 1, "role": ""}), "steps.0.role", "must not be empty"),
        (
            steps({"id": 1, "on_failure": {"severity": "x"}}),
            "steps.0.on_failure.severity",
            "one of",
        ),
        (
            steps({"id": 1, "on_failure": {"fix": {"commands": ["a; b"]}}}),
            "steps.0.on_failure.fix.commands.0",
            "without one",
        ),
        (steps({"id": 1, "action": "a\x00b"}), "steps.0.action", "NUL"),
        (steps({"id": 1, "action": "a\ud800b"}), "steps.0.action", "surrogate"),
        (steps({"id": 1, "note": float("nan")}), "steps.0.note", "finite"),
    ],
)
def test_a_wrong_value_is_named(document: object, path: str, said: str) -> None:
    found = faults(document)
    assert [one for one, _ in found] == [path]
    assert said in found[0][1]


def test_a_cycle_is_named_step_by_step() -> None:
    found = faults(
        steps(
            {"id": "a", "depends_on": ["b"]},
            {"id": "b", "depends_on": ["c"]},
            {"id": "c", "depends_on": ["a"]},
            {"id": "d", "depends_on": ["a"]},
        )
    )
    message = "the steps depend on each other in a cycle: a → b → c → a"
    assert found == [("steps.0.depends_on", message)]


def test_each_of_two_cycles_is_named() -> None:
    pairs = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    found = faults(steps(*({"id": one, "depends_on": [other]} for one, other in pairs)))
    assert [message[-9:] for _, message in found] == ["a → b → a", "c → d → c"]


def test_a_step_without_a_phase_inherits_one_before_phases_are_compared() -> None:
    chain = ({"id": 1, "phase": 3}, {"id": 2, "depends_on": [1]})
    assert parse_plan(steps(*chain)).steps
    found = faults(steps(*chain, {"id": 3, "depends_on": [2], "phase": 2}))
    assert found == [
        ("steps.2.depends_on", "step '3' of phase 2 depends on '2' of the later phase 3")
    ]


@pytest.mark.parametrize(
    "path",
    [
        "author",
        "steps.0.mood",
        "steps.0.verify.0.shell",
        "steps.0.run.0.env",
        "steps.0.expected_artifacts.0.size",
        "steps.0.on_failure.when",
        "steps.0.on_failure.fix.who",
    ],
)
def test_a_playbook_may_not_have_an_unknown_key(path: str) -> None:
    document: dict[str, Any] = steps(
        {
            "id": 1,
            "verify": [{"cmd": "make"}],
            "run": [{"argv": ["make"]}],
            "expected_artifacts": [{"path": "x"}],
            "on_failure": {"fix": {"description": "d"}},
        }
    )
    assert parse_plan(document, strict=True).extra == {}
    place: Any = document
    *parents, key = path.split(".")
    for part in parents:
        place = place[int(part)] if part.isdigit() else place[part]
    place[key] = 1
    assert parse_plan(document).steps
    assert faults(document, strict=True) == [(path, f"unknown key {key!r}")]


def test_a_playbook_may_not_bring_extra() -> None:
    assert faults(steps({"id": 1, "extra": {}}), strict=True)[0][0] == "steps.0.extra"


def test_ten_thousand_steps_are_the_most() -> None:
    chain = [{"id": at, "depends_on": [at - 1] if at else []} for at in range(MAX_STEPS)]
    plan = parse_plan(steps(*chain))
    assert len(plan.steps) == MAX_STEPS
    found = faults(steps(*chain, {"id": "more"}))
    assert [path for path, _ in found] == ["steps"]
    assert found[0][1] == "has 10001 steps; a plan has 1 to 10000"


def test_a_cycle_through_ten_thousand_steps_is_found() -> None:
    ring = [{"id": at, "depends_on": [(at + 1) % MAX_STEPS]} for at in range(MAX_STEPS)]
    found = faults(steps(*ring))
    assert len(found) == 1
    assert found[0][1].count("→") == MAX_STEPS


def test_eight_megabytes_are_the_most() -> None:
    text = "x" * (MAX_PLAN_BYTES - 100)
    assert len(parse_plan(steps({"id": 1, "action": text})).steps[0].action) == len(text)
    found = faults(steps({"id": 1, "action": text + "界" * 100}))
    assert [path for path, _ in found] == [""]
    assert f"at most {MAX_PLAN_BYTES}" in found[0][1]


def test_random_graphs_are_plans_exactly_when_no_cycle_was_planted() -> None:
    chosen = random.Random(7)
    for _ in range(150):
        size = chosen.randrange(2, 30)
        edges = {at: {chosen.randrange(at) for _ in range(min(at, 3))} for at in range(size)}
        is_planted = chosen.random() < 0.5
        low, high = sorted(chosen.sample(range(size), 2))
        edges[high].add(low)
        edges[low] |= {high} if is_planted else set()
        order = chosen.sample(range(size), size)
        document = steps(*({"id": at, "depends_on": sorted(edges[at])} for at in order))
        assert names_a_cycle(document) == is_planted


def names_a_cycle(document: dict[str, Any]) -> bool:
    try:
        parse_plan(document)
    except PlanInvalid as invalid:
        return any("cycle" in one["message"] for one in invalid.errors)
    return False


def test_a_step_cannot_be_changed() -> None:
    step = PlanStep(id="1", action="a")
    with pytest.raises(ValueError, match="frozen"):
        step.action = "b"
