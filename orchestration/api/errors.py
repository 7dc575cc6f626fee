"""Give every error one shape: application/problem+json with a stable code.

Source: DESIGN sections 14 ("Conventions", "Problem") and 17.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from orchestration.api.metrics import count_refusal
from orchestration.errors import CountersignError, Invalid

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
COUNTED = frozenset({409, 422, 429})
"""Refusals that are only counted, not audited."""
_CODES: Mapping[type[exceptions.APIException], str] = {
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "token_invalid",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
    exceptions.ParseError: "malformed",
}
_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    412: "Precondition failed",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}


def problem_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Turn whatever a view raised into a problem document; nothing else leaves the API."""
    request = context.get("request")
    request_id = getattr(getattr(request, "_request", None), "request_id", "")
    document, headers = problem_of(error)
    if document["status"] >= 500:
        document["request_id"] = request_id
    if document["status"] in COUNTED:
        count_refusal(document["status"], document["code"])
    return problem_response(document, headers)


def problem_response(document: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    """Answer with a problem document."""
    return Response(
        dict(document),
        status=document["status"],
        headers=dict(headers) or None,
        content_type=CONTENT_TYPE,
    )


def problem_of(error: Exception) -> tuple[dict[str, Any], dict[str, str]]:
    """Shape an error as a problem document. Shape: (document, response headers)."""
    if isinstance(error, CountersignError):
        return _ours(error)
    if isinstance(error, exceptions.APIException):
        return _of_rest_framework(error)
    if isinstance(error, Http404):
        return problem(404, "not_found", "There is nothing at this address."), {}
    if isinstance(error, PermissionDenied):
        return problem(403, "forbidden", "This is not allowed."), {}
    if isinstance(error, RequestDataTooBig):
        return problem(413, "too_large", "The body is larger than this address takes."), {}
    if isinstance(error, SuspiciousOperation | DjangoValidationError):
        return problem(400, "malformed", "The request is malformed."), {}
    if isinstance(error, OperationalError):
        logger.error("the database did not answer", exc_info=error)
        detail = "The database did not answer. Nothing was changed."
        return problem(503, "unavailable", detail), {"Retry-After": "2"}
    logger.error("unhandled error in the API", exc_info=error)
    return problem(500, "internal", "Something went wrong on our side."), {}


def problem(status: int, code: str, detail: str, **extra: Any) -> dict[str, Any]:
    """Build a problem document."""
    return {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        **extra,
    }


def _ours(error: CountersignError) -> tuple[dict[str, Any], dict[str, str]]:
    document = problem(error.status, error.code, error.detail, **error.extra)
    document["title"] = error.title
    if isinstance(error, Invalid):
        document["errors"] = list(error.errors)
    seconds = error.extra.get("retry_after")
    return document, {"Retry-After": str(seconds)} if seconds is not None else {}


def _of_rest_framework(error: exceptions.APIException) -> tuple[dict[str, Any], dict[str, str]]:
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "error")
    status, detail, headers = error.status_code, str(error.detail), {}
    if isinstance(error, exceptions.Throttled):
        seconds = max(1, math.ceil(getattr(error, "wait", None) or 1))
        headers["Retry-After"] = str(seconds)
        detail = f"Too many requests with this token; the next may come in {seconds} s."
    header = getattr(error, "auth_header", None)
    if header:
        headers["WWW-Authenticate"] = header
    if isinstance(error, exceptions.PermissionDenied) and detail.startswith("CSRF"):
        code = "csrf_failed"
    return problem(status, code, detail), headers
