"""The fields of the policy form: made from the policy's own model, so that none is left out.

Each field is named by its dotted path, which is also how the model names its faults.
Source: UI.md section 5.8 ("Policy").
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from django.utils.translation import gettext

from dashboard.assessments import backend_word
from dashboard.boards import seat_word
from dashboard.phrases import listed
from dashboard.policy_words import SECTION_WORDS, fault_words, field_word
from dashboard.verdicts import KINDS, VERDICT_LABELS
from orchestration.errors import Fault
from orchestration.expiry import EXPIRY_OUTCOMES
from orchestration.policy import DEFAULT_POLICY, SEAT_BACKENDS, Policy
from orchestration.selectors.policy import Change, flat
from orchestration.states import DecisionKind, Seat

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

BLANK_RULES = 2
RULE_KEYS = ("key", "text", "text_zh")
EXPIRY_KEYS = ("outcome", "after_seconds", "policy_id")
SEPARATOR = ","


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a field."""

    value: str
    word: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One setting. Shape: `kind` is number, text, lines, choice, switch, expiry, rules or json.

    `parts` are the values of a field of several parts, `default` what stands without an override.
    """

    path: str
    kind: str
    word: str
    value: str
    default: str
    is_changed: bool
    options: Sequence[Option] = ()
    parts: Sequence[Mapping[str, str]] = ()
    rows: int = 0
    changed: Change | None = None
    errors: Sequence[str] = ()

    @property
    def id(self) -> str:
        """The id of its control."""
        return f"policy-{self.path.replace('.', '-')}"


@dataclass(frozen=True, slots=True)
class PolicySection:
    """One form of the page. `errors` are faults of no single field."""

    code: str
    word: str | StrPromise
    hint: str | StrPromise
    fields: Sequence[PolicyField]
    errors: Sequence[str] = field(default_factory=tuple)

    @property
    def changed_count(self) -> int:
        """How many settings differ from their default."""
        return sum(one.is_changed for one in self.fields)

    @property
    def has_errors(self) -> bool:
        """Whether anything in it was refused."""
        return bool(self.errors) or any(one.errors for one in self.fields)


def section_names() -> tuple[str, ...]:
    """The sections in the page's order; one without words of its own comes last."""
    known = [name for name in SECTION_WORDS if name in Policy.model_fields]
    return (*known, *(name for name in Policy.model_fields if name not in known))


def make_sections(
    document: Mapping[str, Any],
    changes: Mapping[str, Change],
    *,
    faults: Sequence[Fault] = (),
) -> list[PolicySection]:
    """Build every section of a policy document, faults beside their fields."""
    defaults = flat(DEFAULT_POLICY.document())
    return [_section(name, document[name], defaults, changes, faults) for name in section_names()]


def _section(
    name: str,
    held: Mapping[str, Any],
    defaults: Mapping[str, Any],
    changes: Mapping[str, Change],
    faults: Sequence[Fault],
) -> PolicySection:
    word, hint = SECTION_WORDS.get(name, (name, ""))
    fields = [
        _field(f"{name}.{key}", held.get(key), defaults[f"{name}.{key}"], changes, faults)
        for key in Policy.model_fields[name].default.__class__.model_fields
    ]
    loose = [fault_words(one["message"]) for one in faults if one["path"] == name]
    return PolicySection(name, word, hint, fields, loose)


def _field(
    path: str,
    value: Any,
    default: Any,
    changes: Mapping[str, Change],
    faults: Sequence[Fault],
) -> PolicyField:
    kind = kind_of(path)
    return PolicyField(
        path=path,
        kind=kind,
        word=setting_word(path),
        value=shown(kind, value),
        default=shown_default(path, default),
        is_changed=value != default,
        options=_options(path, kind, value),
        parts=_parts(kind, value),
        rows=min(max(len(value), 3), 14) if kind == "lines" and isinstance(value, list) else 4,
        changed=changes.get(path),
        errors=_errors(path, faults),
    )


def kind_of(path: str) -> str:
    """Say by which control a setting is edited."""
    section, _dot, key = path.partition(".")
    fixed = {"seats": "choice", "models": "text", "expiry": "expiry"}.get(section)
    if fixed is not None:
        return fixed
    if path == "guardrails.rules":
        return "rules"
    default = getattr(getattr(DEFAULT_POLICY, section), key)
    if isinstance(default, bool):
        return "switch"
    if isinstance(default, int | float):
        return "number"
    if isinstance(default, str):
        return "text"
    is_words = isinstance(default, tuple) and all(isinstance(one, str | int) for one in default)
    if path == "commands.allow" or (is_words and default):
        return "lines"
    return "json"


def setting_word(path: str) -> str:
    """The word of a setting: a seat, a kind of item, or its own."""
    section, _dot, key = path.partition(".")
    if section in ("seats", "models") and key in tuple(Seat):
        return seat_word(key)
    if section == "expiry" and key in tuple(DecisionKind):
        return str(KINDS[DecisionKind(key)].word)
    return field_word(path)


def shown(kind: str, value: Any) -> str:
    """Write a value the way its control holds it."""
    if kind == "lines" and isinstance(value, list):
        return "\n".join(_line(one) for one in value)
    if kind == "choice" and isinstance(value, list):
        return SEPARATOR.join(str(one) for one in value)
    if kind in ("json", "rules") and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=2)
    return "" if value is None else str(value)


def _line(value: Any) -> str:
    return shlex.join(str(one) for one in value) if isinstance(value, list) else str(value)


def shown_default(path: str, default: Any) -> str:
    """Say a default in words; empty where the control itself says enough."""
    kind = kind_of(path)
    if kind == "choice":
        return backend_words(default)
    if kind == "switch":
        return gettext("on") if default else gettext("off")
    if kind == "lines":
        return gettext("%(n)s entries") % {"n": len(default)}
    if kind == "text":
        return str(default) if default else gettext("as needed")
    if kind == "expiry":
        return gettext("waits for you")
    return str(default) if kind == "number" else ""


def backend_words(backends: Iterable[str]) -> str:
    """Say who fills a seat, in order."""
    then = gettext(", then ")
    return then.join(backend_word(one) for one in backends)


def _options(path: str, kind: str, value: Any) -> list[Option]:
    _section, _dot, key = path.partition(".")
    if kind == "choice" and key in tuple(Seat):
        able = sorted(one.value for one in SEAT_BACKENDS[Seat(key)])
        orders = [order for n in range(1, len(able) + 1) for order in permutations(able, n)]
        return [
            Option(SEPARATOR.join(order), backend_words(order), list(order) == value)
            for order in orders
        ]
    if kind == "expiry" and key in tuple(DecisionKind):
        outcome = value.get("outcome", "") if isinstance(value, Mapping) else ""
        allowed = sorted(EXPIRY_OUTCOMES[DecisionKind(key)])
        choices = [Option("", gettext("waits for you"), not outcome)]
        words = [
            (one, str(VERDICT_LABELS[one].word) if one in VERDICT_LABELS else one)
            for one in allowed
        ]
        return choices + [Option(one, word, one == outcome) for one, word in words]
    return []


def _parts(kind: str, value: Any) -> list[Mapping[str, str]]:
    if kind == "expiry":
        held = value if isinstance(value, Mapping) else {}
        return [{key: str(held.get(key) or "") for key in EXPIRY_KEYS}]
    if kind == "rules" and isinstance(value, list):
        rows = [{key: str(one.get(key) or "") for key in RULE_KEYS} for one in value]
        return [*rows, *(dict.fromkeys(RULE_KEYS, "") for _n in range(BLANK_RULES))]
    return []


def _errors(path: str, faults: Sequence[Fault]) -> list[str]:
    """The faults of a field and of what stands inside it, each with its place."""
    found = []
    for one in faults:
        if one["path"] == path or one["path"].startswith(f"{path}."):
            place = [_place(part) for part in one["path"][len(path) + 1 :].split(".") if part]
            said = fault_words(one["message"])
            found.append(f"{listed(place)}: {said}" if place else said)
    return found


def _place(part: str) -> str:
    return gettext("entry %(n)s") % {"n": int(part) + 1} if part.isdigit() else part


def read_section(name: str, posted: QueryDict) -> dict[str, Any]:
    """Read one form. What is no number stays text, so that the model itself names the fault."""
    keys = Policy.model_fields[name].default.__class__.model_fields
    return {key: _read(f"{name}.{key}", posted) for key in keys}


def _read(path: str, posted: QueryDict) -> Any:
    kind = kind_of(path)
    text = posted.get(path, "").replace("\x00", "")
    if kind == "switch":
        return posted.get(path) == "1"
    if kind == "number":
        return _number(text)
    if kind == "choice":
        return [one for one in text.split(SEPARATOR) if one]
    if kind == "lines":
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [_number(one) for one in lines] if path.endswith("_by_depth") else lines
    if kind == "expiry":
        return _expiry(path, posted)
    if kind == "rules":
        return _rules(path, posted)
    if kind == "json":
        return _json(text)
    return text.strip() or None if path.startswith("models.") else text.strip()


def _number(text: str) -> int | float | str:
    cleaned = text.strip()
    for read in (int, float):
        try:
            number = read(cleaned)
        except ValueError:
            continue
        return number if number == number and abs(number) < 1e18 else cleaned
    return cleaned


def _json(text: str) -> Any:
    try:
        return json.loads(text or "[]")
    except (ValueError, RecursionError):
        return text


def _expiry(path: str, posted: QueryDict) -> dict[str, Any] | None:
    held = {key: posted.get(f"{path}.{key}", "").strip() for key in EXPIRY_KEYS}
    if not held["outcome"]:
        return None
    return {**held, "after_seconds": _number(held["after_seconds"])}


def _rules(path: str, posted: QueryDict) -> list[dict[str, str]]:
    """Read the rows of the guardrails; a row with nothing in it is no rule."""
    columns = [posted.getlist(f"{path}.{key}") for key in RULE_KEYS]
    rows = [dict(zip(RULE_KEYS, row, strict=True)) for row in zip(*columns, strict=False)]
    cleaned = [
        {key: value.replace("\x00", "").strip() for key, value in row.items()} for row in rows
    ]
    return [row for row in cleaned if any(row.values())]
