"""Routes whose trailing slash is optional; the documented spelling is the one in `urls.py`."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern
from django.urls.resolvers import RoutePattern
from rest_framework.views import APIView


class EitherSlash(RoutePattern):
    """A route that matches with and without its trailing slash."""

    def match(self, path: str) -> Any:
        """Match the path, else the path with its last slash added or taken away."""
        found = super().match(path)
        if found is not None:
            return found
        return super().match(path[:-1] if path.endswith("/") else f"{path}/")


def route(pattern: str, view: type[APIView], name: str) -> URLPattern:
    """Map a path to a view, whichever way its end is written."""
    return URLPattern(EitherSlash(pattern, name=name, is_endpoint=True), view.as_view(), {}, name)
