"""Read request bodies: JSON with the position of what is wrong, and multipart within its limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from orchestration.errors import CountersignError, Fault, TooLarge

MAX_NUMBER_CHARACTERS = 400
MAX_DEPTH = 64


class MalformedBody(CountersignError):
    """The body is not what its content type says. `line`, `column` and `offset` say where."""

    code, status, title = "malformed", 400, "Malformed body"


class JsonParser(BaseParser):
    """Parse JSON strictly: UTF-8, no NaN, no repeated keys, no absurd depth or number."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the document. Errors: MalformedBody with the position; TooLarge."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.", limit_bytes=limit)
        return parse_json(data)


def parse_json(data: bytes) -> Any:
    """Parse the bytes of a JSON document.

    Errors: MalformedBody with line, column and offset where they are known.
    """
    if not data.strip():
        raise _malformed("The body is empty.", line=1, column=1, offset=0)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise _malformed(
            f"The body is not valid UTF-8 at byte {error.start}.",
            line=before.count(b"\n") + 1,
            column=error.start - (before.rfind(b"\n") + 1) + 1,
            offset=error.start,
        ) from None
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_whole_number,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        raise _malformed(
            f"The body is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}.",
            line=error.lineno,
            column=error.colno,
            offset=error.pos,
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _require_shallow(document)
    return document


def _require_shallow(document: Any) -> None:
    """Refuse a depth that no document of ours has and that code further in may not survive."""
    level = [document]
    for _ in range(MAX_DEPTH):
        inner = [held.values() if isinstance(held, dict) else held for held in level]
        level = [one for held in inner for one in held if isinstance(one, dict | list)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> MalformedBody:
    return _malformed(f"The body is nested more than {MAX_DEPTH} levels deep.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _malformed(f"The key {twice!r} stands twice in one object.")
    return held


def _refuse_constant(name: str) -> Any:
    raise _malformed(f"{name} is not a number that JSON has.")


def _whole_number(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise _malformed(f"A number has {len(text)} digits.")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER_CHARACTERS else float("inf")
    if value in (float("inf"), float("-inf")):
        raise _malformed("A number is too large.")
    return value


def _malformed(detail: str, **place: Any) -> MalformedBody:
    return MalformedBody(detail, errors=[Fault(path="", message=detail)], **place)
