"""Pages cost the same queries for ten steps and for hundreds; the numbers are committed here."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestration.models import Decision, Task
from orchestration.services.audit import seal_events
from tests.factories import agent_step, drive, new_project, step, submit_plan

SIZES = [4, 150]
COUNTS = {
    "/": 31,
    "/inbox/": 15,
    "/inbox/history/": 10,
    "/inbox/{decision}/": 23,
    "/projects/": 12,
    "/projects/size/": 38,
    "/projects/size/tasks/{root}/": 41,
    "/audit/": 12,
    "/changes/?after=999999&project=size": 6,
    "/projects/size/log/": 7,
    "/projects/size/tasks/{step}/node/": 13,
    "/projects/size/tasks/{root}/row/": 8,
    "/projects/size/tasks/{root}/graph/": 16,
}


@pytest.fixture(params=SIZES)
def sized(request: pytest.FixtureRequest, sir: User) -> Task:
    """A plan of some steps, with as many roots and open decisions as fit to it."""
    count: int = request.param
    project = new_project("size")
    bad = [
        step(f"bad-{n}", run=["false"], on_failure={"severity": "medium"})
        for n in range(count // 20 + 1)
    ]
    chain = [agent_step(f"s{n}", after=[f"s{n - 1}"] if n % 7 else []) for n in range(count)]
    root = submit_plan(project, *bad, *chain)
    for number in range(count // 10):
        submit_plan(project, agent_step("1"), text=f"root {number}")
    drive(project)
    seal_events()
    return root


def count_queries(client: Client, url: str) -> int:
    """Open a page and count its queries, with the caches of the process warm."""
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


def test_pages_cost_their_committed_number_of_queries(sized: Task, sir_client: Client) -> None:
    decision = Decision.objects.filter(status="open").first()
    assert decision is not None
    ids = {
        "root": sized.pk,
        "step": sized.children.get(step_key="s1").pk,
        "decision": decision.pk,
    }
    found = {path: count_queries(sir_client, path.format(**ids)) for path in COUNTS}
    assert found == COUNTS
