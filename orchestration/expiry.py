"""What may become of an item that Sir did not decide in time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestration.states import DecisionKind

EXPIRY_OUTCOMES: Mapping[DecisionKind, frozenset[str]] = MappingProxyType(
    {
        DecisionKind.MEDIUM_DEFECT: frozenset({"reject"}),
        DecisionKind.WAITING_HUMAN: frozenset({"reject", "abort"}),
        DecisionKind.MAX_RETRIES: frozenset({"abort"}),
        DecisionKind.PLAN_REJECTED: frozenset({"cancel"}),
        DecisionKind.CLARIFICATION: frozenset({"confirmed", "rejected"}),
        DecisionKind.COMMAND_APPROVAL: frozenset({"approve", "reject"}),
        DecisionKind.BUDGET_EXCEEDED: frozenset({"abort"}),
        DecisionKind.FINAL_REVIEW: frozenset({"reject"}),
        DecisionKind.SAFE_STOP: frozenset(),
        DecisionKind.HIGH_NOTICE: frozenset({"acknowledge"}),
    }
)
"""Verdicts a named policy may give at expiry; never consent that is a human's, or words to type."""
