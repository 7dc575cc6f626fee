"""Reads for the agents' pages: who may work, when it was last here, and what it holds.

The number of queries is the same for one agent and for hundreds.
Source: UI.md section 5.8, DESIGN section 15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from orchestration.errors import NotFound
from orchestration.models import Agent, Assignment, Project, ToolCall
from orchestration.states import AssignmentStatus

RECENT = 20
"""Assignments shown on an agent's own page."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent. Shape: no `projects` means every project; `leases` are what it holds now."""

    agent: Agent
    projects: Sequence[Project]
    leases: Sequence[Assignment]

    @property
    def last_seen_at(self) -> datetime | None:
        """When it last called."""
        return self.agent.last_seen_at


@dataclass(frozen=True, slots=True)
class WorkRow:
    """One piece of work of an agent, and how many tool calls are on record for it."""

    assignment: Assignment
    calls: int


def list_agents() -> list[AgentRow]:
    """List every agent by name, with its projects and its live leases."""
    agents = list(Agent.objects.prefetch_related("projects").order_by("name"))
    leases = _leases()
    return [_row(one, leases) for one in agents]


def read_agent(name: str) -> AgentRow:
    """Find one agent by name. Errors: NotFound."""
    agent = Agent.objects.prefetch_related("projects").filter(name=name).first()
    if agent is None:
        raise NotFound("There is no such agent.")
    return _row(agent, _leases(agent))


def list_work(agent: Agent) -> list[WorkRow]:
    """List an agent's newest pieces of work."""
    rows = list(
        Assignment.objects.filter(agent=agent, leased_at__isnull=False)
        .select_related("task__project", "task__root", "task__parent__parent", "project")
        .order_by("-leased_at", "-pk")[:RECENT]
    )
    counted = ToolCall.objects.filter(assignment__in=[row.pk for row in rows]).values_list(
        "assignment"
    )
    calls = dict(counted.annotate(calls=Count("pk")).order_by())
    return [WorkRow(row, calls.get(row.pk, 0)) for row in rows]


def _leases(agent: Agent | None = None) -> Mapping[int | None, list[Assignment]]:
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value, agent__isnull=False
    ).select_related("task__project", "task__root", "task__parent__parent", "project")
    if agent is not None:
        rows = rows.filter(agent=agent)
    found: dict[int | None, list[Assignment]] = {}
    for row in rows.order_by("-leased_at", "-pk"):
        found.setdefault(row.agent_id, []).append(row)
    return found


def _row(agent: Agent, leases: Mapping[int | None, list[Assignment]]) -> AgentRow:
    return AgentRow(agent, list(agent.projects.all()), leases.get(agent.pk, ()))
