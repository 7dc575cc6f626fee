"""What the severity of a defect means: who approves its fix, and who hears of it.

Source: DESIGN section 8, "Defects".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from orchestration.states import DecisionKind, DefectStatus, Severity


class Approver(StrEnum):
    """Who decides whether a defect is fixed."""

    RULE = "rule"
    SIR = "sir"
    QA = "qa"


@dataclass(frozen=True, slots=True)
class Gate:
    """What happens to a defect of one severity.

    Shape: `opens` is the Decision that is opened, if any; `first_move` is where the defect goes
    when the gate is reached, none where QA's own choice between fix and accept decides; `blocks`
    says whether QA may not pass while such a defect is open.
    """

    approver: Approver
    opens: DecisionKind | None
    first_move: DefectStatus | None
    blocks: bool

    @property
    def waits_for_sir(self) -> bool:
        """Say whether nothing is fixed before Sir has decided."""
        return self.approver is Approver.SIR

    @property
    def notifies_sir(self) -> bool:
        """Say whether Sir is told without being asked."""
        return self.opens is DecisionKind.HIGH_NOTICE


GATES: Mapping[Severity, Gate] = MappingProxyType(
    {
        Severity.CRITICAL: Gate(Approver.RULE, None, DefectStatus.FIX_APPROVED, blocks=True),
        Severity.HIGH: Gate(
            Approver.RULE, DecisionKind.HIGH_NOTICE, DefectStatus.FIX_APPROVED, blocks=True
        ),
        Severity.MEDIUM: Gate(
            Approver.SIR, DecisionKind.MEDIUM_DEFECT, DefectStatus.AWAITING_SIR, blocks=True
        ),
        Severity.LOW: Gate(Approver.QA, None, None, blocks=False),
    }
)


def gate(severity: Severity) -> Gate:
    """Return the gate that a defect of this severity goes through, each time it is found."""
    return GATES[severity]
