"""What every HTTP answer carries: a request id and the security headers Django does not set."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase

from config.logs import current_request_id

REQUEST_ID_BYTES = 8
GIVEN_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class HeaderMiddleware:
    """Base of middleware that runs sync and async alike, so that ASGI needs no thread hop."""

    sync_capable = True
    async_capable = True

    def __init__(
        self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]
    ) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request with the headers added."""
        if self.is_async:
            return self._answer(request)
        self.before(request)
        response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        self.after(request, response)
        return response

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        self.before(request)
        response = self.get_response(request)
        assert not isinstance(response, HttpResponseBase)
        answer = await response
        self.after(request, answer)
        return answer

    def before(self, request: HttpRequest) -> None:
        """Prepare the request."""

    def after(self, request: HttpRequest, response: HttpResponseBase) -> None:
        """Add the headers."""


class RequestIdMiddleware(HeaderMiddleware):
    """Name the request: `request.request_id`, the log's request_id and the X-Request-ID header."""

    def before(self, request: HttpRequest) -> None:
        """Take a well-formed id from the caller, else make one."""
        given = request.headers.get("X-Request-ID", "")
        request_id = (
            given if GIVEN_REQUEST_ID.fullmatch(given) else secrets.token_hex(REQUEST_ID_BYTES)
        )
        request.request_id = request_id  # type: ignore[attr-defined]  # ours, read by the API
        current_request_id.set(request_id)

    def after(self, request: HttpRequest, response: HttpResponseBase) -> None:
        """Tell the caller the id, so that a report can name it."""
        response["X-Request-ID"] = current_request_id.get()


class SecurityHeadersMiddleware(HeaderMiddleware):
    """Forbid inline script and style, foreign origins and framing, unless the view says."""

    def after(self, request: HttpRequest, response: HttpResponseBase) -> None:
        """Add Content-Security-Policy and Permissions-Policy unless the view did."""
        response.headers.setdefault("Content-Security-Policy", content_security_policy(request))
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)


def content_security_policy(request: HttpRequest) -> str:
    """Return the policy for this host. `'self'` does not cover sockets in every browser."""
    try:
        host = request.get_host()
    except DisallowedHost:
        sockets = ""
    else:
        sockets = f" {'wss' if request.is_secure() else 'ws'}://{host}"
    return (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src 'self'{sockets}; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )
