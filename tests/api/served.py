"""A server as its operator starts it, and the example agents as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.deployment.processes import ROOT, ManageProcess, command_environment, manage

ADDRESS = r"Countersign is at (http://\S+)/ "
CLIENTS = ROOT / "examples" / "agents"
CLIENT_SECONDS = 60
BESIDE_IT = (("worker", "--concurrency", "2"), ("beat",))
"""What runs as processes of its own where the server has a broker."""


class Server:
    """A running server with Sir's token and, where a project is named, an agent of it."""

    def __init__(self, url: str, data_dir: Path, project: str, services: Mapping[str, str]) -> None:
        self.url = url
        self.data_dir = data_dir
        self.services = services
        self.sir = self.command("create_token", "sir", "--allow-decide", "--quiet")
        self.agent = ""
        if project:
            self.command("create_project", project)
            self.agent = self.command("create_agent", "worker", "--project", project, "--quiet")

    def token(self, name: str, scopes: str) -> str:
        """Make another agent of the project. Return its token."""
        return self.command(
            "create_agent", name, "--project", "shop", "--scopes", scopes, "--quiet"
        )

    def command(self, *arguments: str) -> str:
        """Run a command of manage.py to its end. Return what it says."""
        with manage(*arguments, data_dir=self.data_dir, environment=self.services) as running:
            assert running.wait() == 0, running.output
            return running.lines[-1]

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Ask as Sir. Return the document."""
        answer = httpx.request(
            method,
            f"{self.url}{path}",
            headers={"Authorization": f"Bearer {self.sir}"},
            timeout=CLIENT_SECONDS,
            **options,
        )
        assert answer.is_success, answer.text
        return answer.json()

    def submit(self, text: str) -> str:
        """Hand in a message. Return the task's readable key."""
        task = self.ask("POST", "/api/projects/shop/messages", json={"text": text})["task"]
        return str(task["key"])

    def task(self, key: str) -> Any:
        """Read everything about a task."""
        return self.ask("GET", f"/api/projects/shop/tasks/{key}?expand=all")

    def is_done(self, key: str) -> bool:
        """Whether a task is done."""
        return bool(self.task(key)["status"] == "done")


@contextmanager
def serving(data_dir: Path, services: Mapping[str, str], project: str = "shop") -> Iterator[Server]:
    """Serve from a data directory of its own, on SQLite alone or on `services`."""
    with ExitStack() as stack:

        def started(*arguments: str) -> ManageProcess:
            return stack.enter_context(manage(*arguments, data_dir=data_dir, environment=services))

        web = started("serve")
        url = web.wait_for(ADDRESS)
        beside = [started(*arguments) for arguments in BESIDE_IT if services]
        yield Server(url, data_dir, project, services)
        for process in (*beside, web):
            process.stop()


def start_client(
    server: Server, command: Sequence[str], *, token: str = ""
) -> subprocess.Popen[str]:
    """Start a client as a process of its own."""
    known = {"COUNTERSIGN_TOKEN": token or server.agent, "COUNTERSIGN_URL": server.url}
    return subprocess.Popen(  # noqa: S603  # our own clients
        list(command),
        env=command_environment(server.data_dir, known),
        cwd=CLIENTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_client(server: Server, command: Sequence[str]) -> str:
    """Run a client to its end. Return what it prints."""
    with start_client(server, command) as running:
        said, _ = running.communicate(timeout=CLIENT_SECONDS)
    assert running.returncode == 0, said
    assert server.agent not in said
    return said


def python_client(name: str, *arguments: str) -> list[str]:
    """The command line of one of the Python clients."""
    return [sys.executable, name, *arguments]
