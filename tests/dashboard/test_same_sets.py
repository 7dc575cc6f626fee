"""Badge, rows, API and cards are the same set after any order of what can happen to items."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import Decision, Project
from orchestration.services.projects import pause_project
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.states import DecisionKind
from tests.dashboard.kinds import ask
from tests.factories import agent_step, child, decide, drive, new_project, submit_plan

SIR = Actor("human:sir")
ROW = re.compile(r'<li id="row-(\d+)"')
COUNT = re.compile(r'data-count="(\d+)"')
EVENTS = ("decided", "asked again", "cancelled", "paused")


@pytest.fixture
def events(sir: User) -> Mapping[str, Callable[[], object]]:
    """What can happen to four items of two roots."""
    project = new_project("orders")
    root = submit_plan(project, agent_step("1"), agent_step("2"), agent_step("3"))
    other = submit_plan(project, agent_step("1"))
    drive(project)
    notice = ask(DecisionKind.HIGH_NOTICE, project, child(root, "1"))
    again = child(root, "2")
    ask(DecisionKind.CLARIFICATION, project, again)
    ask(DecisionKind.CLARIFICATION, project, child(root, "3"))
    ask(DecisionKind.WAITING_HUMAN, project, other)
    return {
        "decided": lambda: decide(notice, "acknowledge"),
        "asked again": lambda: ask(DecisionKind.CLARIFICATION, project, again, detail="more"),
        "cancelled": lambda: cancel_task(task_id=other.pk, actor=SIR, reason="no"),
        "paused": lambda: pause_project(project_id=project.pk, actor=SIR),
    }


def shown(client: Client) -> tuple[set[int], set[int], int]:
    """The rows of the page, the ids of the API, and the badge."""
    page = client.get(reverse("dashboard:inbox")).content.decode()
    api = client.get("/api/decisions/", {"status": "open"}).json()["results"]
    badge = COUNT.search(client.get(reverse("dashboard:inbox_count")).content.decode())
    assert badge is not None
    return {int(pk) for pk in ROW.findall(page)}, {int(one["id"]) for one in api}, int(badge[1])


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS))[::4])
def test_sets_are_the_same_after_each_event(
    order: Sequence[str], events: Mapping[str, Callable[[], object]], sir_client: Client
) -> None:
    project = Project.objects.get(slug="orders")
    for name in order:
        events[name]()
        found = Decision.objects.filter(project=project, status="open")
        is_open = set(found.values_list("pk", flat=True))
        assert shown(sir_client) == (is_open, is_open, len(is_open)), name
        for pk in is_open:
            card = sir_client.get(reverse("dashboard:decision", args=[pk])).content.decode()
            assert 'name="verdict"' in card, name
    assert Decision.objects.filter(project=project, status="open").count() == 2
