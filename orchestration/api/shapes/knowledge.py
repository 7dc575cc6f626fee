"""Experiences and wiki pages as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from orchestration.api.shapes.base import Id, OptionalId, OrNone, RowId, Shape


class ExperienceShape(Shape):
    """An experience. `status`: unreviewed, accepted or rejected."""

    id: RowId
    project: Annotated[Id, Field(validation_alias="project_id")]
    task: Annotated[OptionalId, Field(validation_alias="task_id")]
    kind: str
    title: str
    body: str
    author: str
    status: str
    reviewed_by: OrNone
    reviewed_at: datetime | None
    version: int
    created_at: datetime


class ExperiencePage(Shape):
    """One page of experiences; those found by words come the best first, all in one page."""

    results: list[ExperienceShape]
    next: str | None
    previous: str | None


class WikiPageShape(Shape):
    """The newest version of a wiki page."""

    id: RowId
    project: Annotated[Id, Field(validation_alias="project_id")]
    name: str
    title: str
    summary: str
    body: str
    author: str
    status: str
    reviewed_by: OrNone
    reviewed_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


class WikiList(Shape):
    """One page of wiki pages."""

    results: list[WikiPageShape]
    next: str | None
    previous: str | None


class WikiVersionShape(Shape):
    """One version of a wiki page, as its author wrote it."""

    number: int
    title: str
    summary: str
    body: str
    author: str
    created_at: datetime


class WikiVersions(Shape):
    """One page of versions, oldest first."""

    results: list[WikiVersionShape]
    next: str | None
    previous: str | None
