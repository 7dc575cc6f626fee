"""Texts of the greatest size allowed, made so that a careless pattern would not end for minutes."""

from __future__ import annotations

import json

import pytest

from orchestration.contracts.flow_results import QuestionRound, read_json_result
from orchestration.contracts.validation_text import MAX_CHARACTERS, parse_markdown
from orchestration.errors import Invalid
from orchestration.rules.contradictions import counts_in
from orchestration.rules.run_counts import TestCounts, read_counts

ASKED = json.dumps({"questions": [{"question": "Which?"}]})


def _filled(start: str, piece: str, end: str = "") -> str:
    """A text of the greatest size allowed."""
    count = (MAX_CHARACTERS - len(start) - len(end)) // len(piece)
    return start + piece * count + end


@pytest.mark.parametrize(
    "text",
    [
        _filled("```", "\n", "x"),
        _filled("```json", " ", "x"),
        _filled("```\n", "\n", "```x"),
        _filled("", "```\n"),
        "```",
        "```\n```",
        f"```json {ASKED}```",
        f"```json\n{ASKED}\n x```",
        f"```c++\n{ASKED}\n```",
    ],
)
def test_what_is_no_single_fence_is_no_json(text: str) -> None:
    with pytest.raises(Invalid, match="is no JSON"):
        read_json_result(QuestionRound, text, name="questions")


@pytest.mark.parametrize(
    "text",
    [
        ASKED,
        f"\ufeff{ASKED}",
        f"```\n{ASKED}\n```",
        f" \n```json \r\n{ASKED}\n  ``` \n",
        _filled(f"```json\n{ASKED}", "\n", "```"),
        _filled("```json", "\n", f"{ASKED}\n```"),
    ],
)
def test_result_is_read_bare_or_from_its_fence(text: str) -> None:
    assert read_json_result(QuestionRound, text, name="questions").questions[0].question == "Which?"


@pytest.mark.parametrize("label", ["裁定结果", "Verdict:**"])
@pytest.mark.parametrize("piece", [" ", "*", " *", "verdict "])
def test_label_without_a_verdict_is_refused(label: str, piece: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_markdown(_filled(label, piece, "x"))
    assert "names no verdict" in refused.value.errors[0]["message"]


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        ("reason", " "), ("reason", "\n"), ("原因", " *"), ("basis", "\n"), ("依据", " "),
        ("failure class", " "), ("failure class", "\n "), ("failed cases", " "),
        ("", "```xml"), ("", "failed case\n"), ("failed cases\n", "\n"), ("reason: TC-", "-TC-"),
        ("|", "| "),
    ],
)  # fmt: skip
def test_package_of_one_repeated_piece_is_read(start: str, piece: str) -> None:
    package = parse_markdown(_filled(f"Verdict: GO\n{start}", piece, "\u00e9"))
    assert (package.verdict, package.basis, package.junit) == ("GO", "", ())


@pytest.mark.parametrize(
    ("start", "piece"), [("", "- failed case\n"), ("-", " "), ("- TC-1 (", " ("), ("- ", "x")]
)
def test_list_of_failed_cases_of_any_length_is_no_go(start: str, piece: str) -> None:
    with pytest.raises(Invalid):
        parse_markdown(_filled(f"Verdict: GO\nfailed cases\n{start}", piece, "\u00e9"))


@pytest.mark.parametrize("piece", ["\n", "\r\n", "\n 1 ", " \n\t"])
def test_counts_below_a_long_run_of_blanks_are_read(piece: str) -> None:
    output = piece * 100_000 + "x"
    assert read_counts(output) is None
    assert read_counts(f"{output}\n Tests  2 failed, 5 passed\n") == TestCounts(5, 2)


def test_claimed_count_after_a_long_run_of_blanks_is_no_count() -> None:
    assert counts_in("pass" + " " * MAX_CHARACTERS + "x") is None
    assert counts_in("通过:" + "\n" * MAX_CHARACTERS + "8 个测试") is not None
