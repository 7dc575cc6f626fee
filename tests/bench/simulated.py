"""Simulations and the loop's growth, each in a process and a database of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from tests.bench.installation import SEAT
from tests.deployment.processes import ROOT, command_environment
from tests.services_up import PostgresServer, RedisServer

TASKS = 2_000
SQLITE, POSTGRES = "SQLite", "PostgreSQL + Redis"
SEEDS: Mapping[str, Sequence[int]] = {SQLITE: (1, 2, 3), POSTGRES: (4, 5)}
PROCESS_SEED, PROCESS_TASKS, PROCESSES = 7, 200, 2
"""What is played with worker processes that are killed; they need PostgreSQL and Redis."""
WAIT_SECONDS = 7_200


def databases(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each kind of database with the environment that names it; it lives till the next."""
    yield SQLITE, {}
    with PostgresServer() as postgres, RedisServer() as redis:
        name = f"bench_{uuid4().hex[:8]}"
        yield (
            POSTGRES,
            {"DATABASE_URL": postgres.create_database(name), "REDIS_URL": f"{redis.url}/0"},
        )


def growth(
    folder: Path, environment: Mapping[str, str], roots: int
) -> tuple[list[float], list[float], float]:
    """Time decisions after GO and after NO-GO, and one check. Units: milliseconds, seconds."""
    done = _run(folder, environment, "-m", "tests.bench.loop_growth", str(roots))
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    measured = json.loads(done.stdout.splitlines()[-1])
    return measured["decisions"], measured["restarts"], measured["check"]


def archive_time(folder: Path, environment: Mapping[str, str], layers: int) -> float:
    """Time the archive of a root with layers of 100 steps, the median of 3. Units: seconds."""
    done = _run(folder, {**environment, **SEAT}, "-m", "tests.bench.archive_size", str(layers))
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(done.stdout.splitlines()[-1])


def simulation(
    folder: Path, environment: Mapping[str, str], seed: int, *, tasks: int = TASKS, workers: int = 0
) -> str:
    """Play one seed. Shape: its score and time, and what was off where anything was.

    Without `workers` the simulation does the system's own work in its thread; with them processes
    do, and some are killed, which costs a second a root.
    """
    done = _run(
        folder, environment, "manage.py", "simulate",
        "--tasks", str(tasks), "--seed", str(seed), "--among-others", "--processes", str(workers),
    )  # fmt: skip
    lines = done.stdout.splitlines()
    score = next((line for line in lines if line.startswith("score ")), "no score")
    acts = next((line.partition(": ")[2] for line in lines if " acts, " in line), "")
    off = [line for line in lines if line.startswith(("wrong", "broken"))]
    rest = f"; exit {done.returncode}: {'; '.join(off)[:300]}" if done.returncode else ""
    return f"{' '.join(score.split()[1:])}, {acts}{rest}"


def _run(
    folder: Path, environment: Mapping[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    data_dir = folder / f"simulated-{uuid4().hex[:6]}"
    data_dir.mkdir(mode=0o700)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=command_environment(data_dir, environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
