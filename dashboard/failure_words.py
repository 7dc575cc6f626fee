"""Why an attempt failed, in words.

Source: DESIGN section 10, `contracts.loop.FailureClass`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import pgettext_lazy

from orchestration.contracts.loop import FailureClass

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

CLASS_WORDS: Mapping[str, str | StrPromise] = {
    FailureClass.CHECK_FAILED: pgettext_lazy("failure", "a check failed"),
    FailureClass.CONFIG_ERROR: pgettext_lazy("failure", "configuration"),
    FailureClass.ENVIRONMENT: pgettext_lazy("failure", "environment"),
    FailureClass.TIMEOUT: pgettext_lazy("failure", "time ran out"),
    FailureClass.LEASE_EXPIRED: pgettext_lazy("failure", "lease ran out"),
    FailureClass.AGENT_FAILED: pgettext_lazy("failure", "the agent gave up"),
    FailureClass.CONTRADICTED: pgettext_lazy("failure", "a claim is contradicted"),
    FailureClass.REJECTED_BY_SIR: pgettext_lazy("failure", "rejected by Sir"),
    FailureClass.CANCELLED_BY_SIR: pgettext_lazy("failure", "cancelled by Sir"),
    FailureClass.BUDGET: pgettext_lazy("failure", "over budget"),
    "guidance": pgettext_lazy("failure", "your guidance"),
}


def class_word(code: str) -> str:
    """The word of a failure class; one that nothing names stays its code."""
    return str(CLASS_WORDS.get(code, code))
