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
    start: Callable[[int, str, Actor], Dispatched]


def dispatch_text(*, project_id: int, text: str, actor: Actor) -> Dispatched:
    """Take a text in: start the workflow that its slash command names, or submit it as a message.

    Errors: as `submit_message`; Invalid for an unknown command, listing those that exist, and for
    a command without a text.
    """
    cleaned = require_text(text).lstrip()
    named = COMMAND.match(cleaned)
    if named is None:
        task, assessment, _ = submit_message(project_id=project_id, text=text, actor=actor)
        return Dispatched(task, assessment)
    workflow = _workflow_of(named[1])
    rest = cleaned[named.end() :].strip()
    if not rest:
        message = f"say what to do after it, as in: /{workflow.name} Tidy up the release notes"
        raise Invalid(
            f"/{workflow.name} has no text: {message}",
            code="command_without_text",
            errors=[{"path": "text", "message": message}],
        )
    return workflow.start(project_id, rest, actor)


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


def _start_three_step(project_id: int, text: str, actor: Actor) -> Dispatched:
    new = NewTask(text=text, route=Route.THREE_STEP.value)
    return Dispatched(create_task(project_id=project_id, new=new, actor=actor), None)


WORKFLOWS: tuple[Workflow, ...] = (
    Workflow(
        name="three-step",
        description="Plan, audit and lock before anything runs, whatever the score would be.",
        agent="planner",
        start=_start_three_step,
    ),
)
