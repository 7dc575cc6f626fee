"""Documents from outside: JSON that can be stored, readable faults, kept unknown fields."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from orchestration.contracts import documents
from orchestration.contracts.documents import (
    field_names,
    parse_document,
    require_json,
    unknown_fields,
)
from orchestration.contracts.paths import normalise_path, path_fault
from orchestration.contracts.results import AssertionInput, CommentInput, Usage
from orchestration.errors import Invalid


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        ({"a": {"b": ["x", "y\x00"]}}, "a.b.1", "NUL"),
        ({"a": "\ud800"}, "a", "surrogate"),
        ({"a": [float("nan")]}, "a.0", "finite"),
        ({"a": float("inf")}, "a", "finite"),
        ({"a": datetime.date(2026, 1, 1)}, "a", "date"),
        ({"a": {1, 2}}, "a", "set"),
        ({"a": b"bytes"}, "a", "bytes"),
        ({"a": {1: "x"}}, "a", "key 1 must be text"),
        ({"a": {"k\x00": "x"}}, "a", "NUL"),
        (nested(100_000), "", "nested too deeply"),
    ],
)
def test_what_no_database_stores_is_named(document: object, path: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        require_json(document, detail="no")
    assert [fault["path"] for fault in caught.value.errors] == [path]
    assert said in caught.value.errors[0]["message"]


def test_all_faults_of_the_first_pass_are_listed() -> None:
    with pytest.raises(Invalid) as caught:
        require_json({"a": "\x00", "b": [float("nan"), "\udfff"]}, detail="no")
    assert [fault["path"] for fault in caught.value.errors] == ["a", "b.0", "b.1"]


def test_a_document_that_multiplies_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_VALUES", 10_000)
    bomb: list[Any] = ["x"] * 10
    for _ in range(12):
        bomb = [bomb] * 10
    with pytest.raises(Invalid, match="no") as caught:
        require_json(bomb, detail="no")
    assert caught.value.errors[-1]["message"] == "has more than 10000 values"


def test_a_document_that_holds_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_VALUES", 10_000)
    loop: dict[str, Any] = {}
    loop["self"] = [loop]
    with pytest.raises(Invalid):
        require_json(loop, detail="no")


@pytest.mark.parametrize(
    "document", [None, "text", 1, 1.5, True, [], {}, {"a": [1, {"b": None}]}, {"z": "中文 \\u0000"}]
)
def test_plain_json_passes(document: object) -> None:
    assert require_json(document, detail="no")


@pytest.mark.parametrize("document", [[], "text", None, 3])
def test_a_model_needs_an_object(document: object) -> None:
    with pytest.raises(Invalid) as caught:
        parse_document(Usage, document)
    assert caught.value.errors == [{"path": "", "message": "must be an object"}]


def test_unknown_fields_are_kept_and_read_back() -> None:
    usage = parse_document(Usage, {"turns": 3, "zebra": [1], "apple": {"x": 1}})
    assert usage.extra == {"apple": {"x": 1}, "zebra": [1]}
    assert parse_document(Usage, usage.to_document()) == usage


def test_given_extra_and_unknown_fields_are_joined() -> None:
    assert parse_document(Usage, {"extra": {"a": 1}, "b": 2}).extra == {"a": 1, "b": 2}


def test_unknown_top_level_fields_are_named_for_the_rest_body() -> None:
    assert unknown_fields(CommentInput, {"body": "x", "who": 1, "and": 2}) == ["and", "who"]
    assert "verify_cmd" in field_names(AssertionInput)


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a.txt", "a.txt"),
        ("./a//b/", "a/b"),
        ("src/./x", "src/x"),
        (" a b.txt ", "a b.txt"),
        (".", "."),
        ("./", "."),
        (".env", ".env"),
        ("报告/终稿.md", "报告/终稿.md"),
        ("a/..b/c", "a/..b/c"),
    ],
)
def test_a_path_has_one_spelling(path: str, plain: str) -> None:
    assert normalise_path(path) == plain
    assert normalise_path(plain) == plain


@pytest.mark.parametrize(
    "path",
    [
        "",
        "  ",
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "a\\..\\b",
        "\\srv",
        "C:/x",
        "a\nb",
    ],
)
def test_a_path_out_of_the_workspace_is_refused(path: str) -> None:
    assert path_fault(path) is not None
    with pytest.raises(ValueError, match=r"\w"):
        normalise_path(path)
