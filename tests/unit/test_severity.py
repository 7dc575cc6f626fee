"""Who approves the fix of a defect, by its severity."""

from __future__ import annotations

import pytest

from orchestration.rules.severity import GATES, Approver, gate
from orchestration.states import DEFECT_MOVES, DecisionKind, DefectStatus, Severity


@pytest.mark.parametrize(
    ("severity", "approver", "opens", "first_move"),
    [
        (Severity.CRITICAL, Approver.RULE, None, DefectStatus.FIX_APPROVED),
        (Severity.HIGH, Approver.RULE, DecisionKind.HIGH_NOTICE, DefectStatus.FIX_APPROVED),
        (Severity.MEDIUM, Approver.SIR, DecisionKind.MEDIUM_DEFECT, DefectStatus.AWAITING_SIR),
        (Severity.LOW, Approver.QA, None, None),
    ],
)
def test_each_severity_has_its_gate(
    severity: Severity,
    approver: Approver,
    opens: DecisionKind | None,
    first_move: DefectStatus | None,
) -> None:
    found = gate(severity)
    assert (found.approver, found.opens, found.first_move) == (approver, opens, first_move)


def test_every_severity_has_a_gate() -> None:
    assert set(GATES) == set(Severity)


def test_only_medium_waits_for_sir_and_only_high_notifies() -> None:
    assert [severity for severity in Severity if gate(severity).waits_for_sir] == ["medium"]
    assert [severity for severity in Severity if gate(severity).notifies_sir] == ["high"]


def test_all_but_low_keep_qa_from_passing() -> None:
    assert [severity for severity in Severity if not gate(severity).blocks] == ["low"]


@pytest.mark.parametrize("severity", list(Severity))
def test_the_first_move_is_one_that_an_open_defect_may_make(severity: Severity) -> None:
    first_move = gate(severity).first_move
    assert first_move is None or first_move in DEFECT_MOVES[DefectStatus.OPEN]
