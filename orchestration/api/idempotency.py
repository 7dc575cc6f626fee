"""`Idempotency-Key` on every POST: the same key and body get the same answer.

Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from django.core.files.uploadedfile import UploadedFile
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.long_poll import WAIT_HEADER
from orchestration.errors import Fault, Invalid
from orchestration.services.idempotency import (
    Answer,
    begin_request,
    give_up_request,
    keep_answer,
)

HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
V = TypeVar("V", bound=ApiView)
Handler = Callable[..., Response]


def idempotent(handler: Handler) -> Handler:
    """Wrap the `post` of a view: with a key, do the work once and repeat its answer."""

    @functools.wraps(handler)
    def keyed(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(view, request, *args, **kwargs)
        if not KEY.match(key):
            message = "must be 1 to 200 printable ASCII characters"
            raise Invalid(f"{HEADER} {message}.", errors=[Fault(path=HEADER, message=message)])
        actor = view.caller.actor
        begun = begin_request(actor=actor, key=key, digest=request_digest(request))
        if isinstance(begun, Answer):
            return _repeat(begun)
        view.record_id = begun
        try:
            response = handler(view, request, *args, **kwargs)
        except Exception:
            give_up_request(record_id=begun, actor=actor)
            raise
        if response.status_code == 204 or response.has_header(WAIT_HEADER):
            # Nothing was there to do, or the answer is not whole yet: what the caller waits for may
            # be there next time. Mail is not sent twice by that; its message_id is its key.
            give_up_request(record_id=begun, actor=actor)
        else:
            body = JSONRenderer().render(response.data).decode()
            keep_answer(record_id=begun, actor=actor, answer=Answer(response.status_code, body))
        return response

    keyed.is_idempotent = True  # type: ignore[attr-defined]  # a test looks for it
    return keyed


def _repeat(answer: Answer) -> Response:
    return Response(
        json.loads(answer.body),
        status=answer.status,
        headers={"Idempotent-Replayed": "true"},
    )


def request_digest(request: Request) -> str:
    """Digest what a request asks for: method, path and the body as a document."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    data = request.data
    if isinstance(data, dict) and hasattr(data, "lists"):
        for name, values in sorted(data.lists()):
            for value in values:
                digest.update(_part(name, value))
    else:
        digest.update(json.dumps(data, sort_keys=True).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _part(name: str, value: Any) -> bytes:
    """Digest one field of a form, a file by its bytes."""
    if not isinstance(value, UploadedFile):
        return f"{name}={value}\n".encode("utf-8", "surrogatepass")
    held = hashlib.sha256()
    for piece in value.chunks():
        held.update(piece)
    value.seek(0)
    return f"{name}:{value.name}:{held.hexdigest()}\n".encode("utf-8", "surrogatepass")
