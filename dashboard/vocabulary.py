"""The status vocabulary: for each machine code an icon, a word and a role.

Codes stay in the API; the page shows the word. Icon names are those of `static/icons.svg`.
Source: UI.md section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy, pgettext_lazy

from orchestration.states import (
    AssignmentStatus,
    DecisionStatus,
    DefectStatus,
    LayerOutcome,
    NotReadyReason,
    PlanStatus,
    ProjectStatus,
    Severity,
    TaskStatus,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class Role(StrEnum):
    """What a colour means: amber waits for Sir, blue is machine work, ink is worth knowing."""

    GREY = "grey"
    INK = "ink"
    BLUE = "blue"
    AMBER = "amber"
    GREEN = "green"
    RED = "red"


@dataclass(frozen=True, slots=True)
class Label:
    """Icon, word and role of one code. Only amber is a filled pill."""

    icon: str
    word: str | StrPromise
    role: Role
    note: str | StrPromise = ""

    @property
    def css_class(self) -> str:
        """The classes of the status part."""
        return f"state--{self.role}"


def _label(icon: str, word: str | StrPromise, role: Role, note: str | StrPromise = "") -> Label:
    return Label(icon=icon, word=word, role=role, note=note)


WAITING = _label("hand-stop", _("Waiting for you"), Role.AMBER)
WAITING_FOR_AGENT = _label("robot", _("Waiting for an agent"), Role.INK)

TASK_LABELS: Mapping[TaskStatus, Label] = MappingProxyType(
    {
        TaskStatus.PENDING: _label("circle-dashed", pgettext_lazy("task", "Pending"), Role.GREY),
        TaskStatus.CLAIMED: _label("user-check", pgettext_lazy("task", "Claimed"), Role.BLUE),
        TaskStatus.WORKING: _label("progress", pgettext_lazy("task", "Working"), Role.BLUE),
        TaskStatus.REVIEW: _label("eye-check", pgettext_lazy("task", "In review"), Role.BLUE),
        TaskStatus.BLOCKED: _label("barrier-block", pgettext_lazy("task", "Blocked"), Role.INK),
        TaskStatus.WAITING_HUMAN: WAITING,
        TaskStatus.DONE: _label(
            "circle-check", pgettext_lazy("task", "Done"), Role.GREEN, _("Completed in full")
        ),
        TaskStatus.FAILED: _label("circle-x", pgettext_lazy("task", "Failed"), Role.RED),
        TaskStatus.FATAL: _label("alert-octagon", pgettext_lazy("task", "Fatal"), Role.RED),
        TaskStatus.CANCELLED: _label("ban", pgettext_lazy("task", "Cancelled"), Role.GREY),
    }
)
SKIPPED = _label("player-skip-forward", pgettext_lazy("task", "Skipped"), Role.GREY)

NOT_READY_WORDS: Mapping[NotReadyReason, str | StrPromise] = MappingProxyType(
    {
        NotReadyReason.ASSESSING: _("assessing"),
        NotReadyReason.DEPENDENCIES: _("needs %(keys)s"),
        NotReadyReason.PHASE: _("phase %(phase)s open"),
        NotReadyReason.AWAITING_COMMAND_APPROVAL: ngettext_lazy(
            "%(count)s command to approve", "%(count)s commands to approve", "count"
        ),
        NotReadyReason.SUSPENDED: _("project suspended"),
        NotReadyReason.SLOTS: _("no free slot"),
        NotReadyReason.QUEUED_ROOT: _("queued, place %(place)s"),
    }
)
NOT_READY_PLAIN: Mapping[NotReadyReason, str | StrPromise] = MappingProxyType(
    {
        NotReadyReason.DEPENDENCIES: _("needs earlier steps"),
        NotReadyReason.PHASE: _("an earlier phase is open"),
        NotReadyReason.AWAITING_COMMAND_APPROVAL: _("commands to approve"),
        NotReadyReason.QUEUED_ROOT: _("queued"),
    }
)
"""The same reasons where the numbers or keys are not known."""

PROJECT_LABELS: Mapping[ProjectStatus, Label] = MappingProxyType(
    {
        ProjectStatus.ACTIVE: _label("player-play", pgettext_lazy("project", "Active"), Role.INK),
        ProjectStatus.SUSPENDED: _label(
            "player-pause", pgettext_lazy("project", "Suspended"), Role.INK
        ),
        ProjectStatus.SAFE_STOP: _label(
            "alert-hexagon", pgettext_lazy("project", "Safe stop"), Role.RED
        ),
        ProjectStatus.COMPLETED: _label(
            "checks", pgettext_lazy("project", "Completed"), Role.GREEN
        ),
        ProjectStatus.ARCHIVED: _label("archive", pgettext_lazy("project", "Archived"), Role.GREY),
    }
)


class Health(StrEnum):
    """A project's health, derived: the first of these that holds, in this order."""

    SAFE_STOP = "safe_stop"
    STOPPED = "stopped"
    SUSPENDED = "suspended"
    WAITING = "waiting"
    MOVING = "moving"
    WAITING_FOR_AGENT = "waiting_for_agent"
    COMPLETED = "completed"
    IDLE = "idle"


HEALTH_LABELS: Mapping[Health, Label] = MappingProxyType(
    {
        Health.SAFE_STOP: PROJECT_LABELS[ProjectStatus.SAFE_STOP],
        Health.STOPPED: _label("alert-octagon", pgettext_lazy("health", "Stopped"), Role.RED),
        Health.SUSPENDED: PROJECT_LABELS[ProjectStatus.SUSPENDED],
        Health.WAITING: WAITING,
        Health.MOVING: _label("progress", pgettext_lazy("health", "Moving"), Role.BLUE),
        Health.WAITING_FOR_AGENT: WAITING_FOR_AGENT,
        Health.COMPLETED: PROJECT_LABELS[ProjectStatus.COMPLETED],
        Health.IDLE: _label("zzz", pgettext_lazy("health", "Idle"), Role.GREY),
    }
)

DEFECT_LABELS: Mapping[DefectStatus, Label] = MappingProxyType(
    {
        DefectStatus.OPEN: _label("circle-dot", pgettext_lazy("defect", "Open"), Role.INK),
        DefectStatus.AWAITING_SIR: WAITING,
        DefectStatus.FIX_APPROVED: _label(
            "thumb-up", pgettext_lazy("defect", "Fix approved"), Role.BLUE
        ),
        DefectStatus.FIXING: _label("tool", pgettext_lazy("defect", "Fixing"), Role.BLUE),
        DefectStatus.FIXED: _label(
            "tool", pgettext_lazy("defect", "Fixed, not yet verified"), Role.BLUE
        ),
        DefectStatus.VERIFIED: _label(
            "shield-check", pgettext_lazy("defect", "Verified"), Role.GREEN
        ),
        DefectStatus.ACCEPTED_AS_IS: _label(
            "writing-sign", pgettext_lazy("defect", "Accepted as is"), Role.INK
        ),
        DefectStatus.REPROPOSING: _label(
            "arrow-back-up", pgettext_lazy("defect", "Fixer proposes another"), Role.BLUE
        ),
        DefectStatus.REJECTED: _label("circle-x", pgettext_lazy("defect", "Rejected"), Role.RED),
        DefectStatus.VOID: _label("circle-minus", pgettext_lazy("defect", "Void"), Role.GREY),
    }
)

DECISION_LABELS: Mapping[DecisionStatus, Label] = MappingProxyType(
    {
        DecisionStatus.OPEN: WAITING,
        DecisionStatus.DECIDED: _label("signature", pgettext_lazy("decision", "Decided"), Role.INK),
        DecisionStatus.EXPIRED: _label(
            "hourglass", pgettext_lazy("decision", "Expired"), Role.GREY
        ),
        DecisionStatus.WITHDRAWN: _label(
            "arrow-back-up", pgettext_lazy("decision", "Withdrawn"), Role.GREY
        ),
    }
)

ASSIGNMENT_LABELS: Mapping[AssignmentStatus, Label] = MappingProxyType(
    {
        AssignmentStatus.QUEUED: _label(
            "circle-dashed", pgettext_lazy("assignment", "Queued"), Role.GREY
        ),
        AssignmentStatus.LEASED: _label(
            "progress", pgettext_lazy("assignment", "Leased"), Role.BLUE
        ),
        AssignmentStatus.DONE: TASK_LABELS[TaskStatus.DONE],
        AssignmentStatus.FAILED: TASK_LABELS[TaskStatus.FAILED],
        AssignmentStatus.EXPIRED: _label(
            "clock-x", pgettext_lazy("assignment", "Lease expired"), Role.GREY
        ),
        AssignmentStatus.CANCELLED: TASK_LABELS[TaskStatus.CANCELLED],
    }
)

PLAN_LABELS: Mapping[PlanStatus, Label] = MappingProxyType(
    {
        PlanStatus.DRAFT: _label("pencil", pgettext_lazy("plan", "Draft"), Role.GREY),
        PlanStatus.AUDITING: _label("eye-check", pgettext_lazy("plan", "In audit"), Role.BLUE),
        PlanStatus.APPROVED: _label("circle-check", pgettext_lazy("plan", "Approved"), Role.GREEN),
        PlanStatus.NEEDS_REVISION: _label(
            "arrow-back-up", pgettext_lazy("plan", "Needs revision"), Role.INK
        ),
        PlanStatus.REJECTED: _label("file-x", pgettext_lazy("plan", "Rejected"), Role.RED),
    }
)
AUDIT_OVERRIDDEN = _label("writing-sign", pgettext_lazy("plan", "Audit overridden"), Role.INK)
BLUEPRINT_LOCKED = _label("lock", pgettext_lazy("plan", "Blueprint locked"), Role.INK)

PACKAGE_LABELS: Mapping[str, Label] = MappingProxyType(
    {
        "GO": _label("circle-check", "GO", Role.GREEN),
        "NO-GO": _label("circle-x", "NO-GO", Role.RED),
        "INDETERMINATE": _label("help-circle", "INDETERMINATE", Role.INK),
    }
)
"""Verdicts of a validation package; these words are never translated."""

SEVERITY_LABELS: Mapping[Severity, Label] = MappingProxyType(
    {
        Severity.CRITICAL: _label(
            "urgent", pgettext_lazy("severity", "Critical"), Role.INK, _("fixed by rule")
        ),
        Severity.HIGH: _label(
            "bars-3",
            pgettext_lazy("severity", "High"),
            Role.INK,
            _("fixed by rule, you are told"),
        ),
        Severity.MEDIUM: _label(
            "bars-2", pgettext_lazy("severity", "Medium"), Role.INK, _("you decide")
        ),
        Severity.LOW: _label("bars-1", pgettext_lazy("severity", "Low"), Role.INK, _("QA decides")),
    }
)
"""Severity is told by shape, not by colour. The note says who decides."""

LAYER_WORDS: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        "L1": _("L1 format"),
        "L2": _("L2 logic"),
        "L3": _("L3 anchors"),
        "L4": _("L4 cross-check"),
        "L5": _("L5 you"),
    }
)
LAYER_LOOKS: Mapping[str, tuple[str, Role, str | StrPromise]] = MappingProxyType(
    {
        LayerOutcome.PASSED: ("circle-check", Role.GREEN, pgettext_lazy("layer", "passed")),
        LayerOutcome.FAILED: ("circle-x", Role.RED, pgettext_lazy("layer", "failed")),
        LayerOutcome.NOT_POSSIBLE: (
            "circle-minus",
            Role.INK,
            pgettext_lazy("layer", "not possible"),
        ),
        "not_reached": ("circle-dashed", Role.GREY, pgettext_lazy("layer", "not reached")),
    }
)


@dataclass(frozen=True, slots=True)
class MarkLabel:
    """Words of a mark in the reader's language, brackets kept."""

    word: str | StrPromise
    role: Role


MARK_LABELS: Mapping[str, MarkLabel] = MappingProxyType(
    {
        "independently_verified": MarkLabel(_("independently verified ✓"), Role.GREEN),
        "independently_failed": MarkLabel(_("independently verified ✗"), Role.RED),
        "agent_verified": MarkLabel(_("agent verified"), Role.BLUE),
        "not_verified": MarkLabel(_("not verified"), Role.GREY),
    }
)

TRUST_BANDS: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        "low": pgettext_lazy("trust", "low"),
        "partial": pgettext_lazy("trust", "partial"),
        "high": pgettext_lazy("trust", "high"),
    }
)
