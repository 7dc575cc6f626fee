"""Pieces of the OpenAPI document that many views share."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from orchestration.api.shapes.base import Problem

HEADER: Final = "header"
KEYED = [
    OpenApiParameter(
        "Idempotency-Key",
        str,
        HEADER,
        description="1 to 200 printable ASCII characters. The same key and body do the work once.",
    )
]
IF_MATCH = [
    OpenApiParameter(
        "If-Match",
        str,
        HEADER,
        description="The version that was seen, as `ETag` gave it; another one stored is 412.",
    )
]
LEASE = [
    OpenApiParameter(
        "X-Lease-Token",
        str,
        HEADER,
        description="Fences two processes of one agent: a token of an earlier lease is refused.",
    )
]
_TEXTS = {
    400: "The body is malformed; `line` and `column` say where.",
    401: "No token or session, or an unknown one.",
    403: "The caller may not do this.",
    404: "It does not exist, or the caller may not see it.",
    406: "None of the media types asked for is made here.",
    409: "The state forbids it now; `allowed` lists the moves that are open.",
    412: "The stored version is another one than was seen.",
    413: "The body is too large.",
    415: "The content type is not taken here.",
    422: "The request is invalid; `errors` lists every fault.",
    429: "Too many requests; `Retry-After` says when.",
    503: "A service that is needed did not answer.",
}


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Describe the refusals of an endpoint, each a problem document."""
    return {
        (status, "application/problem+json"): OpenApiResponse(Problem, _TEXTS[status])
        for status in statuses
    }


COMMON = (422, 429)
"""What any request may be refused with: a query that cannot be read, too many requests."""
COMMON_WITH_BODY = (400, 413, 415)


def add_common_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe on every operation the refusals that come before its view is asked."""
    media = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for item in result["paths"].values():
        for operation in item.values():
            more = COMMON + (COMMON_WITH_BODY if "requestBody" in operation else ())
            known = operation["responses"]
            for status in more:
                known.setdefault(str(status), {"content": media, "description": _TEXTS[status]})
            operation["responses"] = dict(sorted(known.items()))
    return result


class ModelExtension(PydanticExtension):  # type: ignore[no-untyped-call]
    """Describe our models: what is sent as it is read, what is answered as it is written."""

    priority = 1

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        """Return the schema; `extra`, where documents keep what they do not know, is not shown."""
        schema: dict[str, Any] = self.target.model_json_schema(
            ref_template="#/components/schemas/{model}",
            mode="validation" if direction == "request" else "serialization",
        )
        for name, part in schema.pop("$defs", {}).items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=name, type=ResolvedComponent.SCHEMA, object=name, schema=_without_extra(part)
            )
            auto_schema.registry.register_on_missing(component)
        return _without_extra(schema)


def _without_extra(schema: dict[str, Any]) -> dict[str, Any]:
    schema.get("properties", {}).pop("extra", None)
    return schema
