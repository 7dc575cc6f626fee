"""A project of 100,000 roots and more than a million sealed events, made of a sample's copies.

`python -m tests.bench.crowd COPIES` fills the database that the environment names and prints JSON:
the rows there are, the ids that the measured pages show, and the queries that each page costs with
the sample alone and with every copy.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

if __name__ == "__main__":
    import django

    django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestration.models import AuditSeal, Decision, Project, Task
from orchestration.selectors.master import MASTER_PAGE
from orchestration.services.audit import seal_events
from orchestration.services.intake import NewTask, create_task
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from tests import factories
from tests.bench.copies import Copier
from tests.bench.pages import PAGES, SLUG

FINISHED, CANCELLED, WAITING = 85, 5, 10
"""Roots of the sample that agents did, that Sir cancelled, and that wait for an agent."""
SIR = Actor("human:sir")


def make_sample(*, roots: int = FINISHED) -> Project:
    """Make one project by the services: roots in every state, plans, a defect that waits for Sir.

    Shape: 15 roots more than `roots`, of which 3 have plans.
    """
    project = factories.new_project(SLUG, policy={"limits": {"concurrent_roots": 200}})
    agent = factories.new_agent()
    for number in range(roots):
        factories.execute(_root(project, f"root {number}"), agent)
    factories.drive(project)
    for number in range(CANCELLED):
        task = _root(project, f"not wanted {number}")
        cancel_task(task_id=task.pk, actor=SIR, reason="not needed")
    failing = factories.step("check", run=["false"], on_failure={"severity": "medium"})
    chain = [factories.step(str(n), after=[str(n - 1)] if n else []) for n in range(8)]
    factories.submit_plan(project, *chain, text="a plan that is done")
    factories.submit_plan(project, *chain, failing, text="a plan that waits for Sir")
    agents = [factories.agent_step(str(n), after=[str(n - 1)] if n else []) for n in range(8)]
    factories.submit_plan(project, *agents, text="a plan that waits for an agent")
    for number in range(WAITING - 3):
        _root(project, f"waiting root {number}")
    factories.drive(project)
    seal_events()
    project.refresh_from_db()
    return project


def _root(project: Project, text: str) -> Task:
    new = NewTask(text=f"打开 {text}")
    return create_task(project_id=project.pk, new=new, actor=SIR)


def shown_ids() -> dict[str, int]:
    """The planned root that waits for Sir, a step of it, its decision; a page of the list."""
    decision = Decision.objects.filter(status="open").order_by("pk")[0]
    step = decision.task
    assert step is not None
    half = max(Task.objects.filter(parent__isnull=True).count() // (2 * MASTER_PAGE), 1)
    return {
        "decision": decision.pk, "step": step.pk, "root": step.lineage_root_id, "half": half,
    }  # fmt: skip


def query_counts(client: Client) -> dict[str, int]:
    """Open each page, with the caches of the process warm, and count its queries."""
    ids, counts = shown_ids(), {}
    for name, path in PAGES.items():
        client.get(path.format(**ids))
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(path.format(**ids))
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code}")
        counts[name] = len(queries)
    return counts


def fill(copies: int) -> Mapping[str, Any]:
    """Fill the database. Shape: what this module prints."""
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    sir = factories.new_sir()
    sir.set_password(os.environ["SIR_PASSWORD"])
    sir.save()
    project = make_sample()
    before = query_counts(signed_in(sir))
    Copier(project).copy(copies)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    after = query_counts(signed_in(sir))
    return {
        "roots": Task.objects.filter(parent__isnull=True).count(),
        "tasks": Task.objects.count(),
        "events": AuditSeal.objects.count(),
        "open": Decision.objects.filter(status="open").count(),
        "ids": shown_ids(),
        "before": before,
        "after": after,
    }


def signed_in(sir: User) -> Client:
    """Sir's browser without a network."""
    client = Client(headers={"host": "localhost"})
    client.force_login(sir)
    return client


if __name__ == "__main__":
    sys.stdout.write(json.dumps(fill(int(sys.argv[1]))) + "\n")
