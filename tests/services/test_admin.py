"""The admin pages show rows and change none."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from orchestration.models import Agent, Task
from tests.factories import agent_step, child, claim, drive, new_agent, new_project, submit_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    get_user_model().objects.create_superuser("operator", password="operator-1234")
    client = Client()
    assert client.login(username="operator", password="operator-1234")
    return client


def test_rows_are_shown_without_their_secrets_and_cannot_be_changed(operator: Client) -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent()
    held = claim(child(root, "1"), agent)
    shown = operator.get(f"/admin/orchestration/assignment/{held.pk}/change/")
    assert shown.status_code == 200
    assert held.lease_token not in shown.content.decode()
    hidden = operator.get(f"/admin/orchestration/agent/{agent.pk}/change/")
    assert Agent.objects.get(pk=agent.pk).token_hash not in hidden.content.decode()
    refused = operator.post(f"/admin/orchestration/task/{root.pk}/change/", {"title": "mine"})
    assert refused.status_code == 403
    assert Task.objects.get(pk=root.pk).title != "mine"
    assert operator.post(f"/admin/orchestration/task/{root.pk}/delete/").status_code == 403
