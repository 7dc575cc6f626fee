"""What the views share: the typed request, who may read and decide, and refusals as pages.

Two human roles: `sir` decides, `viewer` reads only. Anybody else with an account sees nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from http import HTTPStatus
from itertools import islice
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

from dashboard.engine_texts import engine_words
from orchestration.access import HumanRole, role_of
from orchestration.errors import Conflict, CountersignError, NotFound
from orchestration.services.work import Actor


class DashboardRequest(HttpRequest):
    """A request of a signed-in person, as the middleware leaves it."""

    user: User
    htmx: HtmxDetails
    request_id: str
    role: HumanRole


View = Callable[..., HttpResponseBase]
SENT_DRAFT = "draft_sent"
SENT_DRAFT_SECONDS = 60
"""The cookie that names a draft whose form was taken; the next page drops it and the cookie."""


def actor_of(request: HttpRequest) -> Actor:
    """Who acts, for the services; it always comes from the session, never from the body."""
    name = cast("User", request.user).get_username()
    return Actor(f"human:{name}", request_id=getattr(request, "request_id", ""))


def may_decide(request: HttpRequest) -> bool:
    """Whether the person behind a request is Sir."""
    return role_of(request.user) is HumanRole.SIR


def page(view: View) -> View:
    """Let readers in; send others to sign in, and those without a role to the 403 page.

    A conflict that a view does not answer itself is refused with the status that the API gives.
    """

    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        role = role_of(request.user)
        if role is None:
            raise PermissionDenied
        cast(DashboardRequest, request).role = role
        try:
            return view(request, *arguments, **options)
        except NotFound as error:
            raise Http404(error.detail) from error
        except Conflict as error:
            return refusal(request, error, back_url=reverse("dashboard:overview"))

    return guarded


def sir_only(view: View) -> View:
    """Let only Sir act. A viewer gets the 403 page, and nothing happens."""

    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        if not may_decide(request):
            raise PermissionDenied
        return view(request, *arguments, **options)

    return page(guarded)


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """Send a person to sign in; a script learns it by status, so that it never shows that page."""
    if request.headers.get("HX-Request") or request.method not in ("GET", "HEAD"):
        response = HttpResponse(status=HTTPStatus.FORBIDDEN)
        response["HX-Redirect"] = redirect_to_login("/").url
        return response
    return redirect_to_login(request.get_full_path())


def is_fragment(request: HttpRequest) -> bool:
    """Whether a script asks for a part of the page."""
    return bool(request.headers.get("HX-Request")) and not request.headers.get("HX-Boosted")


def local_path(request: HttpRequest, path: str) -> str:
    """Return a path of this very site, or nothing: a form cannot send its reader elsewhere."""
    is_ours = path.startswith("/") and url_has_allowed_host_and_scheme(
        path, allowed_hosts=None, require_https=request.is_secure()
    )
    return path if is_ours else ""


def see_other(url: str, *, sent_draft: str = "") -> HttpResponse:
    """Answer a POST with the page to look at next; that page drops the draft that was sent."""
    response = HttpResponseRedirect(url)
    response.status_code = HTTPStatus.SEE_OTHER
    if sent_draft:
        response.set_cookie(SENT_DRAFT, sent_draft, max_age=SENT_DRAFT_SECONDS, samesite="Lax")
    return response


def refusal(request: HttpRequest, error: CountersignError, *, back_url: str) -> HttpResponse:
    """Say inside the shell what was refused and why, with the status that the API gives."""
    context = {"detail": engine_words(error.detail), "title": error.title, "back_url": back_url}
    return render(request, "dashboard/refusal.html", context, status=error.status)


class StreamedFile(StreamingHttpResponse):
    """A download made line by line.

    Under ASGI Django reads a synchronous iterator whole and warns of it, so the lines are handed
    over through a thread, some at a time.
    """

    LINES_AT_ONCE = 500

    def __init__(self, lines: Iterator[str], *, content_type: str, name: str) -> None:
        super().__init__(_in_pieces(lines, self.LINES_AT_ONCE), content_type=content_type)
        self["Content-Disposition"] = f'attachment; filename="{name}"'


async def _in_pieces(lines: Iterator[str], count: int) -> AsyncIterator[bytes]:
    take = sync_to_async(lambda: "".join(islice(lines, count)).encode(), thread_sensitive=True)
    while piece := await take():
        yield piece
