"""Outputs with their assertions, and comments, as agents hand them in.

Source: DESIGN sections 8 ("Outputs", "Assertions") and 12 ("Hand-off").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from orchestration.contracts.documents import Document, fault
from orchestration.contracts.paths import WorkspacePath
from orchestration.contracts.plan import VerificationCommand
from orchestration.errors import TooLarge
from orchestration.states import CommentType, OutputType

MAX_CONTENT_BYTES = 1024 * 1024
MAX_COMMENT_CHARACTERS = 100_000
TITLE_MAX_CHARACTERS = 300


def _json_text(value: Any) -> Any:
    """Evidence may be text or any JSON; it is stored and shown as text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


Words = Annotated[StrictStr, Field(min_length=1)]
Title = Annotated[StrictStr, Field(min_length=1, max_length=TITLE_MAX_CHARACTERS)]
UNSHOWN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)
"""What shows nothing in a title, or shows the rest of it in another order."""


def _one_line(title: str) -> str:
    found = UNSHOWN.search(title)
    if found is not None:
        raise fault("title", f"holds U+{ord(found[0]):04X}, a character that hides or turns text")
    return title


OutputTitle = Annotated[Title, AfterValidator(_one_line)]
"""A title that reads as what it is: it is shown beside what was verified."""
Evidence = Annotated[StrictStr, BeforeValidator(_json_text)]


class Confidence(StrEnum):
    """How sure an agent says it is of a claim."""

    VERIFIED = "verified"
    INFERRED = "inferred"
    UNCERTAIN = "uncertain"


class AssertionInput(Document):
    """One claim about an output, with what it rests on.

    Shape: `verify_command` is None where the agent gave none or one that only a shell could run;
    the words it gave are in `verify_text`.
    """

    claim: Words
    confidence: Confidence
    evidence: Evidence = ""
    reasoning: Evidence = ""
    verify_command: VerificationCommand | None = Field(
        default=None, validation_alias=AliasChoices("verify_command", "verify_cmd")
    )
    verify_text: StrictStr = ""

    @model_validator(mode="before")
    @classmethod
    def keep_unrunnable_commands(cls, value: Any) -> Any:
        """Keep a command that we cannot run as words: the claim counts, as self-reported."""
        given = _verify_given(value)
        if given is None:
            return value
        rest = {
            key: held for key, held in value.items() if key not in ("verify_command", "verify_cmd")
        }
        try:
            command: VerificationCommand | None = VerificationCommand.model_validate(given)
        except ValidationError:
            command = None
        text = given if isinstance(given, str) else command.text if command else _json_text(given)
        return {**rest, "verify_command": command, "verify_text": text}

    @model_validator(mode="after")
    def require_grounds(self) -> Self:
        """Require evidence for a verified claim and reasoning for any other."""
        if self.confidence is Confidence.VERIFIED and not self.evidence.strip():
            raise fault("assertion", "a verified claim needs 'evidence'")
        if self.confidence is not Confidence.VERIFIED and not self.reasoning.strip():
            raise fault("assertion", f"a claim that is {self.confidence} needs 'reasoning'")
        return self


def _verify_given(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return None
    return value.get("verify_command") or value.get("verify_cmd")


class OutputFileInput(Document):
    """What comes beside an uploaded file: everything about an output but its content."""

    type: OutputType = OutputType.OTHER
    title: OutputTitle
    summary: StrictStr = ""
    assertions: Annotated[tuple[AssertionInput, ...], Field(max_length=1_000)] = ()


class OutputInput(OutputFileInput):
    """An output: its content, or the path of a file in the workspace.

    Errors: TooLarge when the content is over 1 MB.
    """

    content: StrictStr | None = None
    path: WorkspacePath | None = None

    @model_validator(mode="after")
    def require_one_source(self) -> Self:
        """Require exactly one of content and path."""
        if (self.content is None) == (self.path is None):
            raise fault("output", "needs exactly one of 'content' and 'path'")
        size = len(self.content.encode()) if self.content is not None else 0
        if size > MAX_CONTENT_BYTES:
            limit = f"at most {MAX_CONTENT_BYTES} are allowed; upload it as a file or give its path"
            raise TooLarge(f"The content has {size} bytes; {limit}.", limit_bytes=MAX_CONTENT_BYTES)
        return self


class CommentInput(Document):
    """A comment on a task. A hand-off may be a JSON object; it is stored as its JSON text."""

    comment_type: CommentType = CommentType.GENERAL
    body: Annotated[StrictStr, Field(min_length=1, max_length=MAX_COMMENT_CHARACTERS)]

    @model_validator(mode="before")
    @classmethod
    def accept_objects(cls, value: Any) -> Any:
        """Turn the JSON object of a hand-off into its text."""
        is_object = isinstance(value, Mapping) and isinstance(value.get("body"), Mapping)
        if is_object and value.get("comment_type") == CommentType.HANDOFF:
            return {**value, "body": _json_text(value["body"])}
        return value

    @field_validator("body")
    @classmethod
    def require_words(cls, body: str) -> str:
        """Require more than white space."""
        if not body.strip():
            raise fault("comment", "must not be empty")
        return body


class HandoffComment(CommentInput):
    """The comment of a result: a hand-off unless it says otherwise; plain text is accepted."""

    comment_type: CommentType = CommentType.HANDOFF

    @model_validator(mode="before")
    @classmethod
    def accept_text(cls, value: Any) -> Any:
        """Take plain text, or the hand-off object itself, as the body."""
        if isinstance(value, str):
            return {"body": value}
        if isinstance(value, Mapping) and "body" not in value:
            return {"comment_type": CommentType.HANDOFF, "body": value}
        if isinstance(value, Mapping):
            return {"comment_type": CommentType.HANDOFF, **value}
        return value
