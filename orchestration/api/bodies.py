"""What callers send: one model a request. A field that a model does not know is refused.

Documents inside a body (plans, outputs, results) are the contracts of `orchestration.contracts`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from orchestration.contracts.plan import Names
from orchestration.contracts.results import ToolCallInput, Usage
from orchestration.states import Route, Seat

MAX_WAIT_SECONDS = 30
MAX_LOG_CHARACTERS = 100_000
MAX_CALLS = 500
MAX_BULK = 100
RANK_LIMIT = 10**9

Name = Annotated[StrictStr, Field(max_length=200)]
LongText = Annotated[StrictStr, Field(max_length=1_000_000)]
Reason = Annotated[StrictStr, Field(max_length=10_000)]
Version = Annotated[StrictInt, Field(ge=0, le=10**9)]
LeaseToken = Annotated[StrictStr, Field(min_length=1, max_length=200)]
RowName = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """Base of what callers send."""

    model_config = ConfigDict(frozen=True)


class ProjectCreateBody(Body):
    """A new project. Without a workspace it gets a directory of its own."""

    slug: StrictStr
    name: Name = ""
    description: LongText = ""
    workspace: Annotated[StrictStr, Field(max_length=1000)] | None = None
    language: Annotated[StrictStr, Field(max_length=10)] = "en"
    policy: dict[str, Any] = Field(default_factory=dict)


class ProjectPatchBody(Body):
    """What to change of a project; `policy` is merged into what stands."""

    name: Name | None = None
    description: LongText | None = None
    language: Annotated[StrictStr, Field(max_length=10)] | None = None
    policy: dict[str, Any] | None = None
    version: Version | None = None


class ReasonBody(Body):
    """A reason, and the version that was seen."""

    reason: Reason = ""
    version: Version | None = None


class MessageBody(Body):
    """A message for intake. `self_initiated` marks what an agent thought of by itself."""

    text: StrictStr
    self_initiated: StrictBool = False


class WorkflowBody(Body):
    """A workflow to start: its name without the slash, and the text it is started on."""

    workflow: Annotated[StrictStr, Field(min_length=1, max_length=40)]
    text: StrictStr


class TaskCreateBody(Body):
    """A new root task. With a plan it is a workflow, with a role or route it skips the scoring.

    `self_initiated` marks what an agent thought of by itself.
    """

    title: Annotated[StrictStr, Field(max_length=300)] = ""
    description: StrictStr = ""
    depends_on: Names = ()
    plan: dict[str, Any] | None = None
    role: Annotated[StrictStr, Field(max_length=40)] = ""
    route: Literal[Route.DIRECT, Route.LIGHT_PLAN, Route.THREE_STEP] | None = None
    spec_id: Name = ""
    specification: LongText = ""
    external_key: Name = ""
    rank: Annotated[StrictInt, Field(ge=-RANK_LIMIT, le=RANK_LIMIT)] | None = None
    scope: Names = ()
    self_initiated: StrictBool = False


class SpawnBody(Body):
    """A child of the task that the caller works on; it is smaller than its task."""

    title: Annotated[StrictStr, Field(max_length=300)] = ""
    description: StrictStr = ""
    role: Annotated[StrictStr, Field(max_length=40)] = ""
    scope: Names = ()
    estimated_steps: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None


class StatusBody(Body):
    """A status call of an assignee."""

    status: Literal["working", "review", "failed", "blocked", "waiting_human"]
    detail: Reason = ""
    blocked_by: Annotated[tuple[RowName, ...], Field(max_length=100)] = ()
    light_plan: Annotated[
        tuple[Annotated[StrictStr, Field(min_length=1, max_length=2000)], ...],
        Field(max_length=100),
    ] = ()
    version: Version | None = None


class ProgressBody(Body):
    """What an executor reports about its run."""

    step: Annotated[StrictInt, Field(ge=0, le=1_000_000)] | None = None
    new_domain: Name = ""
    uncertain: StrictBool = False
    note: Reason = ""


class EmptyBody(Body):
    """Nothing: the call itself says it all."""


class ClaimBody(Body):
    """A claim by seat. Units: `wait` in seconds; without seats, all that the token opens."""

    seats: tuple[Seat, ...] = ()
    projects: Annotated[tuple[RowName, ...], Field(max_length=100)] = ()
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = 0


class NextBody(Body):
    """What to claim together with a result."""

    seats: tuple[Seat, ...] = ()
    projects: Annotated[tuple[RowName, ...], Field(max_length=100)] = ()


class HeartbeatBody(Body):
    """A sign of life of an assignment's holder."""

    lease_token: LeaseToken
    usage: Usage | None = None
    note: Annotated[StrictStr, Field(max_length=2000)] = ""


class ReleaseBody(Body):
    """Give an assignment back."""

    lease_token: LeaseToken
    reason: Reason = ""


class ResultEnvelope(Body):
    """What every result carries beside the fields of its seat."""

    lease_token: LeaseToken
    usage: Usage | None = None
    claim_next: NextBody | None = None


class LogBody(Body):
    """Text for an assignment's live log."""

    lease_token: LeaseToken
    text: Annotated[StrictStr, Field(min_length=1, max_length=MAX_LOG_CHARACTERS)]


class ToolCallsBody(Body):
    """Tool calls of an assignment, oldest first."""

    lease_token: LeaseToken
    calls: Annotated[tuple[ToolCallInput, ...], Field(min_length=1, max_length=MAX_CALLS)]


class CodexBody(Body):
    """Lines of `codex exec --json`, oldest first, as text or parsed."""

    lease_token: LeaseToken
    events: Annotated[
        tuple[dict[str, Any] | Annotated[StrictStr, Field(max_length=1_000_000)], ...],
        Field(min_length=1, max_length=MAX_CALLS),
    ]


class DecideBody(Body):
    """A verdict on exactly what was shown: send the version and the digest of it."""

    verdict: Annotated[StrictStr, Field(min_length=1, max_length=30)]
    reason: StrictStr = ""
    version: Version
    digest: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    payload: dict[str, Any] = Field(default_factory=dict)


class BulkItem(Body):
    """One item of a bulk verdict, as it was shown. Its own reason stands before the common one."""

    id: RowName
    version: Version
    digest: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    reason: StrictStr | None = None


class BulkBody(Body):
    """One verdict for several items of one kind; each is decided by itself."""

    verdict: Annotated[StrictStr, Field(min_length=1, max_length=30)]
    reason: StrictStr = ""
    items: Annotated[tuple[BulkItem, ...], Field(min_length=1, max_length=MAX_BULK)]


class DraftBody(Body):
    """Words typed and not yet sent."""

    text: StrictStr
