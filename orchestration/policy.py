"""The project policy: every threshold, limit, trigger word and seat binding, with its default.

One frozen object per policy document. `load_policy` caches, so callers parse as often as they like.
Source: DESIGN sections 2, 5 to 9 and 14 ("Policy").
"""

from __future__ import annotations

import json
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from orchestration import trigger_words
from orchestration.contracts.checks import Checks
from orchestration.errors import Fault, PolicyInvalid
from orchestration.expiry import EXPIRY_OUTCOMES
from orchestration.guardrails import Guardrails
from orchestration.notification_policy import Notifications
from orchestration.states import DecisionKind, Seat

MAX_WORDS = 500
MAX_WORD_LENGTH = 200
MAX_COMMAND_LENGTH = 4_096
GAP_MARK = "…"
"""In a trigger phrase: any text between two parts, as in `先…然后…最后`."""


class Backend(StrEnum):
    """Who can fill a seat. `rules` and `command` are the system, independent of every agent."""

    RULES = "rules"
    COMMAND = "command"
    EXTERNAL = "external"


_R, _C, _X = Backend.RULES, Backend.COMMAND, Backend.EXTERNAL
SEAT_BACKENDS: Mapping[Seat, frozenset[Backend]] = MappingProxyType(
    {
        Seat.SCORER: frozenset({_R, _X}),
        Seat.PLANNER: frozenset({_R, _X}),
        Seat.AUDITOR: frozenset({_R, _X}),
        Seat.EXECUTOR: frozenset({_C, _X}),
        Seat.QA: frozenset({_R, _X}),
        Seat.FIXER: frozenset({_C, _X}),
        Seat.CROSS_VERIFIER: frozenset({_X}),
        Seat.VALIDATOR: frozenset({_R, _X}),
    }
)
"""Backends that know how to fill each seat; a policy may only choose among these."""


def _strict_text(value: str) -> str:
    """Refuse text without a letter, a digit or a symbol; keep the rest as written."""
    if not any(unicodedata.category(character)[0] in "LNPS" for character in value):
        raise ValueError("must not be blank")
    return value.strip()


def _phrase(value: str) -> str:
    """Refuse a trigger phrase that has nothing but marks on one side of a gap."""
    text = _strict_text(value.replace("...", GAP_MARK))
    if not all(any(map(str.isalnum, part)) for part in text.split(GAP_MARK)):
        raise ValueError(f"{GAP_MARK} must stand between two parts")
    return text


def _argv_prefix(value: object) -> object:
    """Split an entry written as one string the way a shell would."""
    if not isinstance(value, str):
        return value
    if len(value) > MAX_COMMAND_LENGTH:
        raise ValueError(f"has {len(value)} characters; at most {MAX_COMMAND_LENGTH} are split")
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from error


def _distinct(value: tuple[Backend, ...]) -> tuple[Backend, ...]:
    """Refuse a seat without a backend, or one that names a backend twice."""
    if not value or len(set(value)) != len(value):
        raise ValueError("name at least one backend, each once")
    return value


Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
CountOrZero = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Seconds = Annotated[int, Field(strict=True, ge=1, le=366 * 86_400)]
TimeoutByDepth = Annotated[tuple[Seconds, ...], Field(min_length=4, max_length=4)]
Bytes = Annotated[int, Field(strict=True, ge=1_024, le=1 << 40)]
Word = Annotated[str, Field(strict=True, max_length=MAX_WORD_LENGTH), AfterValidator(_strict_text)]
Phrase = Annotated[str, Field(strict=True, max_length=MAX_WORD_LENGTH), AfterValidator(_phrase)]
Words = Annotated[tuple[Word, ...], Field(max_length=MAX_WORDS)]
Phrases = Annotated[tuple[Phrase, ...], Field(max_length=MAX_WORDS)]
Argument = Annotated[str, Field(strict=True, min_length=1, max_length=4_096)]
ArgvPrefix = Annotated[
    tuple[Argument, ...], Field(min_length=1, max_length=64), BeforeValidator(_argv_prefix)
]
Backends = Annotated[tuple[Backend, ...], AfterValidator(_distinct)]


class Section(BaseModel):
    """Base of every part of the policy: immutable, hashable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SeatBindings(Section):
    """For each seat the backends to try, the first that can fill it wins."""

    scorer: Backends = (_R,)
    planner: Backends = (_R, _X)
    auditor: Backends = (_R,)
    executor: Backends = (_C, _X)
    qa: Backends = (_R,)
    fixer: Backends = (_C, _X)
    cross_verifier: Backends = (_X,)
    validator: Backends = (_R,)

    @field_validator("*")
    @classmethod
    def _can_fill(cls, value: tuple[Backend, ...], info: ValidationInfo) -> tuple[Backend, ...]:
        """Refuse a backend that cannot fill the seat."""
        seat = Seat(str(info.field_name))
        wrong = [backend for backend in value if backend not in SEAT_BACKENDS[seat]]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} cannot fill the seat {seat}")
        return value


class ModelHints(Section):
    """The model each seat is advised to use; none means as needed."""

    scorer: Word | None = None
    planner: Word | None = "opus"
    auditor: Word | None = "sonnet"
    executor: Word | None = None
    qa: Word | None = "sonnet"
    fixer: Word | None = None
    cross_verifier: Word | None = None
    validator: Word | None = None


class Thresholds(Section):
    """The numbers the method turns on, named as its source names them."""

    s0_message_length_threshold: Count = 200
    s1_simple_threshold: Annotated[int, Field(strict=True, ge=5, le=25)] = 8
    s1_medium_threshold: Annotated[int, Field(strict=True, ge=5, le=25)] = 15
    s2_max_revision_rounds: CountOrZero = 2
    dynamic_upgrade_failure_threshold: Count = 2
    max_retries: Count = 3
    step_attempts: Count = 2
    fix_rounds: Count = 3

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Refuse a medium band that ends before it starts."""
        if self.s1_medium_threshold < self.s1_simple_threshold:
            raise ValueError("s1_medium_threshold must not be below s1_simple_threshold")
        return self


class Limits(Section):
    """What one task, assignment or command may use. Units: in each name."""

    depth: Annotated[int, Field(strict=True, ge=0, le=3)] = 3
    parallel_children: Count = 10
    children: Count = 100
    turns: Count = 30
    cost_usd: Annotated[float, Field(strict=True, gt=0, le=1_000_000)] = 5.0
    timeouts_seconds_by_depth: TimeoutByDepth = (28_800, 7_200, 3_600, 1_800)
    lease_seconds: Seconds = 900
    transient_retries: CountOrZero = 10
    concurrent_roots: Count = 1
    handshake_ack_seconds: Seconds = 600
    agent_seen_seconds: Seconds = 900
    tool_calls: Count = 200
    repeated_tool_calls: Count = 10
    command_timeout_seconds: Seconds = 600
    command_output_bytes: Bytes = 10_000_000
    command_memory_bytes: Bytes = 4 << 30

    def timeout_seconds(self, depth: int) -> int:
        """The timeout of one assignment on a task of this depth."""
        return self.timeouts_seconds_by_depth[depth]


class Triggers(Section):
    """Words and phrases that S0, S1 and the red lines look for, Chinese and English in one list.

    Shape: a word with Chinese characters matches anywhere; any other matches between word
    boundaries, verbs and nouns inflected too. In phrases `…` stands for any text between two
    parts; what else red lines may hold is told in rules/redlines.py.
    """

    intent_verbs: Words = trigger_words.INTENT_VERBS
    scope_words: Words = trigger_words.SCOPE_WORDS
    explicit_triggers: Phrases = trigger_words.EXPLICIT_TRIGGERS
    uncertainty: Phrases = trigger_words.UNCERTAINTY
    multi_step: Phrases = trigger_words.MULTI_STEP
    action_verbs: Words = trigger_words.ACTION_VERBS
    small_talk: Words = trigger_words.SMALL_TALK
    continuations: Words = trigger_words.CONTINUATIONS
    questions: Words = trigger_words.QUESTIONS
    question_endings: Words = trigger_words.QUESTION_ENDINGS
    instructions: Words = trigger_words.INSTRUCTIONS
    red_lines: Phrases = trigger_words.RED_LINES


class Commands(Section):
    """Commands a plan may run without asking, as argv prefixes."""

    allow: Annotated[tuple[ArgvPrefix, ...], Field(max_length=MAX_WORDS)] = ()

    def allows(self, argv: Sequence[str]) -> bool:
        """Say whether the command starts with an allowed prefix, argument by argument."""
        words = tuple(argv)
        return any(words[: len(prefix)] == prefix for prefix in self.allow)


class ExpiryRule(Section):
    """A named automatic outcome; the card shows it before it happens."""

    policy_id: Annotated[str, Field(strict=True, pattern=r"\A[a-z0-9][a-z0-9._-]{0,63}\z")]
    after_seconds: Seconds
    outcome: Word


class Expiry(Section):
    """What happens when a decision is left open; none means it waits, for ever if need be."""

    medium_defect: ExpiryRule | None = None
    waiting_human: ExpiryRule | None = None
    max_retries: ExpiryRule | None = None
    plan_rejected: ExpiryRule | None = None
    clarification: ExpiryRule | None = None
    command_approval: ExpiryRule | None = None
    budget_exceeded: ExpiryRule | None = None
    final_review: ExpiryRule | None = None
    safe_stop: ExpiryRule | None = None
    high_notice: ExpiryRule | None = None

    @field_validator("*")
    @classmethod
    def _may_happen(cls, value: ExpiryRule | None, info: ValidationInfo) -> ExpiryRule | None:
        """Refuse an outcome that silence may not give."""
        if value is None:
            return None
        kind = DecisionKind(str(info.field_name))
        allowed = EXPIRY_OUTCOMES[kind]
        if value.outcome not in allowed:
            rest = f"only {' or '.join(sorted(allowed))} can" if allowed else "nothing can"
            raise ValueError(
                f"silence is never consent: {value.outcome} cannot happen by expiry"
                f" for {kind}, {rest}"
            )
        return value


class WorkflowSwitches(Section):
    """Switches of the workflows."""

    subcoding_may_spawn: Annotated[bool, Field(strict=True)] = True


class Policy(Section):
    """One project's policy. Shape: `document()` is what the API shows and PATCH merges into."""

    seats: SeatBindings = SeatBindings()
    models: ModelHints = ModelHints()
    thresholds: Thresholds = Thresholds()
    limits: Limits = Limits()
    triggers: Triggers = Triggers()
    commands: Commands = Commands()
    expiry: Expiry = Expiry()
    notifications: Notifications = Notifications()
    workflow: WorkflowSwitches = WorkflowSwitches()
    guardrails: Guardrails = Guardrails()
    checks: Checks = Checks()

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Policy:
        """Read a whole or partial document; what it leaves out keeps its default.

        Errors: PolicyInvalid naming every unknown key and every value out of range.
        """
        try:
            return cls.model_validate(_plain(document))
        except ValidationError as error:
            raise _invalid(error) from error

    def merged(self, patch: Mapping[str, Any]) -> Policy:
        """Return a policy with the patch merged in; lists are replaced whole.

        Errors: PolicyInvalid as `parse`.
        """
        return Policy.parse(merge_documents(self.document(), _plain(patch)))

    def document(self) -> dict[str, Any]:
        """Return the whole policy as JSON values."""
        return self.model_dump(mode="json")

    def backends(self, seat: Seat) -> tuple[Backend, ...]:
        """Return the backends to try for a seat, in order."""
        backends: tuple[Backend, ...] = getattr(self.seats, seat.value)
        return backends

    def model_hint(self, seat: Seat) -> str | None:
        """Return the advised model of a seat, none when it is as needed."""
        hint: str | None = getattr(self.models, seat.value)
        return hint

    def expiry_rule(self, kind: DecisionKind) -> ExpiryRule | None:
        """Return the named automatic outcome of a kind of decision, if there is one."""
        rule: ExpiryRule | None = getattr(self.expiry, kind.value)
        return rule


def _plain(document: object) -> dict[str, Any]:
    """Refuse what is not an object with text keys."""
    if not isinstance(document, Mapping):
        raise PolicyInvalid(
            "The policy must be an object.", errors=[Fault(path="", message="must be an object")]
        )
    return {str(key): value for key, value in document.items()}


def merge_documents(base: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge objects key by key; anything else in the patch replaces what was there."""
    merged = dict(base)
    for key, value in patch.items():
        standing = merged.get(key)
        if isinstance(standing, dict) and isinstance(value, Mapping):
            merged[key] = merge_documents(standing, value)
        else:
            merged[key] = value
    return merged


def _invalid(error: ValidationError) -> PolicyInvalid:
    """Turn pydantic's findings into our faults."""
    faults: list[Fault] = []
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        message = "unknown key" if found["type"] == "extra_forbidden" else found["msg"]
        path = ".".join(str(part) for part in found["loc"])
        faults.append(Fault(path=path, message=message.removeprefix("Value error, ")))
    named = "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults[:9])
    return PolicyInvalid(f"The policy has {len(faults)} fault(s): {named}", errors=faults)


@lru_cache(maxsize=256)
def load_policy(document_json: str) -> Policy:
    """Read a stored policy document, once per distinct text.

    Errors: PolicyInvalid for text that is not JSON, else as `Policy.parse`.
    """
    try:
        document = json.loads(document_json)
    except (ValueError, RecursionError) as error:
        raise PolicyInvalid(
            "The policy is not JSON.", errors=[Fault(path="", message=str(error))]
        ) from error
    return Policy.parse(document)


DEFAULT_POLICY = Policy()
