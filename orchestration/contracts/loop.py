"""The words of the master loop: verdicts, what it does next, and why an attempt failed.

Source: DESIGN section 10, FORMATS ("Validation and release evidence package").
"""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a validation package says of a root's attempt."""

    GO = "GO"
    NO_GO = "NO-GO"
    INDETERMINATE = "INDETERMINATE"


class NextAction(StrEnum):
    """What a control command tells the loop to do next."""

    RESTART_FROM_STEP_2 = "RESTART_FROM_STEP_2"
    PROCEED_TO_NEXT_TASK = "PROCEED_TO_NEXT_TASK"
    TERMINATE_SUCCESS = "TERMINATE_SUCCESS"
    SUSPEND_FOR_HUMAN = "SUSPEND_FOR_HUMAN"


class FailureClass(StrEnum):
    """Why an attempt failed."""

    CHECK_FAILED = "check_failed"
    CONFIG_ERROR = "config_error"
    ENVIRONMENT = "environment"
    TIMEOUT = "timeout"
    LEASE_EXPIRED = "lease_expired"
    AGENT_FAILED = "agent_failed"
    CONTRADICTED = "contradicted"
    REJECTED_BY_SIR = "rejected_by_sir"
    CANCELLED_BY_SIR = "cancelled_by_sir"
    BUDGET = "budget"
