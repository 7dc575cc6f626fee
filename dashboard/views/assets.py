"""Addresses that browsers ask for by themselves."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@require_safe
def favicon(request: HttpRequest) -> HttpResponseRedirect:
    """Lead to the icon, for pages that do not name one: JSON, text, images."""
    return HttpResponseRedirect(static("favicon.svg"))
