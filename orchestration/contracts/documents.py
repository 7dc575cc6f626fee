"""Read documents that people and agents hand in: JSON values, typed models, faults in plain words.

Two passes. The first makes sure that the value is JSON that a database can store; the second is the
pydantic model. Every fault of both is reported with its dotted path.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from orchestration.errors import Fault, Invalid

MAX_VALUES = 2_000_000
"""Values in one document. YAML aliases that multiply stop here, before they fill the memory."""
MAX_NAMED_FAULTS = 100
JSON_SCALARS = frozenset({str, int, float, bool, type(None)})

MESSAGES: Mapping[str, Callable[[dict[str, Any]], str]] = MappingProxyType(
    {
        "missing": lambda c: "is required",
        "string_type": lambda c: "must be text",
        "string_too_short": lambda c: "must not be empty",
        "string_too_long": lambda c: f"must be at most {c['max_length']} characters",
        "int_type": lambda c: "must be a whole number",
        "float_type": lambda c: "must be a number",
        "decimal_type": lambda c: "must be a number",
        "decimal_parsing": lambda c: "must be a number",
        "finite_number": lambda c: "must be a finite number",
        "bool_type": lambda c: "must be true or false",
        "tuple_type": lambda c: "must be a list",
        "list_type": lambda c: "must be a list",
        "dict_type": lambda c: "must be an object",
        "mapping_type": lambda c: "must be an object",
        "model_type": lambda c: "must be an object",
        "model_attributes_type": lambda c: "must be an object",
        "enum": lambda c: f"must be one of {c['expected']}",
        "literal_error": lambda c: f"must be one of {c['expected']}",
        "greater_than": lambda c: f"must be more than {c['gt']}",
        "greater_than_equal": lambda c: f"must be at least {c['ge']}",
        "less_than_equal": lambda c: f"must be at most {c['le']}",
        "too_short": lambda c: f"must have at least {c['min_length']} entries",
        "too_long": lambda c: f"must have at most {c['max_length']} entries",
        "timezone_aware": lambda c: "must name its time zone",
    }
)

M = TypeVar("M", bound=BaseModel)


class Document(BaseModel):
    """Base of every model of a handed-in document: frozen, unknown fields kept in `extra`."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=False, populate_by_name=True)

    extra: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def keep_unknown_fields(cls, value: Any) -> Any:
        """Move the fields that this model does not know into `extra`."""
        if not isinstance(value, Mapping):
            return value
        names = field_names(cls)
        if names.issuperset(value):
            return value
        unknown = value.keys() - names
        known = {key: held for key, held in value.items() if key not in unknown}
        kept = known.get("extra", {})
        if isinstance(kept, Mapping):
            known["extra"] = {**kept, **{key: value[key] for key in sorted(unknown)}}
        return known

    def to_document(self) -> dict[str, Any]:
        """Give the canonical JSON form. Shape: only what differs from the defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def from_stored(cls, document: Mapping[str, Any]) -> Self:
        """Read back what `to_document` wrote, without the checks on the outside's faults."""
        return cls.model_validate(document)


_FIELD_NAMES: dict[type[BaseModel], frozenset[str]] = {}


def field_names(model: type[BaseModel]) -> frozenset[str]:
    """Names that a document may use for the fields of `model`, aliases included."""
    names = _FIELD_NAMES.get(model)
    if names is None:
        aliases: set[str] = set()
        for info in model.model_fields.values():
            aliases.update(_alias_names(info.validation_alias))
        names = frozenset(model.model_fields) | aliases
        _FIELD_NAMES[model] = names
    return names


def unknown_fields(model: type[BaseModel], document: Mapping[str, Any]) -> list[str]:
    """Top-level names that `model` does not know, sorted; a REST body refuses them."""
    return sorted(str(key) for key in document.keys() - field_names(model))


def parse_document(
    model: type[M],
    document: object,
    *,
    detail: str = "The document is not valid.",
    error: type[Invalid] = Invalid,
) -> M:
    """Turn a handed-in document into its model.

    Errors: `error` (Invalid unless another is named) listing every fault with its path.
    """
    require_json(document, detail=detail, error=error)
    try:
        return model.model_validate(document)
    except ValidationError as failure:
        raise error(detail, errors=faults_of(failure)) from None


def faults_of(failure: ValidationError) -> list[Fault]:
    """Say pydantic's errors in our words. Shape: in document order; `path` is `` for the whole."""
    details = failure.errors(include_url=False, include_input=False)
    return [Fault(path=_dotted(item["loc"]), message=_message(item)) for item in details]


def sayable(key: object) -> str:
    """A key of somebody's document as an answer can name it: halves of characters replaced."""
    return str(key).encode("utf-8", "replace").decode()


def fault(code: str, message: str) -> PydanticCustomError:
    """Make an error for a validator; `message` is shown as it is, braces and all."""
    return PydanticCustomError("contract", "{code}: {text}", {"code": code, "text": message})


def require_json(document: object, *, detail: str, error: type[Invalid] = Invalid) -> bytes:
    """Check that a value is JSON that any database stores, and give its bytes (UTF-8, compact).

    Errors: `error` naming values that are not JSON, NUL characters, broken Unicode and NaN.
    """
    if not _is_storable(document):
        raise error(detail, errors=list(_json_faults(document)))
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except RecursionError:
        raise error(detail, errors=[Fault(path="", message="is nested too deeply")]) from None
    except ValueError:
        raise error(detail, errors=list(_json_faults(document))) from None


def _is_storable(document: object) -> bool:
    stack: list[Any] = [document]
    seen = 0
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            if "\x00" in value:
                return False
        elif kind is dict:
            seen += len(value)
            if not all(type(key) is str and "\x00" not in key for key in value):
                return False
            stack.extend(value.values())
        elif kind is list or kind is tuple:
            seen += len(value)
            stack.extend(value)
        elif kind not in JSON_SCALARS:
            return False
        if seen > MAX_VALUES:
            return False
    return True


def _json_faults(document: object) -> Iterable[Fault]:
    """Find what `_is_storable` or the encoder refused, with paths. Shape: at most 100 faults."""
    stack: list[tuple[str, Any]] = [("", document)]
    seen, found = 0, 0
    while stack and found < MAX_NAMED_FAULTS:
        path, value = stack.pop()
        seen += 1
        if seen > MAX_VALUES:
            yield Fault(path="", message=f"has more than {MAX_VALUES} values")
            return
        if isinstance(value, Mapping):
            keys = [key for key in value if _text_fault(key) is not None]
            for key in keys[:MAX_NAMED_FAULTS]:
                found += 1
                yield Fault(path=path, message=f"key {key!r} {_text_fault(key)}")
            stack.extend((_join(path, key), held) for key, held in reversed(list(value.items())))
        elif isinstance(value, list | tuple):
            stack.extend((_join(path, at), held) for at, held in reversed(list(enumerate(value))))
        else:
            message = _scalar_fault(value)
            if message is not None:
                found += 1
                yield Fault(path=path, message=message)


def _scalar_fault(value: object) -> str | None:
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if type(value) not in JSON_SCALARS:
        return f"is a {type(value).__name__}, which JSON does not have; put it in quotes"
    return None


def _text_fault(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be text"
    if "\x00" in value:
        return "contains a NUL character"
    if any("\ud800" <= char <= "\udfff" for char in value):
        return "contains half a surrogate pair, which is not valid Unicode"
    return None


def _message(item: ErrorDetails) -> str:
    context: dict[str, Any] = dict(item.get("ctx", {}))
    if item["type"] == "contract":
        return str(context["text"])
    said = MESSAGES.get(item["type"])
    return said(context) if said is not None else str(item["msg"])


def _dotted(location: Iterable[int | str]) -> str:
    return ".".join(str(part) for part in location)


def _join(path: str, part: object) -> str:
    return f"{path}.{part}" if path else str(part)


def _alias_names(alias: object) -> set[str]:
    if isinstance(alias, str):
        return {alias}
    choices = getattr(alias, "choices", [])
    return {choice for choice in choices if isinstance(choice, str)}
