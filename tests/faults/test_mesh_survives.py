"""Mail and handshakes through a killed server: sent again it is there once, and work goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from tests.faults.conftest import SCALED_OUT
from tests.faults.site import Site

pytestmark = pytest.mark.faults
EMBEDDED = {"web": ["serve"]}
MAILS = 60
MANY_SCOPES = "observe,execute,orchestrate"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`serve` alone, on SQLite and memory."""
    with ExitStack() as stack:
        yield Site(stack, tmp_path_factory.mktemp("embedded-mesh"), "")


class Mesh:
    """A project with two agents and Sir, at an installation that is killed and started again."""

    def __init__(self, site: Site, commands: dict[str, list[str]]) -> None:
        self.site, self.commands = site, commands
        site.heal(commands)
        site.command("create_project", "mesh")
        self.tokens = {
            name: self._token("create_agent", name, "--project", "mesh", "--scopes", MANY_SCOPES)
            for name in ("alice", "bob")
        }
        self.tokens["sir"] = self._token("create_token", "sir", "--allow-decide")

    def _token(self, *command: str) -> str:
        return self.site.command(*command, "--quiet").split()[-1]

    def call(self, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """Ask the API as somebody."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        url = f"{self.site.url}api/{path}"
        return httpx.request(method, url, json=body, headers=headers, timeout=30)

    def try_to_send(self, body: Any) -> None:
        """Send a mail to a server that may be dying."""
        with suppress(httpx.HTTPError):
            self.call("alice", "POST", "mail/", body)

    def kill(self) -> None:
        """Kill the web process and start it again."""
        self.site.kill("web")
        self.site.heal(self.commands)

    def inbox(self, who: str) -> list[str]:
        """The message ids that somebody received."""
        answer = self.call(who, "GET", "mail/?box=in&page_size=200")
        return [one["message_id"] for one in answer.json()["results"]]


def assert_mail_survives(mesh: Mesh) -> None:
    """Kill the server among many mails; sent again, each is there once."""
    mails = [
        {"type": "inform", "to": "bob", "message_id": f"m-{n}", "content": f"text {n}"}
        for n in range(MAILS)
    ]
    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(mesh.try_to_send, one) for one in mails]
        sending[MAILS // 3].result()
        mesh.site.kill("web")
    mesh.site.heal(mesh.commands)
    answers = [mesh.call("alice", "POST", "mail/", one) for one in mails]
    assert {one.status_code for one in answers} == {200, 201}
    assert sorted(mesh.inbox("bob")) == sorted(one["message_id"] for one in mails)
    other = mesh.call("alice", "POST", "mail/", {**mails[0], "content": "another"})
    assert (other.status_code, other.json()["code"]) == (409, "message_conflict")


def assert_handshake_survives(mesh: Mesh) -> None:
    """Kill the server between the intent, Sir's answer and the start."""
    new = {"title": "Tidy the report", "route": "light_plan"}
    task = mesh.call("alice", "POST", "projects/mesh/tasks", new).json()["id"]
    path = f"projects/mesh/tasks/{task}"
    assert mesh.call("bob", "POST", f"{path}/claim").status_code == 200
    intent = {
        "type": "intent_confirmation", "message_id": "i-1", "task": task, "scope": "the report",
        "approach": "read it", "questions": ["Which period?"],
    }  # fmt: skip
    assert mesh.call("bob", "POST", "mail/", intent).status_code == 201
    mesh.kill()
    again = mesh.call("bob", "POST", "mail/", intent)
    assert (again.status_code, again.json()["repeat"]) == (200, True)
    assert mesh.call("bob", "POST", f"{path}/status", {"status": "working"}).status_code == 409
    (item,) = mesh.call("sir", "GET", "decisions/?status=open").json()["results"]
    verdict = {"verdict": "confirmed_with_correction", "reason": "the last week",
               "version": item["version"], "digest": item["digest"]}  # fmt: skip
    decide = f"decisions/{item['id']}/decide"
    assert mesh.call("sir", "POST", decide, verdict).status_code == 200
    mesh.kill()
    assert mesh.call("sir", "POST", decide, verdict).status_code == 200
    (ack,) = mesh.call("bob", "GET", "mail/?in_reply_to=i-1").json()["results"]
    assert ack["details"]["corrections"] == ["the last week"]
    assert mesh.call("bob", "POST", f"{path}/status", {"status": "working"}).status_code == 200


def test_one_process_on_sqlite(embedded: Site) -> None:
    mesh = Mesh(embedded, EMBEDDED)
    assert_mail_survives(mesh)
    assert_handshake_survives(mesh)


def test_scaled_out_on_postgresql_and_redis(installation: Site) -> None:
    mesh = Mesh(installation, SCALED_OUT)
    assert_mail_survives(mesh)
    assert_handshake_survives(mesh)
