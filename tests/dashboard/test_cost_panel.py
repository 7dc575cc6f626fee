"""The board's cost panel: reported, computed and unknown by seat and by root, never added."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration.models import Agent, Assignment, Project
from orchestration.selectors.costs import spent_by_root, spent_by_seat
from tests.factories import (
    agent_step,
    child,
    drive,
    execute,
    new_agent,
    new_project,
    step,
    submit_plan,
)

URL = "/projects/spent/costs/"
CELLS = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)


@pytest.fixture
def agent(sir: User) -> Agent:
    """An agent of every seat."""
    return new_agent("coder")


@pytest.fixture
def project(agent: Agent) -> Project:
    """Three roots: one whose agents told $2.50 and nothing, one that told nothing, one of ours."""
    project = new_project("spent", policy={"limits": {"concurrent_roots": 5}})
    roots = [
        submit_plan(project, agent_step("a"), agent_step("b"), text="told some"),
        submit_plan(project, agent_step("a"), text="told nothing"),
        submit_plan(project, step("a"), text="our own"),
    ]
    drive(project)
    for root, key in ((roots[0], "a"), (roots[0], "b"), (roots[1], "a")):
        execute(child(root, key), agent)
    told = Assignment.objects.filter(task=child(roots[0], "a"), seat="executor")
    told.update(usage={"cost_usd": 2.5, "input_tokens": 10, "output_tokens": 5})
    return project


def lines(page: str) -> list[list[str]]:
    """The cells of each row, without tags."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in CELLS.findall(row)] for row in rows]


def test_kinds_are_kept_apart_by_seat_and_by_root(project: Project, sir_client: Client) -> None:
    found = lines(sir_client.get(URL).content.decode())
    executor = next(row for row in found if row[0] == "executor")
    assert executor == ["executor", "$2.50 of 1", "$0 of 1, no model", "unknown for 2"]
    by_root = {row[0].split(" ", 1)[1]: row[1:] for row in found if row[0].startswith("SPENT")}
    assert list(by_root) == ["told some", "told nothing", "our own"]
    assert by_root["told some"][0] == "$2.50 of 1"
    assert by_root["told some"][2].startswith("unknown for ")
    assert by_root["told nothing"][0] == ""
    assert by_root["our own"][0] == by_root["our own"][2] == ""


def test_unknown_is_in_no_sum(project: Project) -> None:
    seats = spent_by_seat(project.pk)
    roots, total = spent_by_root(project.pk, limit=2)
    assert total == 3
    assert [one.task.title for one in roots] == ["told some", "told nothing"]
    assert sum(one.cost_usd for one in seats) == 2.5
    assert [one.spent.cost_usd for one in roots] == [2.5, 0.0]
    assert roots[1].spent.told == 0
    assert roots[1].spent.unknown > 0


def test_board_adds_up_only_when_the_panel_is_asked_for(
    project: Project, sir_client: Client
) -> None:
    plain = sir_client.get("/projects/spent/").content.decode()
    assert f'hx-get="{URL}" hx-trigger="panel-shown' in plain
    assert "$2.50 of 1" not in plain
    asked = sir_client.get("/projects/spent/?panel=cost").content.decode()
    assert "$2.50 of 1" in asked


def test_panel_of_an_idle_project_says_so(sir: User, sir_client: Client) -> None:
    new_project("spent")
    assert "Nothing has been worked on yet" in sir_client.get(URL).content.decode()
