"""What a project's policy says of the checks that we run ourselves."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _words(value: object) -> object:
    """Split a command written as one string the way a shell would."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from error


Argument = Annotated[str, Field(strict=True, min_length=1, max_length=4_096)]
Argv = Annotated[tuple[Argument, ...], Field(min_length=1, max_length=64), BeforeValidator(_words)]
Pattern = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
CheckSeconds = Annotated[int, Field(strict=True, ge=1, le=3_600)]


class ToolchainRule(BaseModel):
    """How one kind of workspace is built and tested; `files` are patterns of names in its root."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(strict=True, pattern=r"\A[a-z0-9][a-z0-9_-]{0,31}\z")]
    files: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=20)]
    build: Argv | None = None
    test: Argv | None = None


class Checks(BaseModel):
    """How what agents claim is checked: time limits, and toolchains beside those we know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    build_seconds: CheckSeconds = 15
    test_seconds: CheckSeconds = 30
    toolchains: Annotated[tuple[ToolchainRule, ...], Field(max_length=20)] = ()
