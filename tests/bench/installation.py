"""Start Countersign as its operator would, embedded or scaled out, and talk to it over HTTP."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from tests.deployment.processes import ROOT, ManageProcess, command_environment, manage
from tests.services_up import PostgresServer, RedisServer

ADDRESS = r"Countersign is at (http://\S+?/) "
PLAIN = {"SIR_PASSWORD": "bench-sir-9"}
"""As an operator starts it: steps without commands wait for agents."""
SEAT = {**PLAIN, "COUNTERSIGN_EXTRA_SEATS": "tests.bench.instant.InstantSeat"}
WAIT_SECONDS = 600.0
LOOK_SECONDS = 0.05


class Installation:
    """A running installation: its web address, a client that may do everything, its database."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str], web: ManageProcess) -> None:
        self.data_dir, self.environment, self.web = data_dir, environment, web
        self.url = web.wait_for(ADDRESS)
        token = self.command("create_token", "sir", "--allow-decide", "--quiet").strip()
        self.http = httpx.Client(
            base_url=self.url, timeout=120, headers={"Authorization": f"Bearer {token}"}
        )

    def command(self, *arguments: str) -> str:
        """Run one command of manage.py and return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=command_environment(self.data_dir, self.environment),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return done.stdout

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST to the API and return the answer. Errors: RuntimeError with the problem."""
        answer = self.http.post(f"api/{path}", json=body)
        if answer.is_error:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:400]}")
        parsed: dict[str, Any] = answer.json()
        return parsed

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Read the database directly: a bench must not load what it measures."""
        found: list[tuple[Any, ...]] = self._reader.execute(sql).fetchall()
        return found

    @cached_property
    def _reader(self) -> Any:
        """One connection for all looks: a new one costs PostgreSQL more than a step does."""
        if "DATABASE_URL" in self.environment:
            url = self.environment["DATABASE_URL"]
            return psycopg.connect(url, autocommit=True, prepare_threshold=0)
        return sqlite3.connect(f"file:{self.data_dir}/countersign.sqlite3?mode=ro", uri=True)

    def comment_times(self, project: str) -> dict[int, float]:
        """When the comments of a project were made, by task id. Units: seconds since 1970."""
        rows = self.query(
            "SELECT c.task_id, c.created_at FROM orchestration_comment c "
            "JOIN orchestration_task t ON t.id = c.task_id "
            f"JOIN orchestration_project p ON p.id = t.project_id WHERE p.slug = '{project}'"
        )
        moments = {
            task: datetime.fromisoformat(at) if isinstance(at, str) else at for task, at in rows
        }
        return {
            task: (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
            for task, at in moments.items()
        }

    def wait_for_done(self, project: str) -> None:
        """Wait until every root of a project is done. Errors: RuntimeError after 10 minutes."""
        sql = (
            "SELECT COUNT(*) FROM orchestration_task t JOIN orchestration_project p "
            f"ON p.id = t.project_id WHERE p.slug = '{project}' AND t.parent_id IS NULL "
            "AND t.status <> 'done'"
        )
        self._wait_for_none(sql, f"{project} did not finish")

    def wait_for_rest(self) -> None:
        """Wait until every event is sealed: what was written before is over then."""
        sql = (
            "SELECT (SELECT COUNT(*) FROM orchestration_auditevent) - "
            "(SELECT COUNT(*) FROM orchestration_auditseal)"
        )
        self._wait_for_none(sql, "events are left unsealed")

    def _wait_for_none(self, sql: str, otherwise: str) -> None:
        ends = time.monotonic() + WAIT_SECONDS
        while self.query(sql)[0][0]:
            if time.monotonic() > ends:
                raise RuntimeError(f"{otherwise}: {self.web.output[-2000:]}")
            time.sleep(LOOK_SECONDS)

    def new_project(self, policy: Mapping[str, Any] | None = None) -> str:
        """Create a project and return its slug."""
        slug = f"bench-{uuid4().hex[:8]}"
        self.post("projects/", {"slug": slug, "name": slug})
        if policy:
            answer = self.http.patch(f"api/projects/{slug}/", json={"policy": policy})
            answer.raise_for_status()
        return slug

    def resident_megabytes(self) -> float:
        """Resident memory of the web process. Units: MB of 10^6 bytes."""
        status = Path(f"/proc/{self.web.process.pid}/status").read_text()
        line = next(one for one in status.splitlines() if one.startswith("VmRSS"))
        return int(line.split()[1]) * 1024 / 1e6


@contextmanager
def embedded(folder: Path, seats: Mapping[str, str] = SEAT) -> Iterator[Installation]:
    """One process, SQLite, nothing else."""
    data_dir = folder / f"embedded-{uuid4().hex[:6]}"
    with manage("serve", data_dir=data_dir, environment=seats) as web:
        yield Installation(data_dir, seats, web)
        web.stop()


@contextmanager
def scaled_out(
    folder: Path, workers: int = 2, threads: int = 2, seats: Mapping[str, str] = SEAT
) -> Iterator[Installation]:
    """PostgreSQL and Redis; one web process, some workers and the scheduler."""
    with ExitStack() as stack:
        postgres, redis = stack.enter_context(PostgresServer()), stack.enter_context(RedisServer())
        environment = {
            **seats,
            "DATABASE_URL": postgres.create_database(f"bench_{uuid4().hex[:8]}"),
            "REDIS_URL": f"{redis.url}/0",
        }
        data_dir = folder / f"scaled-{uuid4().hex[:6]}"

        def start(*arguments: str) -> ManageProcess:
            process = manage(*arguments, data_dir=data_dir, environment=environment)
            return stack.enter_context(process)

        installation = Installation(data_dir, environment, start("serve"))
        others = [start("worker", "--concurrency", str(threads)) for _ in range(workers)]
        others.append(start("beat"))
        _wait_until_ready(installation)
        yield installation
        for process in (*others, installation.web):
            process.stop()


def _wait_until_ready(installation: Installation) -> None:
    ends = time.monotonic() + 60
    while httpx.get(f"{installation.url}readyz", timeout=20).status_code != 200:
        if time.monotonic() > ends:
            raise RuntimeError("the installation did not become ready")
        time.sleep(0.2)


def layered_plan(layers: int, width: int, needs: int = 3) -> dict[str, Any]:
    """A plan of `layers` × `width` instant steps; each needs `needs` steps of the layer before."""
    steps: list[dict[str, Any]] = []
    for layer in range(layers):
        for place in range(width):
            before = [f"{layer - 1}-{(place + k) % width}" for k in range(min(needs, width))]
            steps.append(
                {
                    "id": f"{layer}-{place}",
                    "action": f"step {layer} {place}",
                    "depends_on": sorted(set(before)) if layer else [],
                    "delegate": False,
                }
            )
    return {"summary": "bench", "steps": steps}


def moments(installation: Installation, project: str) -> dict[str, tuple[int, int]]:
    """When each instant step began and ended, by step key. Units: monotonic nanoseconds."""
    rows = installation.query(
        "SELECT t.step_key, o.content FROM orchestration_output o "
        "JOIN orchestration_task t ON t.id = o.task_id "
        "JOIN orchestration_project p ON p.id = t.project_id "
        f"WHERE p.slug = '{project}' AND o.title = 'result'"
    )
    read = {key: json.loads(content) for key, content in rows}
    return {key: (one["began"], one["ended"]) for key, one in read.items()}


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
