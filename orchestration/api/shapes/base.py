"""Base of every answer's shape, and the field types that they share."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Shape(BaseModel):
    """An answer. Ids are opaque strings; times are UTC with their zone."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, row: object) -> Self:
        """Shape a row: each field is the attribute of its name, or of its alias."""
        return cls.model_validate(row)

    def document(self) -> dict[str, Any]:
        """Give the JSON values."""
        return self.model_dump(mode="json")


def _text(value: Any) -> Any:
    return None if value is None else str(value)


def _name(agent: Any) -> str | None:
    name = getattr(agent, "name", agent)
    return None if name is None else str(name)


Id = Annotated[str, BeforeValidator(_text)]
OptionalId = Annotated[str | None, BeforeValidator(_text)]
RowId = Annotated[str, BeforeValidator(_text), Field(validation_alias="pk")]
TaskId = Annotated[str, BeforeValidator(_text), Field(validation_alias="task_id")]
AgentName = Annotated[str | None, BeforeValidator(_name)]
OrNone = Annotated[str | None, BeforeValidator(lambda value: value or None)]
"""Text that is empty in the row while it is not known."""


class Fault(Shape):
    """One fault of a request."""

    path: str
    message: str


class Problem(Shape):
    """An error (application/problem+json). More members may stand beside these, by code."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[Fault] | None = None
    allowed: list[str] | None = None
    holder: str | None = None
    standing: dict[str, Any] | None = None
