"""Twenty agents ask over HTTP at the same moment, on both databases."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from orchestration.api.throttles import buckets
from orchestration.models import Assignment, AuditEvent, Project
from orchestration.states import AssignmentStatus
from tests.api.callers import Caller, agent_client
from tests.factories import fresh, new_project
from tests.races.contest import WAIT_SECONDS, direct_task, in_own_connection, on_both

pytestmark = on_both
AGENTS = 20


@pytest.fixture
def project(transactional_db: None) -> Project:
    """A project named demo."""
    buckets.forget()
    return new_project("demo")


@pytest.fixture
def agents(project: Project) -> list[Caller]:
    """Twenty agents of the project, each with a token of its own."""
    return [agent_client(project, name=f"agent-{number}") for number in range(AGENTS)]


def fire_all(agents: list[Caller], path: str, body: Any = None) -> list[Any]:
    """Let every agent send the same request at once. Return the answers, in their order.

    The pool of connections is smaller than that, as it is in production: some wait for one.
    """
    barrier = threading.Barrier(AGENTS)

    def ask(agent: Caller) -> Any:
        barrier.wait(WAIT_SECONDS)
        return agent.send(path, body)

    with ThreadPoolExecutor(AGENTS) as pool:
        waiting = [pool.submit(in_own_connection, partial(ask, agent)) for agent in agents]
        return [one.result() for one in waiting]


def test_one_of_twenty_gets_the_task_and_nineteen_are_told_who(
    project: Project, agents: list[Caller]
) -> None:
    for _ in range(5):
        task = direct_task(project)
        answers = fire_all(agents, f"/api/projects/demo/tasks/{task.pk}/claim")
        assert Counter(one.status_code for one in answers) == {200: 1, 409: 19}
        (winner,) = [
            agent.agent.name
            for agent, answer in zip(agents, answers, strict=True)
            if answer.status_code == 200 and agent.agent is not None
        ]
        refused = [one.json() for one in answers if one.status_code == 409]
        assert {(one["code"], one["reason"], one["holder"]) for one in refused} == {
            ("not_ready", "claimed", winner)
        }
        assert str(fresh(task).assignee) == winner
        leased = Assignment.objects.filter(task=task, status=AssignmentStatus.LEASED.value)
        assert [one.worker for one in leased] == [winner]
        assert AuditEvent.objects.filter(task=task, kind="task.claimed").count() == 1


def test_three_of_twenty_get_one_each_and_the_others_nothing(
    project: Project, agents: list[Caller]
) -> None:
    tasks = {str(direct_task(project).pk) for _ in range(3)}
    answers = fire_all(agents, "/api/assignments/claim", {"seats": ["executor"]})
    assert Counter(one.status_code for one in answers) == {200: 3, 204: 17}
    taken = [one.json() for one in answers if one.status_code == 200]
    assert {one["task"] for one in taken} == tasks
    assert len({one["lease_token"] for one in taken}) == 3
