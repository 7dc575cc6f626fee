"""The twelve profiles and the spawn matrix, as the full product."""

from __future__ import annotations

import itertools

import pytest

from orchestration.rules.profiles import PROFILES, known_roles, may_spawn

TDD = {"TddRunAndFix", "TddTestAndFix", "TddTestDesign", "TddTestPrepare"}
MATRIX = {
    "StrictPlan": {"QuickExplore", "SubCoding"},
    "StrictSpec": {"Requirement", "DesignAgent", "TaskPlan", "SubCoding"},
    "SubCoding": {"QuickExplore"} | TDD,
}
LAYERS = {
    0: {"StrictPlan", "StrictSpec"},
    1: {"Requirement", "DesignAgent", "TaskPlan", "SubCoding"},
    2: {"QuickExplore", "TaskCheck"} | TDD,
}


def test_there_are_twelve_in_three_layers() -> None:
    assert len(known_roles()) == 12
    for layer, names in LAYERS.items():
        assert {one.name for one in PROFILES.values() if one.layer == layer} == names
    assert {one.name for one in PROFILES.values() if one.read_only} == {"QuickExplore"}


@pytest.mark.parametrize(
    ("parent", "child"), list(itertools.product(sorted(known_roles()), repeat=2))
)
def test_the_matrix_decides(parent: str, child: str) -> None:
    assert may_spawn(parent, child) == (child in MATRIX.get(parent, set()))


@pytest.mark.parametrize("child", sorted(known_roles()))
def test_the_policy_can_forbid_subcoding_to_spawn(child: str) -> None:
    assert not may_spawn("SubCoding", child, subcoding_may_spawn=False)
    assert may_spawn("StrictPlan", "SubCoding", subcoding_may_spawn=False)


@pytest.mark.parametrize(
    ("parent", "child", "allowed"),
    [
        (None, None, True),
        (None, "SubCoding", False),
        ("StrictPlan", None, False),
        ("Boss", "SubCoding", False),
        ("StrictPlan", "Boss", False),
        ("strictplan", "SubCoding", False),
    ],
)
def test_tasks_without_a_role_and_unknown_roles(
    parent: str | None, child: str | None, *, allowed: bool
) -> None:
    assert may_spawn(parent, child) == allowed
