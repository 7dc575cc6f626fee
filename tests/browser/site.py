"""A running installation, and what happens in it elsewhere than in the browser."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.deployment.processes import ManageProcess, manage, wait_until

ADDRESS = r"Countersign is at (http://\S+/)"
PASSWORD = "a-good-Password-1"
WAITS = 2
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Site:
    """`manage.py serve` in a data directory of its own, always at the same address."""

    def __init__(self, data_dir: Path, *, has_demo: bool = False) -> None:
        self.data_dir = data_dir
        self.environment = {"COUNTERSIGN_DEMO": str(int(has_demo)), "SIR_PASSWORD": PASSWORD}
        self.port = "0"
        self.url = ""
        self.printed_at = 0.0
        self.process: ManageProcess | None = None
        self._token = ""

    def start(self) -> None:
        """Start it, also again. The first start chooses the port."""
        self.process = self._manage("serve", "--port", self.port)
        self.url = self.process.wait_for(ADDRESS)
        self.printed_at = time.monotonic()
        self.port = self.url.rstrip("/").rpartition(":")[2]

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal."""
        assert self.process is not None
        with self.process as process:
            process.stop(number)

    def ask(self, slug: str, *, count: int = 1) -> list[int]:
        """Run a plan whose steps fail as a Medium defect; return the ids of the questions."""
        failing = [
            {
                "id": f"check-{number}", "action": f"Check part {number}", "run": ["false"],
                "on_failure": {"severity": "medium"},
            }
            for number in range(1, count + 1)
        ]  # fmt: skip
        last = {
            "id": "report", "action": "Report on all parts", "run": ["true"],
            "depends_on": [one["id"] for one in failing],
        }  # fmt: skip
        book = self.data_dir.parent / f"{slug}.yaml"
        # JSON is YAML too.
        book.write_text(json.dumps({"title": f"Look into {slug}", "steps": [*failing, last]}))
        with self._manage("run_playbook", str(book), "--project", slug, "--no-wait") as run:
            assert run.wait() == WAITS, run.output
        assert wait_until(lambda: len(self.questions(slug)) == count)
        return [int(one["id"]) for one in self.questions(slug)]

    def stop_project(self, slug: str) -> int:
        """Run a plan that fails until its project stops; return the id of the P0 question."""
        book = self.data_dir.parent / f"{slug}.yaml"
        steps = [{"id": "fails", "action": "Look for it", "run": ["ls nowhere"]}]
        book.write_text(json.dumps({"title": f"Look for {slug}", "steps": steps}))
        with self._manage("run_playbook", str(book), "--project", slug, "--no-wait") as run:
            run.wait()
        assert wait_until(lambda: len(self.questions(slug)) == 1)
        (asked,) = self.questions(slug)
        assert asked["kind"] == "max_retries"
        return int(asked["id"])

    def questions(self, slug: str) -> list[dict[str, Any]]:
        """The open decisions of a project, as the API gives them."""
        found = self.call("GET", "decisions/?status=open&limit=100")["results"]
        mine = [one for one in found if one["project_slug"] == slug]
        return sorted(mine, key=lambda one: int(one["id"]))

    def wait_finished(self, slug: str) -> None:
        """Wait until every task of a project is done."""
        path = f"projects/{slug}/tasks"
        assert wait_until(
            lambda: {one["status"] for one in self.call("GET", path)["results"]} == {"done"}
        )

    def decide(self, decision: int, verdict: str, reason: str = "enough") -> None:
        """Decide as Sir, from somewhere else."""
        shown = self.call("GET", f"decisions/{decision}/")
        sent = {name: shown[name] for name in ("version", "digest")}
        body = {**sent, "verdict": verdict, "reason": reason}
        self.call("POST", f"decisions/{decision}/decide", body)

    def run(self, code: str) -> None:
        """Run Python in a process beside the installation, as its operator could."""
        with self._manage("shell", "-c", code) as shell:
            assert shell.wait() == 0, shell.output

    def agent(self, name: str) -> str:
        """Make an agent. Return its token."""
        return self._printed("create_agent", name, "--quiet")

    def call(self, method: str, path: str, body: object = None, *, token: str = "") -> Any:
        """Ask the API with an agent's token, else with Sir's own. Return what it answered."""
        if not (token or self._token):
            self._token = self._printed("create_token", "sir", "--allow-decide", "--quiet")
        headers = {"Authorization": f"Bearer {token or self._token}"}
        answer = httpx.request(method, f"{self.url}api/{path}", json=body, headers=headers)
        assert answer.is_success, answer.text[:2000]
        return answer.json()

    def send(self, path: str, form: Mapping[str, str]) -> httpx.Response:
        """Send a form as Sir, signed in with a browser of its own."""
        with httpx.Client(base_url=self.url, follow_redirects=True) as client:
            for place, fields in (
                ("accounts/login/", {"username": "sir", "password": PASSWORD}),
                (path, form),
            ):
                token = CSRF.search(client.get(place).text)
                assert token is not None
                answer = client.post(place, data={**fields, "csrfmiddlewaretoken": token[1]})
                assert answer.is_success, answer.text[:2000]
        return answer

    def _printed(self, *arguments: str) -> str:
        with self._manage(*arguments) as made:
            assert made.wait() == 0, made.output
            return made.lines[-1]

    def _manage(self, *arguments: str) -> ManageProcess:
        return manage(*arguments, data_dir=self.data_dir, environment=self.environment)


class ServicesSite(Site):
    """The installation as three processes on PostgreSQL and Redis: web, worker, scheduler."""

    def __init__(self, data_dir: Path, *, database_url: str, redis_url: str) -> None:
        super().__init__(data_dir)
        self.environment |= {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        self.helpers: list[ManageProcess] = []

    def start(self) -> None:
        """Start all three."""
        super().start()
        self.helpers = [self._manage("worker"), self._manage("beat")]

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End all three with a signal."""
        super().stop(number)
        for helper in self.helpers:
            with helper as process:
                process.stop(number)
