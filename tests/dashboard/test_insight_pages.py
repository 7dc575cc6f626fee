"""The page of measures: a count with every figure, and words where there are too few cases."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestration.models import Task
from orchestration.services.intake import submit_message
from orchestration.services.work import SYSTEM
from tests.dashboard.conftest import Waiting
from tests.factories import new_project

TRAFFIC = re.compile(r"S0: direct by rule.*?</tr>", re.S)


def figure(page: str) -> str:
    found = TRAFFIC.search(page)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0]))


def test_nothing_is_a_fact_below_ten_cases(sir: User, sir_client: Client) -> None:
    project = new_project("few")
    for _ in range(9):
        submit_message(project_id=project.pk, text="谢谢", actor=SYSTEM)
    page = sir_client.get("/insights/", {"project": "few"}).content.decode()
    assert "too few to say (n = 9) 9 of 9" in figure(page)
    submit_message(project_id=project.pk, text="谢谢", actor=SYSTEM)
    page = sir_client.get("/insights/", {"project": "few"}).content.decode()
    assert "100 % 10 of 10" in figure(page)
    assert "too few to say (n = 0)" in page


def test_one_project_is_not_another(waiting: Waiting, sir_client: Client) -> None:
    new_project("empty")
    assert "Medium defect" in sir_client.get("/insights/").content.decode()
    page = sir_client.get("/insights/", {"project": "empty"}).content.decode()
    assert "Nobody has worked yet" in page
    assert "Medium defect" not in page
    assert sir_client.get("/insights/", {"project": "nothing"}).status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_page_costs_the_same_for_more_rows(language: str, sir: User, sir_client: Client) -> None:
    project = new_project("many")
    counts = []
    for size in (3, 40):
        for _ in range(size):
            submit_message(project_id=project.pk, text="谢谢", actor=SYSTEM)
        sir_client.get("/insights/")
        with CaptureQueriesContext(connection) as queries:
            answer = sir_client.get("/insights/", headers={"Accept-Language": language})
        assert answer.status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert Task.objects.count() == 43
