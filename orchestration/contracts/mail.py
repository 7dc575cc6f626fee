"""Mail as callers send it: the envelope, its parts, and the fields of each type.

Who sends it is not in it: that comes from the token.
Source: DESIGN section 12 ("Mail envelope"), FORMATS ("Mesh message"), source document 003.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    model_validator,
)

from orchestration.contracts.documents import Document, fault
from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.contracts.outputs import AssertionInput
from orchestration.states import Complexity

MAX_PARTS = 50
MAX_TEXT_CHARACTERS = 100_000
MAX_DATA_CHARACTERS = 100_000
MAX_LINES = 50
MAX_WAIT_SECONDS = 30
EVERYBODY = "*"
COMPLEXITY_KEY = "complexity"


def _one_or_many(value: Any) -> Any:
    """Take one text where a list is meant."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise fault("message_id", "must be printable characters")
    return value


Address = Annotated[StrictStr, Field(min_length=1, max_length=140)]
MessageId = Annotated[StrictStr, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Line = Annotated[StrictStr, Field(min_length=1, max_length=2_000)]
Lines = Annotated[tuple[Line, ...], BeforeValidator(_one_or_many), Field(max_length=MAX_LINES)]
LongText = Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARACTERS)]
ShortText = Annotated[StrictStr, Field(max_length=10_000)]
RowName = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class MailPart(Document):
    """One part of a mail: a text or a JSON value."""

    text: LongText | None = None
    data: Any = None

    @model_validator(mode="before")
    @classmethod
    def accept_kind(cls, value: Any) -> Any:
        """Take the source's `{kind, …}` parts; the kind says no more than the field does."""
        if isinstance(value, Mapping) and value.get("kind") in ("text", "data"):
            return {key: held for key, held in value.items() if key != "kind"}
        return value

    @model_validator(mode="after")
    def require_one(self) -> Self:
        """Require a text or data, and not both."""
        if (self.text is None) == ("data" not in self.model_fields_set):
            raise fault("part", "a part has either 'text' or 'data'")
        return self

    def stored(self) -> dict[str, Any]:
        """Give the form in which a part is kept."""
        return {"text": self.text} if self.text is not None else {"data": self.data}


class Understanding(Document):
    """What a receiver understood of its task, before it starts."""

    scope: Lines = ()
    approach: ShortText = ""
    output_format: ShortText = ""
    assumptions: Lines = ()
    questions: Lines = ()


class MailInput(BaseModel):
    """A mail. Units: `wait` in seconds, for the reply. `understanding` holds the five fields too.

    Shape: `to` may be one name, several, or `*` for every agent of the project; the server knows
    it for replies and for the handshake. `message_id` is yours and unique in its project.
    """

    model_config = ConfigDict(frozen=True)

    to: Annotated[tuple[Address, ...], BeforeValidator(_one_or_many), Field(max_length=100)] = ()
    type: MailType
    message_id: MessageId
    content: LongText = ""
    parts: Annotated[tuple[MailPart, ...], Field(max_length=MAX_PARTS)] = ()
    project: RowName | None = None
    task: RowName | None = None
    in_reply_to: MessageId | None = None
    mode: ConversationMode | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    assertions: Annotated[tuple[AssertionInput, ...], Field(max_length=100)] = ()
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = 0
    complexity_hint: Complexity | None = None
    scope: Lines = ()
    approach: ShortText = ""
    output_format: ShortText = ""
    assumptions: Lines = ()
    questions: Lines = ()
    understanding: Understanding | None = None
    status: Literal["confirmed", "confirmed_with_correction", "rejected"] | None = None
    corrections: Lines = ()
    expected_output: ShortText = ""
    light_plan: Lines = ()
    accept: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def lift_metadata(cls, value: Any) -> Any:
        """Move the source's `{kind: metadata, key, value}` parts into `metadata`."""
        parts = value.get("parts") if isinstance(value, Mapping) else None
        if not isinstance(parts, list | tuple):
            return value
        lifted: dict[str, Any] = {}
        rest = []
        for part in parts:
            is_metadata = isinstance(part, Mapping) and part.get("kind") == "metadata"
            if is_metadata and isinstance(part.get("key"), str):
                lifted[part["key"]] = part.get("value")
            else:
                rest.append(part)
        given = value.get("metadata", {})
        if not lifted or not isinstance(given, Mapping):
            return value
        return {**value, "parts": rest, "metadata": {**lifted, **given}}

    @model_validator(mode="after")
    def require_sizes(self) -> Self:
        """Require a known complexity and parts that fit together."""
        if COMPLEXITY_KEY in self.metadata and self.hint is None:
            raise fault("metadata", "'complexity' must be low, medium or high")
        if len(self.text) > MAX_TEXT_CHARACTERS:
            raise fault("parts", f"hold more than {MAX_TEXT_CHARACTERS} characters of text")
        size = len(str(self.metadata)) + sum(len(str(one.data)) for one in self.parts)
        if size > MAX_DATA_CHARACTERS:
            raise fault("parts", f"hold more than {MAX_DATA_CHARACTERS} characters of data")
        return self

    @property
    def hint(self) -> Complexity | None:
        """The complexity that the sender named, in the metadata or as the hint of a task."""
        named = self.metadata.get(COMPLEXITY_KEY)
        if named in tuple(Complexity):
            return Complexity(named)
        return self.complexity_hint if named is None else None

    @property
    def text(self) -> str:
        """Everything that was written."""
        texts = [self.content, *(one.text or "" for one in self.parts)]
        return "\n\n".join(text for text in texts if text)

    @property
    def stored_parts(self) -> list[dict[str, Any]]:
        """Its parts as they are kept; `content` is the first of them."""
        first = [{"text": self.content}] if self.content else []
        return [*first, *(one.stored() for one in self.parts)]

    @property
    def understood(self) -> Understanding:
        """What an intent_confirmation says, whichever way it was written."""
        held = self.understanding or Understanding()
        return Understanding(
            scope=self.scope or held.scope,
            approach=self.approach or held.approach,
            output_format=self.output_format or held.output_format,
            assumptions=self.assumptions or held.assumptions,
            questions=self.questions or held.questions,
        )


class SharedDocumentInput(BaseModel):
    """The next version of a shared document; `version` is the one it was written on."""

    model_config = ConfigDict(frozen=True)

    content: Annotated[StrictStr, Field(max_length=1_000_000)]
    change_note: Annotated[StrictStr, Field(max_length=2_000)] = ""
    version: Annotated[int, Field(strict=True, ge=0, le=10**9)] | None = None


class MailReadInput(BaseModel):
    """Which received mail its reader has read: ids, not message_ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mail: Annotated[tuple[RowName, ...], Field(min_length=1, max_length=200)]
