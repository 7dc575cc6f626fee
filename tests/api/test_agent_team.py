"""Planner, executor and reviewer, as processes of their own, carry one three-step task through.

They speak nothing but HTTP, run real commands, and none of them believes another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.api.served import (
    CLIENT_SECONDS,
    CLIENTS,
    Server,
    python_client,
    serving,
    start_client,
)
from tests.deployment.processes import wait_until

SCOPES = {"planner.py": "observe,plan", "executor.py": "observe,execute", "qa.py": "observe,review"}
SIEVE = (
    "found = [n for n in range(2, 60) if all(n % d for d in range(2, n))]; "
    "print(*found, file=open('primes.txt', 'w'))"
)
COUNT = "print(len(open('primes.txt').read().split()), file=open('count.txt', 'w'))"
REPORT = "n = open('count.txt').read().strip(); print(n, 'primes', file=open('report.md', 'w'))"
TEXT = f"""Say how many primes there are below 60.

1. List the primes: `python3 -c "{SIEVE}"`
2. Count them: `python3 -c "{COUNT}"`
3. Write one sentence: `python3 -c "{REPORT}"`
"""
TEAM = {"seats": {"planner": ["external"], "qa": ["external"]}}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, services: Mapping[str, str]
) -> Iterator[Server]:
    """A server whose project has agents plan and review."""
    with serving(tmp_path_factory.mktemp("team"), services) as running:
        running.ask("PATCH", "/api/projects/shop/", json={"policy": TEAM})
        yield running


@pytest.fixture(scope="module")
def tokens(server: Server) -> dict[str, str]:
    """A token for each of the three; nobody has more scopes than it needs."""
    return {name: server.token(name.removesuffix(".py"), scopes) for name, scopes in SCOPES.items()}


def carry_through(server: Server, tokens: dict[str, str], text: str) -> tuple[Any, str]:
    """Let the team work until the task has ended. Return the task, and what the team said."""
    body = {"title": "Count the primes", "description": text, "route": "three_step"}
    key = server.ask("POST", "/api/projects/shop/tasks", json=body)["key"]
    with ExitStack() as stack:
        team = [
            stack.enter_context(
                start_client(server, python_client(name, "--rounds", "3"), token=token)
            )
            for name, token in tokens.items()
        ]
        ended = wait_until(lambda: server.task(key)["status"] in ("done", "fatal", "waiting_human"))
        said = "".join(one.communicate(timeout=CLIENT_SECONDS)[0] for one in team)
    assert ended, said
    assert [one.returncode for one in team] == [0, 0, 0], said
    assert not any(token in said for token in tokens.values())
    return server.task(key), said


def content(server: Server, artifact: Any) -> str:
    """Read a locked artifact."""
    url = f"{server.url}{artifact['content_url']}"
    return httpx.get(url, headers={"Authorization": f"Bearer {server.sir}"}).text


@pytest.mark.faults
def test_team_carries_a_three_step_task_through(server: Server, tokens: dict[str, str]) -> None:
    task, said = carry_through(server, tokens, TEXT)
    assert task["status"] == "done", said
    assert task["plans"][-1]["agent"] == "planner"
    assert task["plans"][-1]["status"] == "approved"
    steps = [server.task(one["key"]) for one in task["children"]]
    assert [one["step_key"] for one in steps] == ["1", "2", "3"]
    assert {one["status"] for one in steps} == {"done"}
    for step in steps:
        assert [one["exit_code"] for one in step["tool_calls"]] == [0]
        assert {(one["verdict"], one["agent"]) for one in step["reviews"]} == {("pass", "qa")}
        seats = {one["seat"]: one["agent"] for one in step["assignments"]}
        assert (seats["executor"], seats["qa"]) == ("executor", "qa")
        assert any(one["comment_type"] == "handoff" for one in step["comments"])
    made = {one["name"]: content(server, one) for step in steps for one in step["artifacts"]}
    assert made["count.txt"] == "17\n"
    assert made["report.md"] == "17 primes\n"
    assert made["primes.txt"].split()[:4] == ["2", "3", "5", "7"]
    # The second step read what the first one locked.
    assert "read 1 hand-offs first" in steps[1]["comments"][-1]["body"]


@pytest.mark.faults
def test_reviewer_does_not_pass_what_its_own_run_does_not_make(
    server: Server, tokens: dict[str, str]
) -> None:
    luck = "import secrets; print(secrets.token_hex(), file=open('luck.txt', 'w'))"
    text = f'1. Draw a number: `python3 -c "{luck}"`'
    body = {"title": "Draw", "description": text, "route": "three_step"}
    key = server.ask("POST", "/api/projects/shop/tasks", json=body)["key"]
    with ExitStack() as stack:
        team = [
            stack.enter_context(
                start_client(server, python_client(name, "--rounds", "1"), token=token)
            )
            for name, token in tokens.items()
        ]
        said = "".join(one.communicate(timeout=CLIENT_SECONDS)[0] for one in team)
    step = server.task(server.task(key)["children"][0]["key"])
    assert step["status"] == "review", said
    (defect,) = step["defects"]
    assert defect["severity"] == "high"
    assert "luck.txt is not what the command makes" in defect["title"]
    assert step["artifacts"] == []
    server.ask("POST", f"/api/projects/shop/tasks/{key}/cancel", json={"reason": "shown"})


def test_clients_need_nothing_but_python() -> None:
    own = {path.stem for path in CLIENTS.glob("*.py")}
    for path in CLIENTS.glob("*.py"):
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        imported = {
            words[1].split(".")[0] for words in lines if words and words[0] in ("import", "from")
        }
        assert imported <= sys.stdlib_module_names | own
        assert len(lines) <= 120
