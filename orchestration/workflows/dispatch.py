"""The one door for text: a slash command starts its workflow, anything else is a message.

API, dashboard and command line hand every text to `dispatch_text`.
Source: DESIGN section 11 ("Workflows").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestration.errors import Invalid
from orchestration.models import Assessment, Task
from orchestration.services.intake import NewTask, create_task, require_text, submit_message
from orchestration.services.work import Actor
from orchestration.states import Route
from orchestration.workflows import security_review, strict_plan, strict_spec, tdd
from orchestration.workflows.starting import Flow, start_flow

COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,39})(?!\S)")
"""A slash and a name at the start, alone or before white space: `/usr/bin is full` is none."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What a text became. Shape: `assessment` is S0's record, None where a route was named."""

    task: Task
    assessment: Assessment | None


@dataclass(frozen=True, slots=True)
class Workflow:
    """One slash command. Shape: `agent` is the seat or profile that takes the text first."""

    name: str
    description: str
    agent: str
    start: Callable[[int, str, Actor], Task]


def dispatch_text(
    *, project_id: int, text: str, actor: Actor, is_self_initiated: bool = False
) -> Dispatched:
    """Take a text in: start the workflow that its slash command names, or submit it as a message.

    Errors: as `submit_message`; Invalid for an unknown command, listing those that exist, and for
    a command without a text.
    """
    cleaned = require_text(text).lstrip()
    named = COMMAND.match(cleaned)
    if named is None:
        task, assessment, _ = submit_message(
            project_id=project_id, text=text, actor=actor, is_self_initiated=is_self_initiated
        )
        return Dispatched(task, assessment)
    workflow = _workflow_of(named[1])
    return start_workflow(
        project_id=project_id, name=workflow.name, text=cleaned[named.end() :], actor=actor
    )


def start_workflow(*, project_id: int, name: str, text: str, actor: Actor) -> Dispatched:
    """Start a workflow by its name, without the slash.

    Errors: as `dispatch_text`.
    """
    workflow = _workflow_of(name)
    rest = text.strip()
    if not rest:
        message = f"say what to do after it, as in: /{workflow.name} Tidy up the release notes"
        raise Invalid(
            f"/{workflow.name} has no text: {message}",
            code="command_without_text",
            errors=[{"path": "text", "message": message}],
        )
    return Dispatched(workflow.start(project_id, require_text(rest), actor), None)


def list_workflows() -> tuple[Workflow, ...]:
    """List the slash commands that exist, in the order to show them."""
    return WORKFLOWS


def _workflow_of(name: str) -> Workflow:
    found = next((one for one in WORKFLOWS if one.name == name.lower()), None)
    if found is None:
        known = ", ".join(f"/{one.name}" for one in WORKFLOWS)
        message = f"there is no command /{name}; known: {known}"
        raise Invalid(
            message, code="unknown_command", errors=[{"path": "text", "message": message}]
        )
    return found


def _start_three_step(project_id: int, text: str, actor: Actor) -> Task:
    new = NewTask(text=text, route=Route.THREE_STEP.value)
    return create_task(project_id=project_id, new=new, actor=actor)


def _starts(flow: Flow) -> Callable[[int, str, Actor], Task]:
    def start(project_id: int, text: str, actor: Actor) -> Task:
        return start_flow(flow, project_id=project_id, text=text, actor=actor)

    return start


WORKFLOWS: tuple[Workflow, ...] = (
    Workflow(
        name="three-step",
        description="Plan, audit and lock before anything runs, whatever the score would be.",
        agent="planner",
        start=_start_three_step,
    ),
    Workflow(
        name="strict-plan",
        description="Understand, explore, clarify, propose a change, then carry out its boxes.",
        agent="StrictPlan",
        start=_starts(strict_plan.FLOW),
    ),
    Workflow(
        name="strict-spec",
        description="Specify, design and plan a feature, then carry out its boxes.",
        agent="StrictSpec",
        start=_starts(strict_spec.FLOW),
    ),
    Workflow(
        name="test",
        description="Make it run, confirm the requirements, write failing tests, make them pass.",
        agent="TddRunAndFix",
        start=_starts(tdd.FLOW),
    ),
    Workflow(
        name="review-security",
        description="Review the security without changing anything; findings are graded defects.",
        agent="QuickExplore",
        start=_starts(security_review.FLOW),
    ),
)
