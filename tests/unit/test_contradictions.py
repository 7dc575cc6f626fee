"""L2 logic: what is said against what the record shows. CASES A-01, A-10, A-11."""

from __future__ import annotations

import pytest

from orchestration.rules.contradictions import (
    Counts,
    claims_to_pass,
    contradictions,
    counts_in,
    inconsistencies,
)
from orchestration.rules.tool_record import OBSERVED, Call, Check


def ran(command: str, *, code: int | None = 0, tail: str = "") -> Call:
    return Call("1", "Bash", command, "failed" if code else "ok", code, tail, OBSERVED)


@pytest.mark.parametrize(
    "text",
    ["测试通过", "所有测试都通过了", "All tests pass.", "the unit tests are passing", "12 passed"],
)
def test_claims_of_passing_tests_are_read_in_both_languages(text: str) -> None:
    assert claims_to_pass(text, Check.TESTS)
    assert contradictions([text], [ran("pytest -q", code=3)])


@pytest.mark.parametrize(
    "text", ["测试未通过", "make the tests pass", "tests were not run", "没有测试"]
)
def test_other_sentences_claim_nothing(text: str) -> None:
    assert contradictions([text], [ran("pytest -q", code=1)]) == []


def test_build_that_failed_contradicts_the_claim_that_it_compiles() -> None:
    [found] = contradictions(["写好了，编译通过"], [ran("go build ./...", code=1)])
    assert "exit 1" in found.why


def test_newest_run_counts() -> None:
    calls = [ran("pytest -q", code=1), ran("pytest -q", tail="3 passed in 0.1s")]
    assert contradictions(["tests pass"], calls) == []


def test_piped_failure_is_no_evidence_either_way() -> None:
    assert contradictions(["tests pass"], [ran("pytest -q | tail -1", code=1)]) == []


def test_no_record_contradicts_nothing() -> None:
    assert contradictions(["tests pass"], []) == []


def test_claimed_count_must_be_the_count_of_the_run() -> None:
    run = ran("pytest -q", tail="4985 passed, 7 failed in 9s", code=None)
    assert contradictions(["4992 passed"], [run])
    assert contradictions(["4985 passed"], [run])  # and nothing is said of the seven
    assert contradictions(["4985 passed, 7 failed"], [run]) == []


def test_fewer_tests_than_in_an_earlier_run_are_flagged() -> None:
    calls = [ran("pytest -q", tail="40 passed"), ran("pytest -q", tail="31 passed")]
    [found] = contradictions(["all tests pass"], calls)
    assert "31 tests ran, 40" in found.why


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("=== 12 passed, 3 failed in 1.2s ===", Counts(12, 3)),
        ("Ran 7 tests in 0.1s\n\nFAILED (failures=2)", Counts(7, 0)),
        ("Tests: 2 failed, 9 passed", Counts(9, 2)),
        ("nothing", None),
    ],
)
def test_counts_are_read_from_the_output(output: str, counts: Counts | None) -> None:
    assert counts_in(output) == counts


def test_claims_must_hold_together() -> None:
    twice = [
        {"claim": "P99 is 500 ms", "confidence": "verified"},
        {"claim": "P99  is 500 MS", "confidence": "uncertain"},
    ]
    assert len(inconsistencies(twice, "review")) == 1
    fails = [{"claim": "the tests still fail", "confidence": "verified"}]
    assert inconsistencies(fails, "review")
    assert inconsistencies(fails, "failed") == []
