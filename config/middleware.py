"""What every HTTP answer carries: a request id and the security headers Django does not set."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from config.logs import current_request_id

REQUEST_ID_BYTES = 8
GIVEN_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


GetResponse = Callable[[HttpRequest], HttpResponseBase]


class RequestIdMiddleware:
    """Name the request: `request.request_id`, the log's request_id and the X-Request-ID header."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Take a well-formed id from the caller, else make one; tell the caller."""
        given = request.headers.get("X-Request-ID", "")
        is_kept = GIVEN_REQUEST_ID.fullmatch(given)
        request_id = given if is_kept else secrets.token_hex(REQUEST_ID_BYTES)
        request.request_id = request_id  # type: ignore[attr-defined]  # ours, read by the API
        current_request_id.set(request_id)
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


class SecurityHeadersMiddleware:
    """Forbid inline script and style, foreign origins and framing, unless the view says."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add Content-Security-Policy and Permissions-Policy unless the view did."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", content_security_policy(request))
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response


class PageCompressionMiddleware(GZipMiddleware):
    """Compress pages and their parts; what machines ask for is small and asked for often."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress HTML for those who take it. Random bytes hide its length from guesses."""
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)


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
