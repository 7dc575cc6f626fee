"""Outputs, their assertions, and comments, as agents hand them in."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from orchestration.contracts.outputs import MAX_CONTENT_BYTES, Confidence
from orchestration.contracts.results import (
    AssertionInput,
    CommentInput,
    OutputFileInput,
    OutputInput,
    parse_document,
)
from orchestration.errors import Invalid, TooLarge
from orchestration.states import OutputType


def refused(model: type[BaseModel], document: object) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        parse_document(model, document)
    return {one["path"]: one["message"] for one in caught.value.errors}


def accepts(model: type[BaseModel], document: object) -> bool:
    try:
        parse_document(model, document)
    except Invalid:
        return False
    return True


@pytest.mark.parametrize(
    ("confidence", "grounds", "is_enough"),
    [
        ("verified", {"evidence": "log line 3"}, True),
        ("verified", {"reasoning": "I think"}, False),
        ("verified", {"evidence": "  "}, False),
        ("inferred", {"reasoning": "follows"}, True),
        ("inferred", {"evidence": "log"}, False),
        ("uncertain", {"reasoning": "a guess"}, True),
        ("uncertain", {}, False),
    ],
)
def test_a_claim_rests_on_what_its_confidence_asks_for(
    confidence: str, grounds: dict[str, str], *, is_enough: bool
) -> None:
    document = {"claim": "it works", "confidence": confidence, **grounds}
    assert accepts(AssertionInput, document) == is_enough


def test_missing_grounds_are_named() -> None:
    document = {"claim": "it works", "confidence": "verified"}
    assert refused(AssertionInput, document) == {"": "a verified claim needs 'evidence'"}
    document["confidence"] = str(Confidence.UNCERTAIN)
    assert refused(AssertionInput, document) == {"": "a claim that is uncertain needs 'reasoning'"}


@pytest.mark.parametrize("key", ["verify_command", "verify_cmd"])
@pytest.mark.parametrize("command", ["make test", {"cmd": "make test"}, {"argv": ["make", "test"]}])
def test_a_verify_command_has_two_names(key: str, command: object) -> None:
    document = {"claim": "c", "confidence": "inferred", "reasoning": "r", key: command}
    claim = parse_document(AssertionInput, document)
    assert claim.verify_command is not None
    assert (claim.verify_command.argv, claim.verify_text) == (("make", "test"), "make test")
    assert claim.extra == {}
    assert parse_document(AssertionInput, claim.to_document()) == claim


@pytest.mark.parametrize("command", ["make | tail", "a; b", "'open", {"cwd": "x"}, 3])
def test_a_verify_command_that_cannot_run_does_not_lose_the_claim(command: object) -> None:
    document = {"claim": "c", "confidence": "inferred", "reasoning": "r", "verify_cmd": command}
    claim = parse_document(AssertionInput, document)
    assert claim.verify_command is None
    assert claim.verify_text
    assert parse_document(AssertionInput, claim.to_document()) == claim


@pytest.mark.parametrize(
    ("sources", "is_one"),
    [
        ({"content": "x"}, True),
        ({"content": ""}, True),
        ({"path": "a.txt"}, True),
        ({}, False),
        ({"content": "x", "path": "a.txt"}, False),
    ],
)
def test_an_output_has_one_source(sources: dict[str, str], *, is_one: bool) -> None:
    assert accepts(OutputInput, {"type": "data", "title": "t", **sources}) == is_one


def test_the_type_of_an_output_is_known() -> None:
    assert parse_document(OutputInput, {"title": "t", "content": ""}).type is OutputType.OTHER
    assert "'code'" in refused(OutputInput, {"title": "t", "content": "", "type": "x"})["type"]


def test_one_megabyte_of_content_is_the_most() -> None:
    document = {"type": "data", "title": "t", "content": "x" * MAX_CONTENT_BYTES}
    assert accepts(OutputInput, document)
    with pytest.raises(TooLarge, match=str(MAX_CONTENT_BYTES + 3)):
        parse_document(OutputInput, {**document, "content": document["content"] + "界"})


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", ""])
def test_an_output_stays_in_the_workspace(path: str) -> None:
    assert list(refused(OutputInput, {"title": "t", "path": path})) == ["path"]


def test_an_uploaded_file_brings_its_own_content() -> None:
    assert parse_document(OutputFileInput, {"title": "t", "type": "code"}).type is OutputType.CODE


@pytest.mark.parametrize("body", ["", "  \n", None, 3, ["x"], {"a": 1}])
def test_a_comment_needs_words(body: object) -> None:
    assert list(refused(CommentInput, {"body": body})) == ["body"]


def test_a_hand_off_object_becomes_its_text() -> None:
    comment = parse_document(
        CommentInput, {"comment_type": "handoff", "body": {"completed": "完成", "artifacts": []}}
    )
    assert comment.body == '{"completed": "完成", "artifacts": []}'
