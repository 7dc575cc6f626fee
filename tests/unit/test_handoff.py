"""The hand-off: short text, or JSON that fits its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration.contracts import handoff as contract
from orchestration.contracts.handoff import handoff_schema_text
from orchestration.errors import Invalid
from orchestration.rules.handoff import HandoffKind, check_handoff, parse_handoff

WHOLE: dict[str, Any] = {
    "completed": "导入模块",
    "artifacts": ["out/a.py"],
    "decisions": [{"what": "sqlite", "why": "no server"}],
    "problems": [{"what": "slow", "how_solved": "index"}],
    "advice": ["watch the disk"],
    "mood": "fine",
}


def padded(size: int) -> str:
    """A JSON hand-off of exactly that many bytes."""
    empty = len(json.dumps({"completed": "", "artifacts": []}))
    return json.dumps({"completed": "x" * (size - empty), "artifacts": []})


@pytest.mark.parametrize(
    "text", ["done", "决策：略", "x" * 500, "界" * 500, " x \n", "[1]", "{braces}"]
)
def test_short_text_is_a_hand_off(text: str) -> None:
    assert check_handoff(text) is HandoffKind.TEXT
    assert parse_handoff(text) is None


@pytest.mark.parametrize("length", [501, 5_000])
def test_the_error_names_the_length(length: int) -> None:
    with pytest.raises(Invalid, match=f"has {length} characters") as caught:
        check_handoff("界" * length)
    assert caught.value.errors[0]["path"] == "body"
    assert caught.value.status == 422


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_hand_off_is_none(text: str) -> None:
    with pytest.raises(Invalid, match="empty"):
        check_handoff(text)


def test_json_is_read() -> None:
    text = json.dumps(WHOLE)
    assert check_handoff(text) is HandoffKind.JSON
    found = parse_handoff(f"  {text}\n")
    assert found is not None
    assert (found.completed, found.artifacts) == ("导入模块", ("out/a.py",))
    assert found.decisions[0].why == "no server"


def test_the_source_documents_example_fits() -> None:
    assert check_handoff('{"completed":"...", "artifacts":["..."]}') is HandoffKind.JSON


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({}, ["completed", "artifacts"]),
        ({"completed": "x"}, ["artifacts"]),
        ({"completed": "", "artifacts": []}, ["completed"]),
        ({"completed": "x", "artifacts": "a"}, ["artifacts"]),
        ({"completed": "x", "artifacts": [1]}, ["artifacts.0"]),
        ({"completed": "x", "artifacts": [], "decisions": [{"what": "y"}]}, ["decisions.0.why"]),
        ({"completed": "x", "artifacts": [], "advice": "y"}, ["advice"]),
        ({"completed": "x\x00", "artifacts": []}, ["completed"]),
    ],
)
def test_json_that_does_not_fit_is_named(document: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(Invalid) as caught:
        check_handoff(json.dumps(document))
    assert [one["path"] for one in caught.value.errors] == paths


def test_eight_kilobytes_of_json_are_the_most() -> None:
    assert check_handoff(padded(8_192)) is HandoffKind.JSON
    with pytest.raises(Invalid, match="has 8193 bytes"):
        check_handoff(padded(8_193))


def test_long_broken_json_is_told_apart_from_long_text() -> None:
    with pytest.raises(Invalid, match="cannot be read as JSON"):
        check_handoff('{"completed": "' + "x" * 600)
    with pytest.raises(Invalid, match="cannot be read as JSON"):
        check_handoff('{"a":' * 1_000)


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = Path(contract.__file__).with_name("handoff.schema.json")
    assert committed.read_text() == handoff_schema_text()
    schema = json.loads(committed.read_text())
    assert schema["required"] == ["completed", "artifacts"]
    assert set(schema["properties"]) == {
        "completed",
        "artifacts",
        "decisions",
        "problems",
        "advice",
    }
