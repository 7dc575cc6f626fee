"""Cursor pages over a unique sequence: nothing is skipped or repeated while rows are inserted.

Source: DESIGN section 14 ("Conventions"), CASES C-86.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from orchestration.errors import Fault, Invalid

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
CURSOR = re.compile(r"(after|before):([0-9]{1,18})\Z")
M = TypeVar("M", bound=Model)
PAGE_PARAMETERS = [
    OpenApiParameter("cursor", str, description="From `next` or `previous` of an earlier page."),
    OpenApiParameter("page_size", int, description=f"1 to {MAX_PAGE_SIZE}, else {PAGE_SIZE}."),
]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a sequence, and which side of it is wanted."""

    position: int
    is_before: bool = False

    def encode(self) -> str:
        """Give the opaque text."""
        text = f"{'before' if self.is_before else 'after'}:{self.position}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """Read a cursor. Errors: Invalid for one that we did not make."""
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        plain = ""
    found = CURSOR.match(plain)
    if found is None:
        message = "is not a cursor of ours"
        raise Invalid(f"This {message}.", errors=[Fault(path="cursor", message=message)])
    return Cursor(int(found[2]), is_before=found[1] == "before")


def read_page_size(request: Request) -> int:
    """Read `page_size`. Errors: Invalid out of range."""
    return read_count(request, "page_size", default=PAGE_SIZE, low=1, high=MAX_PAGE_SIZE)


def read_count(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """Read a whole number of the query. Errors: Invalid when it is none or out of range."""
    text = request.query_params.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= 18
    if not is_number or not low <= int(text) <= high:
        message = f"must be a whole number from {low} to {high}"
        raise Invalid(f"{name} {message}.", errors=[Fault(path=name, message=message)])
    return int(text)


def paged(
    request: Request,
    rows: QuerySet[M],
    shape: Callable[[Sequence[M]], list[dict[str, Any]]],
    *,
    newest_first: bool = False,
    field: str = "pk",
) -> dict[str, Any]:
    """Shape one page of rows, ordered by a unique field.

    Shape: `{results, next, previous}`; the links are None at the ends.
    """
    size = read_page_size(request)
    text = request.query_params.get("cursor")
    cursor = read_cursor(text) if text else None
    backwards = cursor is not None and cursor.is_before
    if cursor is not None:
        # "After" follows the order of the list, whichever way its numbers run.
        downwards = newest_first != backwards
        rows = rows.filter(**{f"{field}__{'lt' if downwards else 'gt'}": cursor.position})
    is_descending = newest_first != backwards
    found = list(rows.order_by(f"-{field}" if is_descending else field)[: size + 1])
    has_more = len(found) > size
    page = found[:size]
    if backwards:
        page.reverse()
    has_next = has_more if not backwards else True
    has_previous = has_more if backwards else cursor is not None
    last = Cursor(_position(page[-1], field)) if page and has_next else None
    first = Cursor(_position(page[0], field), is_before=True) if page and has_previous else None
    return {
        "results": shape(page),
        "next": _link(request, last),
        "previous": _link(request, first),
    }


def _position(row: Model, field: str) -> int:
    value = row.pk if field == "pk" else getattr(row, field)
    return int(value)


def _link(request: Request, cursor: Cursor | None) -> str | None:
    if cursor is None:
        return None
    return str(replace_query_param(request.build_absolute_uri(), "cursor", cursor.encode()))
