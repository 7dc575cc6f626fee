"""Prompts: write the one of a seat, and store what was sent with the assignment it was sent for.

A claim stays two writes: its prompt is written when its holder asks for it, at the address that the
claim answers. What is stored is what was sent, byte for byte, last; each text sent is an event
with its digest, so a correction that came in between shows as a second one.
Source: DESIGN section 12 ("The prompt sent is stored").
"""

from __future__ import annotations

from orchestration.models import Agent, Assignment, Task
from orchestration.rules.prompt_layers import Prompt, write_prompt
from orchestration.selectors.prompt_facts import read_prompt_facts
from orchestration.services.holding import require_not_stopped
from orchestration.services.work import Actor, locked, unit_of_work
from orchestration.states import AssignmentStatus, Seat


def held_by(task: Task, agent: Agent, seat: Seat | None) -> Assignment | None:
    """Find the live assignment an agent holds on a task, in a seat or in any."""
    rows = Assignment.objects.select_related("plan__agent").filter(
        task=task, agent=agent, status=AssignmentStatus.LEASED.value
    )
    return (rows.filter(seat=seat.value) if seat is not None else rows).order_by("pk").last()


def asked_of(task: Task, seat: Seat) -> Assignment | None:
    """Find the newest assignment of a seat, whoever holds it, to show what its prompt would say."""
    rows = Assignment.objects.select_related("plan__agent").filter(task=task, seat=seat.value)
    return rows.order_by("pk").last()


def build_prompt(
    *, task: Task, seat: Seat, assignment: Assignment | None, base_url: str, agent: Agent | None
) -> Prompt:
    """Write a prompt from the database as it stands; nothing is stored.

    Shape: `task` comes with its project, as it was just read.
    """
    facts = read_prompt_facts(task, seat, assignment, base_url=base_url, agent=agent)
    return write_prompt(facts)


def send_prompt(*, task: Task, assignment: Assignment, base_url: str, actor: Actor) -> Prompt:
    """Write the prompt of a held assignment and store it as sent.

    The same text again is not recorded again.
    Errors: Conflict in safe stop for a text that was not sent before: a read that has to be
    recorded is a write.
    Locks: the assignment.
    """
    seat = Seat(assignment.seat)
    prompt = build_prompt(
        task=task, seat=seat, assignment=assignment, base_url=base_url, agent=assignment.agent
    )
    if assignment.prompt == prompt.text:
        return prompt
    with unit_of_work(actor) as work:
        row: Assignment | None = locked(
            Assignment.objects.filter(
                pk=assignment.pk, token=assignment.token, status=AssignmentStatus.LEASED.value
            )
        ).first()
        if row is not None:
            # A stop locks every lease whose clock runs, so one that came first is seen here.
            require_not_stopped(row.project)
            row.prompt = prompt.text
            work.touch(row, "prompt")
            work.record(
                "prompt.sent",
                subject=f"assignment:{row.pk}",
                project_id=row.project_id,
                task_id=row.task_id,
                after={
                    "seat": row.seat,
                    "sha256": prompt.sha256,
                    "characters": len(prompt.text),
                    "is_cut": prompt.is_cut,
                },
            )
            work.hint(f"task:{row.task_id}", row.project_id)
    return prompt
