"""The names that the shell links to, so that its parts render whole without the real pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

NAMES = (
    "inbox", "overview", "agents", "knowledge", "insights", "audit", "policy", "new_work",
    "search", "projects", "inbox_count", "notifications", "notifications_bell",
)  # fmt: skip


def nothing(request: HttpRequest) -> HttpResponse:
    """Answer without content; no test opens these pages."""
    return HttpResponse(status=204)


pages = [path(f"{name}/", nothing, name=name) for name in NAMES]
urlpatterns = [
    path("", include((pages, "dashboard"))),
    path("accounts/logout/", nothing, name="logout"),
    path("i18n/setlang/", nothing, name="set_language"),
]
