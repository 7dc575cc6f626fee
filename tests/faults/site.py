"""An installation of real processes that tests may kill, and a run whose side effects are written.

Every step appends `start KEY TIME` and `end KEY TIME` to one file of its workspace. What became of
the run is read from the database as somebody beside the system would: by SQL.
"""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.deployment.processes import ManageProcess, manage, wait_until

ADDRESS = r"Countersign is at (http://\S+/)"
RUN_SECONDS = 75.0
WORK_SECONDS = 0.3
LAYERS = 3
WIDTH = 10
CLOCK_SLACK_SECONDS = 0.05
SLOW = "slow"
LOCKED = (
    "SELECT t.step_key, a.name FROM orchestration_artifact a"
    " JOIN orchestration_task t ON t.id = a.task_id"
    " JOIN orchestration_project p ON p.id = t.project_id"
    " WHERE p.slug = ? AND t.parent_id IS NOT NULL"
)
DONE = (
    "SELECT t.step_key FROM orchestration_auditevent e"
    " JOIN orchestration_task t ON t.id = e.task_id"
    " JOIN orchestration_project p ON p.id = t.project_id"
    " WHERE p.slug = ? AND t.parent_id IS NOT NULL AND e.kind = 'task.done'"
)


class Database:
    """Read-only SQL on the database of an installation, whichever it is. Units: times in UTC."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_postgres = address.startswith("postgresql")

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement in a session of its own. Shape: `?` marks the parameters."""
        if self.is_postgres:
            with psycopg.connect(self.address, autocommit=True) as session:
                cursor = session.execute(sql.replace("?", "%s").encode(), parameters)
                return cursor.fetchall() if cursor.description else []
        session_ = sqlite3.connect(f"file:{self.address}?mode=ro", uri=True, timeout=20)
        try:
            return session_.execute(sql, parameters).fetchall()
        finally:
            session_.close()

    def one(self, sql: str, *parameters: object) -> Any:
        """Return the one value of the one row."""
        ((value,),) = self.rows(sql, *parameters)
        return value

    def seconds(self, value: Any) -> float:
        """Turn a stored time into seconds since 1970."""
        if isinstance(value, str):
            value = datetime.fromisoformat(value).replace(tzinfo=UTC)
        return float(value.timestamp())


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the effects. Units: `at` is seconds since 1970."""

    move: str
    key: str
    at: float


class Run:
    """One playbook on a workspace of its own, submitted by `run_playbook`, which follows it."""

    def __init__(self, folder: Path, slug: str, *, slow_seconds: float = 0.0) -> None:
        self.slug = slug
        self.workspace = folder / slug
        self.workspace.mkdir()
        self.path = folder / f"{slug}.json"
        self.keys = [f"s{layer}-{n}" for layer in range(LAYERS) for n in range(WIDTH)]
        steps = [self._step(key) for key in self.keys]
        if slow_seconds:
            # The first in the queue, so that it is at work all along.
            self.keys.insert(0, SLOW)
            steps.insert(0, _written(SLOW, [], slow_seconds))
        # JSON is YAML.
        document = {"title": f"Faults {slug}", "summary": "Steps that append.", "steps": steps}
        self.path.write_text(json.dumps(document))

    def _step(self, key: str) -> dict[str, Any]:
        layer, _, number = key[1:].partition("-")
        after = [f"s{int(layer) - 1}-{number}"] if layer != "0" else []
        return _written(key, after, WORK_SECONDS)

    @property
    def arguments(self) -> Sequence[str]:
        """The command line that submits and follows it."""
        where = ["--workspace", str(self.workspace), "--project", self.slug]
        return ["run_playbook", str(self.path), *where, "--no-wait"]

    def lines(self) -> list[Line]:
        """Read what its steps have done so far."""
        path = self.workspace / "effects"
        words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [Line(move, key, float(at)) for move, key, at in words]

    def count(self, move: str) -> Counter[str]:
        """Count the starts or the ends by step."""
        return Counter(line.key for line in self.lines() if line.move == move)

    def is_in_the_middle(self) -> bool:
        """Whether some steps have ended, and others have not begun."""
        return WIDTH // 2 <= len(self.count("end")) <= len(self.keys) - WIDTH

    def running(self) -> set[str]:
        """The steps that have begun and not ended."""
        return set(self.count("start") - self.count("end"))


def _written(key: str, after: Sequence[str], seconds: float) -> dict[str, Any]:
    say = f"echo $0 {key} $(date +%s.%N) >> effects"
    script = f"{say.replace('$0', 'start')}; sleep {seconds}; {say.replace('$0', 'end')}"
    return {
        "id": key,
        "action": f"append {key}",
        "depends_on": list(after),
        "run": [f"sh -c '{script}'"],
    }


class Site:
    """The processes of one installation. A killed one is started again by `heal`."""

    def __init__(self, stack: ExitStack, folder: Path, address: str, redis_url: str = "") -> None:
        self.stack = stack
        self.folder = folder
        self.data_dir = folder / "data"
        self.environment = (
            {"DATABASE_URL": address, "REDIS_URL": f"{redis_url}/0"} if redis_url else {}
        )
        self.database = Database(address or str(self.data_dir / "countersign.sqlite3"))
        self.processes: dict[str, ManageProcess] = {}
        self.url = ""

    def start(self, *arguments: str) -> ManageProcess:
        """Start a command of the installation; it dies with the test at the latest."""
        process = manage(*arguments, data_dir=self.data_dir, environment=self.environment)
        return self.stack.enter_context(process)

    def heal(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Start what does not run, and wait until everything is ready."""
        for name, arguments in commands.items():
            process = self.processes.get(name)
            if process is None or process.process.poll() is not None:
                self.processes[name] = self.start(*arguments)
                if name == "web":
                    self.url = self.processes[name].wait_for(ADDRESS)
        assert wait_until(self.is_ready), self.readiness()

    def kill(self, name: str) -> None:
        """End a process with no chance to say anything."""
        assert self.processes.pop(name).stop(signal.SIGKILL) == -signal.SIGKILL

    def readiness(self) -> dict[str, Any]:
        """Ask /readyz. Shape: its document, empty when nobody answers."""
        try:
            answer: dict[str, Any] = httpx.get(f"{self.url}readyz", timeout=20).json()
        except httpx.HTTPError:
            return {}
        return answer

    def is_ready(self) -> bool:
        """Whether every check of /readyz is green."""
        return self.readiness().get("status") == "ready"

    def check(self, name: str) -> bool | None:
        """Whether one check of /readyz is green; None when nobody answers."""
        checks = self.readiness().get("checks")
        return bool(checks[name]["ok"]) if checks else None

    def command(self, *arguments: str) -> str:
        """Run a command to its end. Return what it said."""
        process = self.start(*arguments)
        assert process.wait() == 0, process.output
        return process.output

    def root_status(self, run: Run) -> str:
        """Read the state of a run's root; empty before it is there."""
        sql = (
            "SELECT t.status FROM orchestration_task t JOIN orchestration_project p"
            " ON p.id = t.project_id WHERE p.slug = ? AND t.parent_id IS NULL"
        )
        return "".join(status for (status,) in self.database.rows(sql, run.slug))

    def wait_until_done(self, run: Run) -> None:
        """Wait until a run's root is done."""
        is_over = wait_until(lambda: self.root_status(run) == "done", seconds=RUN_SECONDS)
        assert is_over, f"{self.root_status(run)}: {self.open_steps(run)}\n{self.said()}"

    def open_steps(self, run: Run) -> list[tuple[Any, ...]]:
        """List the steps that are not done, and who was on them."""
        sql = (
            "SELECT t.step_key, t.status, a.seat, a.status, a.worker, a.error"
            " FROM orchestration_task t JOIN orchestration_project p ON p.id = t.project_id"
            " LEFT JOIN orchestration_assignment a ON a.task_id = t.id"
            " WHERE p.slug = ? AND t.status <> 'done' ORDER BY t.id, a.id"
        )
        return self.database.rows(sql, run.slug)

    def said(self) -> str:
        """Return the last words of every process, for a test that fails."""
        return "\n".join(f"{name}: {one.output[-800:]}" for name, one in self.processes.items())

    def held_by(self, name: str) -> set[str]:
        """The keys of the steps that a worker process holds."""
        sql = (
            "SELECT t.step_key, a.worker FROM orchestration_assignment a"
            " JOIN orchestration_task t ON t.id = a.task_id"
            " WHERE a.status = 'leased' AND a.seat = 'executor'"
        )
        pid = str(self.processes[name].process.pid)
        return {key for key, worker in self.database.rows(sql) if worker.split(":")[1] == pid}


def assert_ran_once(site: Site, run: Run) -> None:
    """Every step was recorded and locked once, and did nothing after its result was recorded."""
    sql = (
        "SELECT t.step_key, a.finished_at, a.token, a.transient_count, a.status"
        " FROM orchestration_assignment a JOIN orchestration_task t ON t.id = a.task_id"
        " JOIN orchestration_project p ON p.id = t.project_id"
        " WHERE p.slug = ? AND a.seat = 'executor'"
    )
    executed = site.database.rows(sql, run.slug)
    assert sorted(row[0] for row in executed) == sorted(run.keys)
    assert {row[4] for row in executed} == {"done"}
    starts, ends = run.count("start"), run.count("end")
    last = {line.key: line.at for line in run.lines()}
    for key, finished_at, _token, cut_off, _status in executed:
        assert last[key] <= site.database.seconds(finished_at) + CLOCK_SLACK_SECONDS, key
        assert 1 <= starts[key] <= 1 + cut_off, key
        assert 1 <= ends[key] <= starts[key], key
    assert_locked_once(site, run)


def assert_locked_once(site: Site, run: Run) -> None:
    """Each step has one artifact of each name, and one move to done."""
    locked = site.database.rows(LOCKED, run.slug)
    assert {key for key, _ in locked} == set(run.keys)
    assert max(Counter(locked).values()) == 1
    done = site.database.rows(DONE, run.slug)
    assert sorted(key for (key,) in done) == sorted(run.keys)


def assert_trail_holds(site: Site) -> None:
    """Every event is sealed and the chain verifies."""
    sql = (
        "SELECT count(*) FROM orchestration_auditevent e"
        " LEFT JOIN orchestration_auditseal s ON s.event_id = e.id WHERE s.position IS NULL"
    )
    assert wait_until(lambda: site.database.one(sql) == 0)
    said = site.command("verify_audit")
    assert re.search(r"The audit trail holds: \d{3,} events verified\.", said), said
