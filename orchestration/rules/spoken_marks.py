"""Marks of our own checks of what an agent says it did: ✓, ✗, or not checked and why.

A check is counted once: the same run is one mark however often it was claimed, and a file that is
there is said once.
Source: DESIGN section 8 ("Marks", "Independent verification"), source document 003.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.rules.test_guides import TEST_FILE
from orchestration.rules.tool_record import (
    INDEPENDENT_FAILED,
    INDEPENDENT_OK,
    MOST_MARKS,
    NONE,
    NOT_VERIFIED,
    OBSERVED,
    RERUN,
    SHOWN_COMMAND,
    mark,
    run_marks,
)

PROVEN, CONTRADICTED, UNVERIFIED = "proven", "contradicted", "unverified"
UNCHECKED: Mapping[str, str] = {
    "no_workspace": "not possible: this project has no workspace",
    "no_sandbox": "not possible: no sandbox for code that agents wrote",
    "outside": "%(path)s is outside of the workspace",
    "unreadable": "%(detail)s",
    "no_way": "nothing here says how to %(what)s",
    "tool_missing": "%(tool)s or a part of it is not installed here",
    "not_finished": "%(command)s: %(outcome)s",
    "no_tests": "%(command)s found no test",
    "environment": "%(command)s lacks something of this machine",
    "no_counts": "our run does not tell how many tests it ran",
}
"""Why a claim could not be checked, by its reason; each is a mark `unchecked_REASON` too."""


def unchecked(reason: str, **params: Any) -> dict[str, Any]:
    """Shape the finding of what could not be checked: never a pass, and it says why."""
    return {"verdict": UNVERIFIED, "reason": reason, "why": UNCHECKED[reason] % params,
            "params": params}  # fmt: skip


def marks_of_spoken(
    checks: Sequence[Mapping[str, Any]], *, path: str = "", words: str = "", others: str = ""
) -> list[dict[str, Any]]:
    """List the marks that checks of spoken claims earn on one output.

    Shape: `words` are what this output says and `others` what the other outputs say. A claim of a
    file belongs where it is named; builds and tests speak of the whole workspace.
    """
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for one in checks:
        if one["kind"] == "file" and not _is_of(one, path, words, others):
            continue
        made = _mark(one)
        key = _key(one, made)
        known = found.get(key)
        # Of two claims that one run proves, the one with a count says more.
        if known is None or (one["verdict"] == PROVEN and "passed" in made["params"]):
            found[key] = made
    return list(found.values())[:MOST_MARKS]


def _is_of(one: Mapping[str, Any], path: str, words: str, others: str) -> bool:
    named = str(one.get("path") or "")
    return named == path or named in words or named not in others


def _key(one: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[object, ...]:
    if one["verdict"] == PROVEN and one["argv"]:
        return (PROVEN, one["kind"], *one["argv"])
    return (made["code"], *map(str, made["params"].values()))


def _mark(one: Mapping[str, Any]) -> dict[str, Any]:
    """Make the mark of one check."""
    claim = " ".join(str(one["claim"]).split())[:SHOWN_COMMAND]
    kind, counts = one["kind"], one.get("counts")
    if one["verdict"] == UNVERIFIED:
        params = {name: str(held)[:SHOWN_COMMAND] for name, held in one["params"].items()}
        return mark(NOT_VERIFIED, f"unchecked_{one['reason']}", grade=NONE, claim=claim, **params)
    if one["verdict"] == CONTRADICTED:
        if kind == "test" and counts and one.get("is_count_wrong"):
            return mark(INDEPENDENT_FAILED, "count_contradicted", grade=RERUN, claim=claim,
                        passed=counts[0], failed=counts[1])  # fmt: skip
        if one["exit_code"] is not None:
            return mark(INDEPENDENT_FAILED, "claim_failed", grade=RERUN, claim=claim,
                        exit_code=one["exit_code"])  # fmt: skip
        return mark(INDEPENDENT_FAILED, "claim_contradicted", grade=RERUN, claim=claim)
    if kind == "file":
        return mark(INDEPENDENT_OK, "file_exists", grade=RERUN, path=one["path"])
    if kind == "build":
        return mark(INDEPENDENT_OK, "claim_builds", grade=RERUN)
    if counts:
        return mark(INDEPENDENT_OK, "claim_counted", grade=RERUN, passed=counts[0],
                    failed=counts[1])  # fmt: skip
    return mark(INDEPENDENT_OK, "claim_tests", grade=RERUN)


def fewer_marks(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the marks of runs that had fewer tests than an earlier run of the same command."""
    return [
        mark(
            INDEPENDENT_FAILED, "fewer_tests", grade=RERUN, now=one["total"], before=one["earlier"]
        )
        for one in runs
    ]


def own_tests_mark(names: Sequence[str]) -> list[dict[str, Any]]:
    """Mark a hand-in of code together with the tests of it: they may fit each other alone."""
    tests = [name for name in names if TEST_FILE.search(name)]
    if not tests or len(tests) == len(names):
        return []
    shown = ", ".join(dict.fromkeys(tests))[:SHOWN_COMMAND]
    return [mark(NOT_VERIFIED, "own_tests", grade=OBSERVED, paths=shown)]


def planned_marks(
    runs: Sequence[Mapping[str, Any]], checks: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """List the marks of planned commands, but for those that a proven claim stands for already."""
    said = {tuple(one["argv"]) for one in checks if one["verdict"] == PROVEN and one["argv"]}
    return run_marks([run for run in runs if not (run["ok"] and tuple(run["argv"]) in said)])
