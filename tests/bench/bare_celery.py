"""The yardstick: the same DAG on nothing but Celery and Redis.

Each step is one Celery task that takes one off its successors' counters in Redis and sends those
that reached zero. Nothing is stored, checked, locked or audited.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery, chain
from redis import Redis

from tests.bench.installation import layered_plan
from tests.deployment.processes import ROOT

URL = os.environ.get("BARE_REDIS_URL", "redis://localhost/0")
app = Celery("bare", broker=URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=4,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    task_default_queue="bare",
)
redis = Redis.from_url(URL)


def use(url: str) -> None:
    """Talk to another Redis from now on."""
    global redis
    app.conf.broker_url = url
    redis = Redis.from_url(url)


@app.task(name="bare.step")
def step_task(run: str, key: str) -> None:
    """Finish one step: release its successors, count it."""
    successors = redis.hget(f"{run}:next", key)
    for other in json.loads(successors or b"[]"):
        if redis.hincrby(f"{run}:wait", other, -1) == 0:
            step_task.delay(run, other)
    redis.incr(f"{run}:done")


@app.task(name="bare.link")
def link_task(run: str) -> None:
    """One link of a chain."""
    redis.incr(f"{run}:done")


@contextmanager
def bare_workers(url: str, count: int = 2) -> Iterator[None]:
    """Two worker processes with one thread each."""
    command = [
        sys.executable, "-m", "celery", "-A", "tests.bench.bare_celery", "worker",
        "--pool", "solo", "-Q", "bare", "--without-gossip", "--without-mingle",
        "--without-heartbeat", "-l", "ERROR",
    ]  # fmt: skip
    environment = {**os.environ, "BARE_REDIS_URL": url}
    workers = [
        subprocess.Popen([*command, "-n", f"bare{number}@local"], cwd=ROOT, env=environment)
        for number in range(count)
    ]
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(30)


def run_dag(layers: int, width: int) -> float:
    """Run the layered DAG once. Units: milliseconds a step."""
    run = f"dag{time.monotonic_ns()}"
    steps: list[dict[str, Any]] = layered_plan(layers, width)["steps"]
    following: dict[str, list[str]] = {one["id"]: [] for one in steps}
    for one in steps:
        for needed in one["depends_on"]:
            following[needed].append(one["id"])
    began = time.monotonic()
    redis.hset(f"{run}:next", mapping={key: json.dumps(after) for key, after in following.items()})
    waits = {one["id"]: len(one["depends_on"]) for one in steps if one["depends_on"]}
    if waits:
        redis.hset(f"{run}:wait", mapping=waits)
    for one in steps:
        if not one["depends_on"]:
            step_task.delay(run, one["id"])
    _wait(run, len(steps))
    return (time.monotonic() - began) * 1000 / len(steps)


def run_chains(chains: int, length: int) -> float:
    """Run many chains at once. Units: seconds."""
    run = f"chains{time.monotonic_ns()}"
    began = time.monotonic()
    for _ in range(chains):
        chain(*[link_task.si(run) for _ in range(length)]).apply_async()
    _wait(run, chains * length)
    return time.monotonic() - began


def _wait(run: str, count: int) -> None:
    ends = time.monotonic() + 300
    while int(redis.get(f"{run}:done") or 0) < count:
        if time.monotonic() > ends:
            raise RuntimeError("the bare Celery run did not finish")
        time.sleep(0.005)
