"""The pages of 403, 404 and 500: the shell stays; what cannot be rendered falls back to plain text.

The API's own handler answers below /api/; a request that no route matched there gets JSON too.
"""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_noop

logger = logging.getLogger(__name__)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that this is for another role."""
    return _answer(request, 403, gettext_noop("Forbidden"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that nothing is here, or nothing that this person may see."""
    return _answer(request, 404, gettext_noop("Not found"))


def broken(request: HttpRequest) -> HttpResponse:
    """Say that the page broke. The fault is in the log already."""
    return _answer(request, 500, gettext_noop("Server error"))


def _answer(request: HttpRequest, status: int, title: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        document = {"type": "about:blank", "title": title, "status": status, "detail": title}
        return JsonResponse(document, status=status, content_type="application/problem+json")
    if request.headers.get("HX-Request"):
        return HttpResponse(gettext(title), status=status, content_type="text/plain; charset=utf-8")
    try:
        return render(request, f"{status}.html", status=status)
    except Exception:
        # The shell itself may be what broke; a page of plain words always works.
        logger.exception("the page for %s could not be rendered", status)
        return HttpResponse(title, status=status, content_type="text/plain; charset=utf-8")
