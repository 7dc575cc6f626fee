"""Small field builders that the models share, so that every enum column looks the same."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """List an enum as Django choices; the code is the label, the UI has its own words."""
    return [(member.value, member.value) for member in enum]


def state_field(
    enum: type[StrEnum], default: StrEnum, **options: Any
) -> models.CharField[str, str]:
    """Build the column of a state machine."""
    return models.CharField(max_length=20, choices=choices(enum), default=default.value, **options)


def optional_enum(enum: type[StrEnum], **options: Any) -> models.CharField[str, str]:
    """Build an enum column that may still be unknown; the empty string means not known yet."""
    return models.CharField(max_length=20, choices=choices(enum), blank=True, default="", **options)


def known_state(enum: type[StrEnum], name: str, field: str = "status") -> models.CheckConstraint:
    """Let the database refuse a state that no table knows."""
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__in": [member.value for member in enum]}), name=name
    )
