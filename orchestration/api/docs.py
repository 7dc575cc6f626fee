"""The OpenAPI document, and a page of it that people read. No script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from orchestration.api.base import ApiView

METHODS = ("get", "post", "put", "patch", "delete")
CACHE = {"Cache-Control": "max-age=300"}


@lru_cache(maxsize=1)
def openapi_document() -> Mapping[str, Any]:
    """Generate the document of every endpoint, once: it is the same for every caller."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: Mapping[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


class AnyAccept(BaseContentNegotiation):
    """Answer in our own form, whatever the caller would like best: a browser asks for HTML."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Take the first parser; nothing is sent here."""
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Take the first renderer."""
        return renderers[0], renderers[0].media_type


class PublicView(ApiView):
    """Base of what anybody may read: what the product can do, and nothing of what it did."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    content_negotiation_class = AnyAccept


class SchemaView(PublicView):
    """The OpenAPI document."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Give it as JSON, which is YAML too; `?format=yaml` gives the committed spelling."""
        is_yaml = request.query_params.get("format") == "yaml"
        renderer = OpenApiYamlRenderer() if is_yaml else OpenApiJsonRenderer()
        content = renderer.render(openapi_document(), renderer_context={})
        return HttpResponse(content, content_type=renderer.media_type, headers=CACHE)


class DocsView(PublicView):
    """The same document as a page."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Render it on the server."""
        document = openapi_document()
        page = {
            "title": document["info"]["title"],
            "groups": _groups(document),
            "schemas": _schemas(document),
        }
        response = render(request._request, "api/docs.html", page)
        response["Cache-Control"] = CACHE["Cache-Control"]
        return response


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as the page shows it."""

    name: str
    method: str
    path: str
    description: str
    parameters: list[dict[str, Any]]
    body: str
    responses: list[tuple[str, str, str]]


@lru_cache(maxsize=1)
def _sorted_operations() -> list[tuple[str, Operation]]:
    return sorted(
        ((tag, one) for tag, one in _operations(openapi_document())), key=lambda pair: pair[0]
    )


def _groups(document: Mapping[str, Any]) -> list[tuple[str, list[Operation]]]:
    groups: dict[str, list[Operation]] = {}
    for tag, operation in _sorted_operations():
        groups.setdefault(tag, []).append(operation)
    return list(groups.items())


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            found = item[method]
            parameters = [
                {
                    "name": one["name"],
                    "place": one["in"],
                    "required": one.get("required", False),
                    "text": one.get("description", ""),
                }
                for one in found.get("parameters", ())
            ]
            yield (
                found["tags"][0],
                Operation(
                    name=found["operationId"],
                    method=method.upper(),
                    path=path,
                    description=found.get("description", ""),
                    parameters=parameters,
                    body=_names_of(found.get("requestBody", {})),
                    responses=[
                        (status, _names_of(answer), answer.get("description", ""))
                        for status, answer in sorted(found["responses"].items())
                    ],
                ),
            )


def _names_of(part: Mapping[str, Any]) -> str:
    """Name the schemas of a request or an answer."""
    names = []
    for media, content in part.get("content", {}).items():
        reference = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        names.append(reference or media)
    return ", ".join(dict.fromkeys(names))


def _schemas(document: Mapping[str, Any]) -> list[tuple[str, str, list[tuple[str, str, bool]]]]:
    """List the schemas. Shape: (name, description, [(field, type, whether it is required)])."""
    listed = []
    for name, schema in document["components"].get("schemas", {}).items():
        required = set(schema.get("required", ()))
        fields = [
            (field, _type_of(held), field in required)
            for field, held in schema.get("properties", {}).items()
        ]
        listed.append((name, schema.get("description", ""), fields))
    return listed


def _type_of(schema: Mapping[str, Any]) -> str:
    """Say a field's type in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for joined in ("anyOf", "oneOf", "allOf"):
        if joined in schema:
            return " | ".join(dict.fromkeys(_type_of(one) for one in schema[joined]))
    if schema.get("type") == "array":
        return f"[{_type_of(schema.get('items', {}))}]"
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    kind = schema.get("type", "any")
    return str(schema.get("format", kind)) if kind == "string" else str(kind)
