"""The hand-off as JSON: what was completed, what it left behind, and what the next one should know.

`handoff.schema.json` beside this file is generated from the model; a test compares them.
Source: FORMATS ("Hand-off").
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr

Words = Annotated[StrictStr, Field(min_length=1)]


class HandoffDecision(BaseModel):
    """A choice that was made, and why."""

    model_config = ConfigDict(frozen=True, extra="allow")

    what: Words
    why: StrictStr


class HandoffProblem(BaseModel):
    """A problem that came up, and how it was solved."""

    model_config = ConfigDict(frozen=True, extra="allow")

    what: Words
    how_solved: StrictStr


class Handoff(BaseModel):
    """A structured hand-off. Unknown fields are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    completed: Words
    artifacts: tuple[StrictStr, ...]
    decisions: tuple[HandoffDecision, ...] = ()
    problems: tuple[HandoffProblem, ...] = ()
    advice: tuple[StrictStr, ...] = ()


def handoff_schema() -> dict[str, Any]:
    """Generate the JSON schema of a hand-off."""
    schema = Handoff.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def handoff_schema_text() -> str:
    """Give the text of `handoff.schema.json`."""
    return json.dumps(handoff_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
