"""Validation packages as Markdown: read what agents hand in, write what people read.

Read are the verdict, the reason, the failed cases, the summary table and JUnit reports in fenced
blocks, with the labels of both languages; the rest of the text stays as evidence.
Source: FORMATS ("Validation and release evidence package").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.validation import DETAIL, Package, parse_package
from orchestration.errors import Fault, Invalid

MAX_CHARACTERS = 1_000_000
# Packages come from agents and are long: every run below is possessive, or a text of nothing but
# spaces would be tried at each length of each run.
_COLON = r"\**+[^\S\n]*+[:：][^\S\n]*+\**+[^\S\n]*+"
_VERDICT = re.compile(
    rf"(?:裁定(?:结果)?|verdict|adjudication)[^\S\n]*+{_COLON}`?"
    r"(NO[-_ ]?GO|GO|INDETERMINATE)(?![A-Za-z])",
    re.IGNORECASE,
)
_REASON = re.compile(
    rf"(?:根本原因|根因|失败原因|原因|root[ _]cause|reason)\s*+{_COLON}([^\n]+)", re.IGNORECASE
)
_CLASS = re.compile(rf"(?:失败类别|failure[ _]class)\s*+{_COLON}`?([a-z_]+)", re.IGNORECASE)
_BASIS = re.compile(rf"(?:依据|basis)\s*+{_COLON}([^\n]+)", re.IGNORECASE)
_CASES = re.compile(
    rf"(?:失败用例|失败的用例|failed[ _]cases?)[^\S\n]*+(?:{_COLON})?([^\n]*+)", re.IGNORECASE
)
_ITEM = re.compile(
    r"[^\S\n]*+[-*+][^\S\n]++`?([^\s`:：,，（(]++)`?[^\S\n]*+(?:[（(]([^）)\n]*+)[）)])?"
    r"[^\S\n]*+[:：]?[^\S\n]*+([^\n]*+)"
)
_CASE_ID = re.compile(r"\bTC-[A-Za-z0-9_-]*[A-Za-z0-9]")
_FAILS = re.compile(r"失败|未通过|\bfail(?:ed|s|ure)?\b", re.IGNORECASE)
_ROW = re.compile(r"^\s*\|(.+)\|\s*$")
_STATUS = re.compile(r"\b(PASSED|PASS|WARN|FAILED|FAIL)\b|(通过|警告|失败)")
_STATUSES: Mapping[str, str] = {
    "PASSED": "PASSED", "PASS": "PASSED", "通过": "PASSED", "WARN": "WARN", "警告": "WARN",
    "FAILED": "FAILED", "FAIL": "FAILED", "失败": "FAILED",
}  # fmt: skip
_XML = re.compile(r"```(?:xml|junit)[^\n`]*+\n(.*?)```", re.DOTALL)


def parse_markdown(text: str) -> Package:
    """Read a package from Markdown.

    Errors: Invalid (`package_invalid`) for no verdict, for two that differ, and as `parse_package`.
    """
    if len(text) > MAX_CHARACTERS:
        raise _invalid(f"is longer than {MAX_CHARACTERS} characters")
    prose = _XML.sub("", text)
    verdicts = {re.sub(r"[-_ ]", "", one.upper()) for one in _VERDICT.findall(prose)}
    if not verdicts:
        raise _invalid("names no verdict: write `Verdict: GO`, `NO-GO` or `INDETERMINATE`")
    if len(verdicts) > 1:
        raise _invalid(f"names {len(verdicts)} different verdicts")
    reason = _words(_REASON.search(prose))
    cases = _failed_cases(prose, reason)
    document: dict[str, Any] = {
        "verdict": verdicts.pop(),
        "basis": _words(_BASIS.search(prose)),
        "root_cause": "" if _only_names(reason, cases) else reason,
        "failed_cases": cases,
        "summary": _summary(prose),
        "junit": _XML.findall(text),
        "evidence": [text],
    }
    named = _CLASS.search(prose)
    if named:
        document["failure_class"] = named.group(1).lower()
    return parse_package(document)


def _words(found: re.Match[str] | None) -> str:
    """The rest of a labelled line, without its emphasis and trailing dots."""
    return found.group(1).strip().strip("*`").rstrip(".。… ").strip() if found else ""


def _failed_cases(text: str, reason: str) -> list[dict[str, str]]:
    """List the cases of the labelled line or list, and those that the reason says failed."""
    cases: dict[str, dict[str, str]] = {}
    is_awaited = is_listed = False  # a label stands above, with only blank lines or items between
    for line in text.split("\n"):
        item = _ITEM.fullmatch(line) if is_awaited or is_listed else None
        if item is not None:
            cases.setdefault(item[1], _case(item))
        is_listed = item is not None
        is_awaited = is_awaited and not line.strip()
        label = _CASES.search(line)
        if label is not None:
            is_awaited = True
            for one in _named_cases(label[1]):
                cases.setdefault(one, {"id": one})
    if _FAILS.search(reason):
        for one in _CASE_ID.findall(reason):
            cases.setdefault(one, {"id": one})
    return list(cases.values())


def _case(item: re.Match[str]) -> dict[str, str]:
    return {"id": item[1], "ac": item[2] or "", "output_tail": item[3]}


def _named_cases(text: str) -> list[str]:
    words = (one.strip("`*.。") for one in re.split(r"[,，、;；\s]+", text))
    return [one for one in words if _CASE_ID.fullmatch(one)]


def _only_names(reason: str, cases: Sequence[Mapping[str, str]]) -> bool:
    """Whether a reason says no more than which cases failed."""
    if not cases:
        return False
    rest = _FAILS.sub("", _CASE_ID.sub("", reason))
    return not re.sub(r"[\s,，、;；.。用例]|case|test|and|和|与", "", rest, flags=re.IGNORECASE)


def _summary(text: str) -> list[dict[str, str]]:
    """Read the rows of tables whose second cell is a status."""
    rows = []
    for line in text.split("\n"):
        found = _ROW.match(line)
        cells = [cell.strip().strip("*`") for cell in found.group(1).split("|")] if found else []
        status = _STATUS.search(cells[1]) if len(cells) > 1 else None
        if status is None or not cells[0]:
            continue
        named = _STATUSES[status.group(1) or status.group(2)]
        rows.append({"category": cells[0], "status": named, "figure": "".join(cells[2:3]),
                     "report": "".join(cells[3:4])})  # fmt: skip
    return rows


_LABELS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Validation and release evidence package", "verdict": "Verdict", "at": "Time",
        "basis": "Basis", "reason": "Reason", "class": "Failure class", "summary": "Summary",
        "table": "| Category | Status | Figure | Report |", "cases": "Failed cases",
        "findings": "Findings", "release": "Release", "colon": ": ",
    },
    "zh": {
        "title": "验证与发布证据包", "verdict": "裁定", "at": "时间", "basis": "依据",
        "reason": "原因", "class": "失败类别", "summary": "摘要",
        "table": "| 类别 | 状态 | 关键数据 | 报告 |", "cases": "失败用例", "findings": "发现",
        "release": "发布记录", "colon": "：",
    },
}  # fmt: skip


def render_package(package: Package, language: str = "en") -> str:
    """Write a package as Markdown that `parse_markdown` reads back. Shape: ends with a newline."""
    words = _LABELS["zh" if language.startswith("zh") else "en"]

    def line(label: str, text: str) -> str:
        return f"{words[label]}{words['colon']}{_one_line(text)}"

    lines = [f"# {words['title']}", "", line("verdict", package.verdict.value)]
    if package.at is not None:
        lines.append(line("at", package.at.isoformat()))
    lines += [line("basis", package.basis)] if package.basis else []
    lines += [line("reason", package.cause)] if package.cause and package.verdict != "GO" else []
    if package.failure_class is not None:
        lines.append(line("class", package.failure_class.value))
    if package.summary:
        lines += ["", f"## {words['summary']}", "", words["table"], "|---|---|---|---|"]
        lines += [
            f"| {_cell(row.category)} | {row.status} | {_cell(row.figure)} | {_cell(row.report)} |"
            for row in package.summary
        ]
    if package.failed_cases:
        lines += ["", f"## {words['cases']}", ""]
        lines += [_case_line(one.id, one.ac, one.output_tail) for one in package.failed_cases]
    if package.findings:
        lines += ["", f"## {words['findings']}", ""]
        lines += [
            f"- {one.severity}{words['colon']}{_one_line(one.title)}" for one in package.findings
        ]
    if package.release is not None:
        held = package.release
        told = (held.type, held.changeset, held.state, _one_line(held.reason))
        lines += ["", f"## {words['release']}", "", " ".join(one for one in told if one)]
    return "\n".join(lines) + "\n"


def _case_line(case: str, ac: str, tail: str) -> str:
    about = f" ({_one_line(ac)})" if ac else ""
    return f"- `{_one_line(case)}`{about}: {_one_line(tail)[-500:]}".rstrip(": ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "/")


def _invalid(message: str) -> Invalid:
    return Invalid(DETAIL, code="package_invalid", errors=[Fault(path="", message=message)])
