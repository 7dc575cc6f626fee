"""The workflows to choose from, said in the reader's language where their words are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from orchestration.workflows.dispatch import list_workflows

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

WORKFLOW_WORDS: Mapping[str, str | StrPromise] = {
    "three-step": _("Plan, audit and lock before anything runs, whatever the score would be."),
    "strict-plan": _("Understand, explore, clarify, propose a change, then carry out its boxes."),
    "strict-spec": _("Specify, design and plan a feature, then carry out its boxes."),
    "test": _("Make it run, confirm the requirements, write failing tests, make them pass."),
    "review-security": _(
        "Review the security without changing anything; findings are graded defects."
    ),
}


@dataclass(frozen=True, slots=True)
class WorkflowLine:
    """One workflow to start."""

    name: str
    words: str


def workflow_lines() -> list[WorkflowLine]:
    """List the workflows that exist; one without words of ours shows its own description."""
    return [
        WorkflowLine(one.name, str(WORKFLOW_WORDS.get(one.name) or one.description))
        for one in list_workflows()
    ]
