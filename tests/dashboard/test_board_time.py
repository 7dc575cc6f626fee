"""What a board says of time: how much work is left, and how long a step has waited for Sir."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import Task
from tests.dashboard.conftest import Waiting
from tests.factories import agent_step, drive, new_project, submit_plan

BAR = re.compile(r'gantt-bar--(\w+)" x="[\d.]+%" y="5" width="([\d.]+)%"[^>]*><title>([^<]*)')


@pytest.mark.parametrize(
    ("estimated", "words"),
    [(4, "about 5 h of work left if nothing waits"), (3, "no estimate"), (0, "no estimate")],
)
def test_work_left_is_said_from_four_fifths_of_estimates_on(
    estimated: int, words: str, sir: User, sir_client: Client
) -> None:
    project = new_project("estimated")
    root = submit_plan(project, *(agent_step(str(n)) for n in range(1, 6)))
    drive(project)
    keys = [str(n) for n in range(1, estimated + 1)]
    Task.objects.filter(parent=root).update(estimate_minutes=None)
    Task.objects.filter(parent=root, step_key__in=keys).update(estimate_minutes=60)
    page = sir_client.get(reverse("dashboard:board_head", args=["estimated"])).content.decode()
    assert words in page


def test_timeline_shows_the_wait_for_sir_with_its_length(
    waiting: Waiting, sir_client: Client
) -> None:
    opened = waiting.decision.created_at
    url = reverse("dashboard:timeline", args=["hello", waiting.root.pk])
    with time_machine.travel(opened + timedelta(hours=3, minutes=4), tick=False):
        page = sir_client.get(url).content.decode()
    waits = [(float(width), html.unescape(said)) for look, width, said in BAR.findall(page)
             if look == "waiting"]  # fmt: skip
    assert len(waits) == 1
    width, said = waits[0]
    assert said.startswith("2 ")
    assert "waiting for you 3 h 04 min" in said
    assert width > 80
