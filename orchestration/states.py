"""Every state machine: enums, tables of allowed moves, terminal sets, the master-list view.

No queries and no Django models here. `docs/states.md` is drawn from these tables.
Source: DESIGN section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from orchestration.errors import IllegalTransition


class ProjectStatus(StrEnum):
    """A project's states."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    SAFE_STOP = "safe_stop"
    COMPLETED = "completed"
    ARCHIVED = "archived"


class TaskStatus(StrEnum):
    """A task's states; the same for a root, a planned task and a leaf step."""

    PENDING = "pending"
    CLAIMED = "claimed"
    WORKING = "working"
    REVIEW = "review"
    BLOCKED = "blocked"
    WAITING_HUMAN = "waiting_human"
    DONE = "done"
    FAILED = "failed"
    FATAL = "fatal"
    CANCELLED = "cancelled"


class AssignmentStatus(StrEnum):
    """States of one piece of agent work."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class DefectStatus(StrEnum):
    """States of a defect; `void` when its task ended first."""

    OPEN = "open"
    AWAITING_SIR = "awaiting_sir"
    FIX_APPROVED = "fix_approved"
    FIXING = "fixing"
    FIXED = "fixed"
    VERIFIED = "verified"
    ACCEPTED_AS_IS = "accepted_as_is"
    REPROPOSING = "reproposing"
    REJECTED = "rejected"
    VOID = "void"


class PlanStatus(StrEnum):
    """States of one plan revision."""

    DRAFT = "draft"
    AUDITING = "auditing"
    APPROVED = "approved"
    NEEDS_REVISION = "needs_revision"
    REJECTED = "rejected"


class DecisionStatus(StrEnum):
    """States of a row in Sir's inbox."""

    OPEN = "open"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class HandshakeStatus(StrEnum):
    """States of one intent that an executor put up for confirmation; first who has to answer."""

    AWAITING_SPAWNER = "awaiting_spawner"
    AWAITING_AUDITOR = "awaiting_auditor"
    AWAITING_SIR = "awaiting_sir"
    CONFIRMED = "confirmed"
    CONFIRMED_WITH_CORRECTION = "confirmed_with_correction"
    REJECTED = "rejected"
    VOID = "void"


class ConversationStatus(StrEnum):
    """States of a conversation; only a query and a negotiation close by themselves."""

    OPEN = "open"
    AWAITING_SIR = "awaiting_sir"
    CLOSED = "closed"


class TaskKind(StrEnum):
    """`message` rows stay off the master list and outside the loop."""

    TASK = "task"
    MESSAGE = "message"


class Route(StrEnum):
    """How much method a task gets."""

    DIRECT = "direct"
    LIGHT_PLAN = "light_plan"
    THREE_STEP = "three_step"
    WORKFLOW = "workflow"


class Complexity(StrEnum):
    """S1's class: low up to 8, medium up to 15, high above."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class RiskLevel(StrEnum):
    """From the plan step, else from S1's failure cost."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Severity(StrEnum):
    """Severity of a defect; it decides who approves the fix."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Seat(StrEnum):
    """The seats an assignment can be for."""

    SCORER = "scorer"
    PLANNER = "planner"
    AUDITOR = "auditor"
    EXECUTOR = "executor"
    QA = "qa"
    FIXER = "fixer"
    CROSS_VERIFIER = "cross_verifier"
    VALIDATOR = "validator"


class DecisionKind(StrEnum):
    """Kinds of rows in the inbox, as DESIGN section 9 names them."""

    MEDIUM_DEFECT = "medium_defect"
    WAITING_HUMAN = "waiting_human"
    MAX_RETRIES = "max_retries"
    PLAN_REJECTED = "plan_rejected"
    CLARIFICATION = "clarification"
    COMMAND_APPROVAL = "command_approval"
    BUDGET_EXCEEDED = "budget_exceeded"
    FINAL_REVIEW = "final_review"
    SAFE_STOP = "safe_stop"
    HIGH_NOTICE = "high_notice"


class NotReadyReason(StrEnum):
    """Why a pending task is not offered."""

    ASSESSING = "assessing"
    DEPENDENCIES = "dependencies"
    PHASE = "phase"
    AWAITING_COMMAND_APPROVAL = "awaiting_command_approval"
    SUSPENDED = "suspended"
    SLOTS = "slots"
    QUEUED_ROOT = "queued_root"


class CommentType(StrEnum):
    """Types of a comment on a task."""

    GENERAL = "general"
    HANDOFF = "handoff"
    OBSERVATION = "observation"
    REVIEW = "review"


class OutputType(StrEnum):
    """Types of an output."""

    CODE = "code"
    DOCUMENT = "document"
    DATA = "data"
    CONFIG = "config"
    OTHER = "other"


class KnowledgeStatus(StrEnum):
    """What became of an experience or a wiki page: agents' words wait for somebody's eyes."""

    UNREVIEWED = "unreviewed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class ExperienceKind(StrEnum):
    """Where an experience comes from."""

    NOTE = "note"
    FAILURE = "failure"
    ARCHIVE = "archive"


class AuditVerdict(StrEnum):
    """What an audit of a plan says. The third needs_revision becomes rejected."""

    APPROVED = "APPROVED"
    APPROVED_WITH_SUGGESTIONS = "APPROVED_WITH_SUGGESTIONS"
    NEEDS_REVISION = "NEEDS_REVISION"
    REJECTED = "REJECTED"


class LayerOutcome(StrEnum):
    """Outcome of one verification layer."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_POSSIBLE = "not_possible"


SKIPPED_REASON = "skipped"
"""`cancel_reason` of a step that a Deviation skipped; it satisfies its dependents."""
SUPERSEDED_REASON = "superseded"
MAX_RETRIES_REASON = "FATAL_ERROR: MAX_RETRIES_EXCEEDED"

T = TaskStatus
PROJECT_MOVES: Mapping[ProjectStatus, frozenset[ProjectStatus]] = MappingProxyType(
    {
        ProjectStatus.ACTIVE: frozenset(
            {
                ProjectStatus.SUSPENDED,
                ProjectStatus.SAFE_STOP,
                ProjectStatus.COMPLETED,
                ProjectStatus.ARCHIVED,
            }
        ),
        ProjectStatus.SUSPENDED: frozenset(
            {ProjectStatus.ACTIVE, ProjectStatus.SAFE_STOP, ProjectStatus.ARCHIVED}
        ),
        ProjectStatus.SAFE_STOP: frozenset({ProjectStatus.ACTIVE, ProjectStatus.ARCHIVED}),
        ProjectStatus.COMPLETED: frozenset({ProjectStatus.ACTIVE, ProjectStatus.ARCHIVED}),
        ProjectStatus.ARCHIVED: frozenset(),
    }
)
TASK_MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = MappingProxyType(
    {
        T.PENDING: frozenset({T.CLAIMED, T.WORKING, T.WAITING_HUMAN, T.CANCELLED}),
        T.CLAIMED: frozenset(
            {T.WORKING, T.PENDING, T.FAILED, T.BLOCKED, T.WAITING_HUMAN, T.CANCELLED}
        ),
        T.WORKING: frozenset(
            {T.PENDING, T.REVIEW, T.FAILED, T.BLOCKED, T.WAITING_HUMAN, T.CANCELLED}
        ),
        T.REVIEW: frozenset({T.DONE, T.PENDING, T.FAILED, T.WAITING_HUMAN, T.CANCELLED}),
        T.BLOCKED: frozenset({T.PENDING, T.FAILED, T.CANCELLED}),
        T.WAITING_HUMAN: frozenset({T.WORKING, T.PENDING, T.REVIEW, T.FAILED, T.CANCELLED}),
        T.DONE: frozenset(),
        T.FAILED: frozenset({T.PENDING, T.FATAL, T.CANCELLED}),
        T.FATAL: frozenset({T.PENDING, T.CANCELLED, T.DONE}),
        T.CANCELLED: frozenset(),
    }
)
A = AssignmentStatus
ASSIGNMENT_MOVES: Mapping[AssignmentStatus, frozenset[AssignmentStatus]] = MappingProxyType(
    {
        A.QUEUED: frozenset({A.LEASED, A.CANCELLED}),
        A.LEASED: frozenset({A.QUEUED, A.DONE, A.FAILED, A.EXPIRED, A.CANCELLED}),
        A.DONE: frozenset(),
        A.FAILED: frozenset(),
        A.EXPIRED: frozenset(),
        A.CANCELLED: frozenset(),
    }
)
D = DefectStatus
DEFECT_MOVES: Mapping[DefectStatus, frozenset[DefectStatus]] = MappingProxyType(
    {
        D.OPEN: frozenset({D.FIX_APPROVED, D.AWAITING_SIR, D.ACCEPTED_AS_IS, D.VOID}),
        D.AWAITING_SIR: frozenset(
            {D.FIX_APPROVED, D.ACCEPTED_AS_IS, D.REPROPOSING, D.REJECTED, D.VOID}
        ),
        D.REPROPOSING: frozenset({D.AWAITING_SIR, D.VOID}),
        D.FIX_APPROVED: frozenset({D.FIXING, D.VOID}),
        D.FIXING: frozenset({D.FIXED, D.VOID}),
        D.FIXED: frozenset({D.VERIFIED, D.OPEN, D.VOID}),
        D.VERIFIED: frozenset(),
        D.ACCEPTED_AS_IS: frozenset(),
        D.REJECTED: frozenset(),
        D.VOID: frozenset(),
    }
)
PLAN_MOVES: Mapping[PlanStatus, frozenset[PlanStatus]] = MappingProxyType(
    {
        PlanStatus.DRAFT: frozenset(
            {PlanStatus.AUDITING, PlanStatus.NEEDS_REVISION, PlanStatus.REJECTED}
        ),
        PlanStatus.AUDITING: frozenset(
            {PlanStatus.APPROVED, PlanStatus.NEEDS_REVISION, PlanStatus.REJECTED}
        ),
        PlanStatus.APPROVED: frozenset({PlanStatus.NEEDS_REVISION}),
        PlanStatus.NEEDS_REVISION: frozenset(),
        PlanStatus.REJECTED: frozenset({PlanStatus.APPROVED}),
    }
)
DECISION_MOVES: Mapping[DecisionStatus, frozenset[DecisionStatus]] = MappingProxyType(
    {
        DecisionStatus.OPEN: frozenset(
            {DecisionStatus.DECIDED, DecisionStatus.EXPIRED, DecisionStatus.WITHDRAWN}
        ),
        DecisionStatus.DECIDED: frozenset(),
        DecisionStatus.EXPIRED: frozenset(),
        DecisionStatus.WITHDRAWN: frozenset(),
    }
)
H = HandshakeStatus
_ANSWERS = frozenset({H.CONFIRMED, H.CONFIRMED_WITH_CORRECTION, H.REJECTED, H.VOID})
HANDSHAKE_MOVES: Mapping[HandshakeStatus, frozenset[HandshakeStatus]] = MappingProxyType(
    {
        H.AWAITING_SPAWNER: frozenset({H.AWAITING_AUDITOR, H.AWAITING_SIR}) | _ANSWERS,
        H.AWAITING_AUDITOR: frozenset({H.AWAITING_SIR}) | _ANSWERS,
        H.AWAITING_SIR: _ANSWERS,
        H.CONFIRMED: frozenset(),
        H.CONFIRMED_WITH_CORRECTION: frozenset(),
        H.REJECTED: frozenset(),
        H.VOID: frozenset(),
    }
)
CONVERSATION_MOVES: Mapping[ConversationStatus, frozenset[ConversationStatus]] = MappingProxyType(
    {
        ConversationStatus.OPEN: frozenset(
            {ConversationStatus.AWAITING_SIR, ConversationStatus.CLOSED}
        ),
        ConversationStatus.AWAITING_SIR: frozenset({ConversationStatus.CLOSED}),
        ConversationStatus.CLOSED: frozenset(),
    }
)

HANDSHAKE_OPEN = frozenset({H.AWAITING_SPAWNER, H.AWAITING_AUDITOR, H.AWAITING_SIR})
HANDSHAKE_PASSED = frozenset({H.CONFIRMED, H.CONFIRMED_WITH_CORRECTION})
"""An intent in one of these lets its executor start."""
TASK_TERMINAL = frozenset({T.DONE, T.CANCELLED})
"""Ends of a task. `failed` and `fatal` can still move, so they are not in it."""
TASK_HOLDS_SLOT = frozenset({T.CLAIMED, T.WORKING})
"""Leaves in these hold one of the parent's parallel slots."""
DEFECT_UNFINISHED = frozenset(
    {D.OPEN, D.AWAITING_SIR, D.REPROPOSING, D.FIX_APPROVED, D.FIXING, D.FIXED}
)
ASSIGNMENT_LIVE = frozenset({A.QUEUED, A.LEASED})

MASTER_VIEW: Mapping[TaskStatus, str] = MappingProxyType(
    {
        T.PENDING: "PENDING",
        T.CLAIMED: "IN_PROGRESS",
        T.WORKING: "IN_PROGRESS",
        T.REVIEW: "IN_PROGRESS",
        T.BLOCKED: "IN_PROGRESS",
        T.WAITING_HUMAN: "IN_PROGRESS",
        T.DONE: "COMPLETED",
        T.FAILED: "FAILED",
        T.FATAL: MAX_RETRIES_REASON,
        T.CANCELLED: "CANCELLED",
    }
)

S = TypeVar("S", bound=StrEnum)


def require_move(table: Mapping[S, frozenset[S]], current: S, target: S, *, noun: str) -> None:
    """Raise unless `table` allows current -> target.

    Errors: IllegalTransition with `allowed`, the moves that the table does allow.
    """
    allowed = table[current]
    if target not in allowed:
        raise IllegalTransition(
            f"{noun} cannot go from {current} to {target}",
            allowed=sorted(str(state) for state in allowed),
            current=str(current),
        )
