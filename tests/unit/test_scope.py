"""Scopes (rule 14): paths are compared, free text is not, nothing climbs out."""

from __future__ import annotations

import itertools

import pytest

from orchestration.contracts.plan import PlanStep
from orchestration.errors import WorkspaceError
from orchestration.rules.scope import (
    is_path,
    outside_scope,
    proper_subset,
    scope_of_step,
    scope_paths,
    within_scope,
)


@pytest.mark.parametrize(
    "entry",
    ["src", "src/", "a.py", "src/**", "*.md", "文档/终稿", "终稿.md", "Makefile", ".", "a-b_c"],
)
def test_paths_are_told_from_free_text(entry: str) -> None:
    assert is_path(entry)


@pytest.mark.parametrize("entry", ["only the backend", "只改后端", "no new tables", ""])
def test_free_text_is_no_path(entry: str) -> None:
    assert not is_path(entry)


@pytest.mark.parametrize(
    ("paths", "scope", "expected"),
    [
        (["src/a.py"], ["src"], True),
        (["src/a.py"], ["src/"], True),
        (["src/a.py"], ["src/**"], True),
        (["./src//a.py"], ["src"], True),
        (["src"], ["src/a.py"], False),
        (["srcs/a.py"], ["src"], False),
        (["src/a.py", "docs/b"], ["src"], False),
        (["src/a.py", "docs/b"], ["src", "docs"], True),
        (["src/deep/a.py"], ["src/*"], True),
        (["src/a.py"], ["src/*.py"], True),
        (["src/deep/a.py"], ["src/*.py"], False),
        (["src/deep/a.py"], ["src/**/*.py"], True),
        (["src/a.py"], ["src/**/*.py"], True),
        (["src/a.txt"], ["src/**/*.py"], False),
        (["src/ab.py"], ["src/a?.py"], True),
        (["src/abc.py"], ["src/a?.py"], False),
        (["src/a*.py"], ["src/a?.py"], False),
        (["src/**"], ["src/*"], False),
        (["src/*"], ["src/**"], True),
        (["src/**/x.py"], ["src/*/x.py"], False),
        (["anything"], [], True),
        (["anything"], ["only the backend"], True),
        (["anything"], ["."], True),
        (["anything/at/all"], ["**"], True),
        (["."], ["src"], False),
        ([], ["src"], True),
        (["do it well"], ["src"], True),
        (["Src/a"], ["src"], False),
    ],
)
def test_containment(paths: list[str], scope: list[str], *, expected: bool) -> None:
    assert within_scope(paths, scope) == expected
    assert (outside_scope(paths, scope) == []) == expected


def test_paths_outside_are_named() -> None:
    assert outside_scope(["a/x", "b/y", "c"], ["a"]) == ["b/y", "c"]


@pytest.mark.parametrize(
    ("child", "parent", "expected"),
    [
        (["src/a.py"], ["src"], True),
        (["src"], ["src"], False),
        (["src/**"], ["src"], False),
        (["./src/"], ["src"], False),
        (["src", "docs"], ["src"], False),
        (["src"], ["src", "docs"], True),
        (["src", "docs"], ["docs", "src"], False),
        (["src"], [], True),
        (["."], [], False),
        ([], ["src"], False),
        ([], [], False),
        (["only the parser"], ["src"], True),
        (["only the parser"], [], True),
        (["lib/x"], ["src"], False),
    ],
)
def test_a_spawned_scope_is_strictly_smaller(
    child: list[str], parent: list[str], *, expected: bool
) -> None:
    assert proper_subset(child, parent) == expected


def test_proper_subset_is_a_strict_order() -> None:
    scopes = [["a"], ["a/b"], ["a/b", "a/c"], ["a/*.py"], ["b"], ["a", "b"], ["a/b/c"]]
    for one in scopes:
        assert not proper_subset(one, one)
    for one, other in itertools.permutations(scopes, 2):
        assert not (proper_subset(one, other) and proper_subset(other, one))
    for one, other, third in itertools.permutations(scopes, 3):
        if proper_subset(one, other) and proper_subset(other, third):
            assert proper_subset(one, third)


@pytest.mark.parametrize("entry", ["../x", "a/../../b", "/etc", "a/..", "..", "/"])
def test_a_scope_that_climbs_out_is_refused_by_name(entry: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        scope_paths(["src", entry])
    assert [one["path"] for one in caught.value.errors] == ["scope.1"]
    with pytest.raises(WorkspaceError):
        within_scope([entry], ["src"])
    with pytest.raises(WorkspaceError):
        proper_subset(["src"], [entry])


def test_paths_are_normalised_once() -> None:
    assert scope_paths(["./a/", "a", "a/**", "words here", "b//c"]) == ("a", "b/c")


def test_a_hostile_glob_ends() -> None:
    entry = "a/" + "*a" * 400 + "b"
    assert not within_scope(["a/" + "a" * 900], [entry])
    assert not within_scope(["/".join("a" * 400)], ["**/a/" * 150 + "b"])


def test_a_steps_scope_defaults_to_what_it_writes() -> None:
    step = PlanStep.model_validate(
        {"id": 1, "action": "x", "writes": ["a/"], "expected_artifacts": ["b.md", {"name": "N"}]}
    )
    assert scope_of_step(step) == ("a", "b.md")
    declared = step.model_copy(update={"scope": ("src",)})
    assert scope_of_step(declared) == ("src",)
