"""Errors that callers handle. Each has a stable `code` and the HTTP status the API answers with.

Nothing in here imports Django: the rules raise these too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class Fault(TypedDict):
    """One fault in a document. Shape: `path` is dotted (`steps.3.id`), `message` a sentence."""

    path: str
    message: str


class CountersignError(Exception):
    """Base of every error a caller is expected to handle."""

    code = "error"
    status = 400
    title = "Bad request"

    def __init__(self, detail: str, *, code: str | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code
        self.extra: Mapping[str, Any] = extra


class NotFound(CountersignError):
    """The thing does not exist, or the caller may not see it."""

    code, status, title = "not_found", 404, "Not found"


class Forbidden(CountersignError):
    """The caller is known but may not do this."""

    code, status, title = "forbidden", 403, "Forbidden"


class Invalid(CountersignError):
    """A document or value is malformed. `errors` lists every fault found."""

    code, status, title = "invalid", 422, "Invalid input"

    def __init__(
        self, detail: str, *, errors: Sequence[Fault] = (), code: str | None = None, **extra: Any
    ) -> None:
        super().__init__(detail, code=code, **extra)
        self.errors: list[Fault] = list(errors)


class PolicyInvalid(Invalid):
    """A policy document has an unknown key or a value out of range."""

    code = "policy_invalid"


class PlanInvalid(Invalid):
    """A plan breaks the schema or its graph is not a DAG."""

    code = "plan_invalid"


class TooLarge(CountersignError):
    """The body is larger than the limit it names, in bytes."""

    code, status, title = "too_large", 413, "Too large"


class Conflict(CountersignError):
    """The state of the row forbids this now."""

    code, status, title = "conflict", 409, "Conflict"


class IllegalTransition(Conflict):
    """The state table does not allow the move. `allowed` lists the moves it does."""

    code = "illegal_transition"

    def __init__(self, detail: str, *, allowed: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(detail, allowed=list(allowed), **extra)
        self.allowed = list(allowed)


class NotReady(Conflict):
    """The task cannot be claimed. `reason` is a `NotReadyReason`."""

    code = "not_ready"


class LeaseLost(Conflict):
    """The caller's lease ended or another holds it. `holder` names the present one, if any."""

    code = "lease_lost"


class WrongLeaseToken(Conflict):
    """The lease token is none that this work was ever given; the caller's lease may well live."""

    code = "wrong_lease_token"


class MissingOutput(Conflict):
    """Review was asked for without an output."""

    code = "missing_output"


class MissingHandoff(Conflict):
    """Review was asked for without a hand-off."""

    code = "missing_handoff"


class HandshakeRequired(Conflict):
    """The task may not start before its executor's intent is confirmed.

    `handshake` is the state of the intent that waits, None where none was sent.
    """

    code = "handshake_required"


class MessageConflict(Conflict):
    """Another mail stands under this `message_id`."""

    code = "message_conflict"


class AlreadyDecided(Conflict):
    """Another verdict stands. `standing` is `{verdict, decided_by, decided_at, reason}`."""

    code = "already_decided"


class DecisionClosed(Conflict):
    """The decision expired or was withdrawn before this verdict came."""

    code = "decision_closed"


class ProjectSuspended(Conflict):
    """The project is not active; nothing new may be claimed."""

    code = "project_suspended"


class Stale(CountersignError):
    """The caller saw an older version or another digest than the stored one."""

    code, status, title = "stale", 412, "Precondition failed"


class Unavailable(CountersignError):
    """A service we need (database, broker) did not answer."""

    code, status, title = "unavailable", 503, "Service unavailable"


class EnvironmentDown(CountersignError):
    """What a command needs is not there for now: it is tried again later, on the same work."""

    code, status, title = "environment_down", 503, "Service unavailable"


class WorkspaceError(Invalid):
    """A path leaves the workspace, links out of it, or the workspace is no allowed root."""

    code = "workspace"
