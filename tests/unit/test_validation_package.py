"""Packages as documents: JSON, Markdown in both languages, JUnit reports."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.contracts.junit import read_junit
from orchestration.contracts.loop import FailureClass, Verdict
from orchestration.contracts.validation import parse_package
from orchestration.contracts.validation_text import parse_markdown, render_package
from orchestration.errors import Invalid

JUNIT = (
    '<?xml version="1.0" encoding="utf-16"?><testsuites><testsuite name="unit">'
    '<testcase classname="a" name="one"/><testcase classname="a" name="two">'
    "<failure message='boom'>trace &amp; tail</failure></testcase>"
    '<testcase name="three"><skipped/></testcase><testcase name="four"><error/></testcase>'
    "</testsuite></testsuites>"
)


@pytest.mark.parametrize(
    ("text", "verdict", "cause", "cases"),
    [
        ("裁定: NO-GO\n原因: 登录超时", "NO-GO", "登录超时", []),
        ("裁定：GO", "GO", "", []),
        ("**Verdict:** NO-GO\n**Reason:** TC-A-1 failed", "NO-GO", "TC-A-1 failed", ["TC-A-1"]),
        ("Verdict: INDETERMINATE\nroot cause: no network", "INDETERMINATE", "no network", []),
        (
            "Verdict: NO-GO\n\n## Failed cases\n\n- `TC-1` (AC-01): red\n- TC-2\n",
            "NO-GO", "TC-1, TC-2 failed", ["TC-1", "TC-2"],
        ),
        ("裁定: NO-GO\n失败用例: TC-7、TC-8", "NO-GO", "TC-7, TC-8 failed", ["TC-7", "TC-8"]),
        ("...裁定: NO-GO... 原因: TC-AUTH-001 失败...", "NO-GO", "TC-AUTH-001 failed",
         ["TC-AUTH-001"]),
    ],
)  # fmt: skip
def test_markdown_is_read_in_both_languages(
    text: str, verdict: str, cause: str, cases: list[str]
) -> None:
    package = parse_markdown(text)
    assert (package.verdict, package.cause) == (verdict, cause)
    assert [one.id for one in package.failed_cases] == cases


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_rendered_package_reads_back_the_same(language: str) -> None:
    package = parse_package(
        {
            "verdict": "no_go", "basis": "run 7", "failure_class": "check_failed",
            "failed_cases": [{"id": "TC-1", "ac": "AC-01", "output_tail": "a | b\nc"}],
            "summary": [{"category": "集成", "status": "FAILED", "figure": "1|2"}],
        }
    )  # fmt: skip
    again = parse_markdown(render_package(package, language))
    assert again.verdict is Verdict.NO_GO
    assert again.cause == "Integration test failed: TC-1"
    assert again.failure_class is FailureClass.CHECK_FAILED
    assert [(one.id, one.ac) for one in again.failed_cases] == [("TC-1", "AC-01")]
    assert [(one.category, one.status) for one in again.summary] == [("integration", "FAILED")]


def test_junit_is_counted_case_by_case() -> None:
    report = read_junit(JUNIT)
    assert report.figure == "1 passed, 2 failed, 1 skipped"
    assert [(one.id, one.output_tail) for one in report.failed] == [
        ("a.two", "boomtrace & tail"), ("four", ""),
    ]  # fmt: skip


BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><testsuite name="&b;"/>'
OUTSIDE = '<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>'


@pytest.mark.parametrize("text", [BOMB, OUTSIDE, "<a/>", "<testsuite>", "", "<a>" * 5000])
def test_what_is_no_plain_junit_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"document type|well-formed|no JUnit|deeply"):
        read_junit(text)


def test_a_failing_report_makes_a_go_a_fault() -> None:
    with pytest.raises(Invalid) as refused:
        parse_package({"verdict": "GO", "junit": JUNIT})
    assert "a.two" in refused.value.errors[0]["message"]


@pytest.mark.parametrize(
    "document",
    [
        {"verdict": "GO", "failed_cases": "TC-1"},
        {"verdict": "NO-GO", "root_cause": "x", "failure_class": "bad luck"},
        {"verdict": "NO-GO", "root_cause": "x", "release": {"state": "DONE"}},
        [],
        None,
    ],
)
def test_malformed_packages_are_refused(document: Any) -> None:
    with pytest.raises(Invalid):
        parse_package(document)


def test_unknown_fields_are_kept_and_plain_text_is_a_case() -> None:
    package = parse_package({"verdict": "NO-GO", "failed_cases": ["TC-1"], "colour": "red"})
    assert package.extra == {"colour": "red"}
    assert package.failed_cases[0].id == "TC-1"
