"""The two small agents of `examples/agents`, as processes, against a running server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

import httpx
import pytest

from tests.api.served import (
    CLIENT_SECONDS,
    CLIENTS,
    Server,
    python_client,
    run_client,
    serving,
    start_client,
)
from tests.deployment.processes import wait_until


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, services: Mapping[str, str]
) -> Iterator[Server]:
    """Serve from a data directory of its own."""
    with serving(tmp_path_factory.mktemp("served"), services) as running:
        yield running


@pytest.mark.faults
def test_both_clients_claim_and_do_real_work(server: Server) -> None:
    counted = server.submit("Translate the words of this sentence, the words")
    shouted = server.submit("Implement the greeting")
    listed = server.submit("Implement the inventory")

    said = run_client(server, [sys.executable, "agent.py", "--limit", "1"])
    assert said == f"{counted}: done\n"
    shout = "import sys; print(sys.stdin.read().upper())"
    said = run_client(
        server, [sys.executable, "agent.py", "--limit", "1", "--", sys.executable, "-c", shout]
    )
    assert said == f"{shouted}: done\n"
    assert run_client(server, ["./agent.sh"]).startswith(f"{listed}: ")
    # The file of the last one is read and locked by our own worker.
    assert wait_until(lambda: server.is_done(listed))

    first = server.task(counted)
    assert "2 words" in first["outputs"][0]["content"].splitlines()
    assert first["assignments"][0]["agent"] == "worker"
    second = server.task(shouted)
    assert "IMPLEMENT THE GREETING" in second["outputs"][0]["content"]
    assert second["tool_calls"][0]["exit_code"] == 0
    third = server.task(listed)
    name = third["outputs"][0]["path"]
    assert name.endswith("inventory.md")
    content = httpx.get(
        f"{server.url}{third['artifacts'][0]['content_url']}",
        headers={"Authorization": f"Bearer {server.agent}"},
        timeout=CLIENT_SECONDS,
    ).text
    assert content.startswith("# Inventory of task ")
    assert all(server.is_done(key) for key in (counted, shouted, listed))


@pytest.mark.faults
def test_failing_command_fails_the_step_and_waiting_client_gets_work_at_once(
    server: Server,
) -> None:
    fail = "import sys; sys.exit(3)"
    command = python_client("agent.py", "--limit", "1", "--", sys.executable, "-c", fail)
    with start_client(server, command) as waiting:
        key = server.submit("Implement what cannot be")
        said, _ = waiting.communicate(timeout=CLIENT_SECONDS)
    assert said.startswith(f"{key}: ")
    task = server.task(key)
    server.ask("POST", f"/api/projects/shop/tasks/{key}/cancel", json={"reason": "hopeless"})
    assert task["failure_context"][0]["root_cause"] == f"{sys.executable}: exit 3"
    assert task["tool_calls"][0]["outcome"] == "failed"
    assert task["outputs"] == []


def test_python_client_is_short_and_needs_nothing() -> None:
    text = (CLIENTS / "agent.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if "import " in line
                and line.split()[0] in ("import", "from")}  # fmt: skip
    assert imported <= sys.stdlib_module_names


def test_shell_client_keeps_the_token_off_the_command_line() -> None:
    text = (CLIENTS / "agent.sh").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "$COUNTERSIGN_TOKEN" in line]
    assert [line.strip().split()[0] for line in lines] == ["printf"]
    assert os.access(CLIENTS / "agent.sh", os.X_OK)
