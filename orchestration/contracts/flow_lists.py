"""Documents of a workflow that may be handed in as JSON; the system writes the Markdown.

Source: FORMATS ("strict-plan documents", "strict-spec documents").
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from orchestration.contracts.documents import Document
from orchestration.contracts.flow_results import Said

Numbers = Annotated[tuple[StrictStr, ...], Field(max_length=100)]


class TaskItem(Document):
    """One box of `task.md`. Shape: `depends_on` are numbers of other boxes."""

    number: Said
    title: Said
    target_object: Said
    purpose: Said
    method: Said
    content: Said
    depends_on: Numbers = ()


class TaskList(Document):
    """`task.md` as JSON."""

    title: Said = "Tasks"
    items: Annotated[tuple[TaskItem, ...], Field(min_length=1, max_length=100)]


class PlanItem(Document):
    """One box of `plan.md`; its number, change and paths are the system's to write."""

    title: Said
    function: Said
    requirement_ids: Numbers
    demonstration: StrictStr = ""
    depends_on: Numbers = ()


class PlanList(Document):
    """`plan.md` as JSON."""

    items: Annotated[tuple[PlanItem, ...], Field(min_length=1, max_length=3)]


class ProposedChange(Document):
    """One line of what a proposal changes."""

    text: Said
    breaking: StrictBool = False


class ProposedImpact(Document):
    """What a proposal touches."""

    specs: Said
    code: Said


class ProposalText(Document):
    """`proposal.md` as JSON."""

    title: Said
    reason: Said
    changes: Annotated[tuple[ProposedChange, ...], Field(min_length=1, max_length=100)]
    impact: ProposedImpact
