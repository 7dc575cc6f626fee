"""The workloads of the benchmark table, each a function that returns figures.

Units are in the names of what they return; every figure comes from one run of the real thing.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import httpx
from websockets.asyncio.client import connect

from orchestration.policy import DEFAULT_POLICY
from orchestration.rules.prefilter import prefilter
from tests.bench.installation import Installation, layered_plan, moments, quantile

COMMENTS_A_SECOND = 50
QUIET_SECONDS = 1.0
"""Between the last answer of a burst and the next burst: the last hint may wait a window, and is
followed by one more."""
WIDE_OPEN = {"limits": {"parallel_children": 1000, "concurrent_roots": 1000, "children": 100000}}


def run_plan(installation: Installation, layers: int, width: int) -> float:
    """W1: one blueprint from the POST to the last lock. Units: milliseconds a step."""
    project = installation.new_project()
    plan = layered_plan(layers, width)
    began = time.monotonic()
    installation.post(
        f"projects/{project}/tasks", {"title": "W1", "description": "W1", "plan": plan}
    )
    installation.wait_for_done(project)
    return (time.monotonic() - began) * 1000 / (layers * width)


def chain_gaps(installation: Installation, length: int = 200) -> list[float]:
    """W2: from the end of one instant step to the start of the next. Units: milliseconds."""
    project = installation.new_project()
    plan = layered_plan(length, 1)
    installation.post(
        f"projects/{project}/tasks", {"title": "W2", "description": "W2", "plan": plan}
    )
    installation.wait_for_done(project)
    seen = moments(installation, project)
    ordered = [seen[f"{layer}-0"] for layer in range(length)]
    return [(following[0] - before[1]) / 1e6 for before, following in pairwise(ordered)]


def many_runs(installation: Installation, runs: int = 200, length: int = 5) -> float:
    """W3: many small runs at once, from the first POST to the last end. Units: seconds."""
    project = installation.new_project(WIDE_OPEN)
    plan = layered_plan(length, 1)

    def submit(number: int) -> None:
        body = {"title": f"run {number}", "description": f"run {number}", "plan": plan}
        installation.post(f"projects/{project}/tasks", body)

    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit, range(runs)))
    installation.wait_for_done(project)
    return time.monotonic() - began


def decision_latencies(
    installation: Installation, *, pause_seconds: float, count: int = 40
) -> list[float]:
    """W4: from sending Sir's verdict to the start of the step behind it. Units: milliseconds.

    With a pause each verdict meets a server at rest, as one person's does; without one each also
    waits for the work that the verdicts before it set off.
    """
    project = installation.new_project({**WIDE_OPEN, "commands": {"allow": ["false"]}})
    steps: list[dict[str, Any]] = []
    for number in range(count):
        failing = {"severity": "medium", "fix": {"description": "none needed"}}
        steps.append(
            {"id": f"ask{number}", "action": "ask", "run": ["false"], "on_failure": failing}
        )
        steps.append(
            {
                "id": f"then{number}", "action": "go on", "delegate": False,
                "depends_on": [f"ask{number}"],
            }
        )  # fmt: skip
    body = {"title": "W4", "description": "W4", "plan": {"summary": "W4", "steps": steps}}
    installation.post(f"projects/{project}/tasks", body)
    waiting = _open_decisions(installation, project, count)
    sent: dict[str, int] = {}
    for decision in waiting:
        # The step's key is in what is asked: "Have step ask7 fixed?".
        key = decision["question"].split("step ask")[1].split(" ")[0].rstrip("?")
        verdict = {
            "verdict": "accept_as_is", "reason": "bench",
            "version": decision["version"], "digest": decision["digest"],
        }  # fmt: skip
        sent[f"then{key}"] = time.monotonic_ns()
        installation.post(f"decisions/{decision['id']}/decide", verdict)
        time.sleep(pause_seconds)
    installation.wait_for_done(project)
    seen = moments(installation, project)
    return [(seen[key][0] - at) / 1e6 for key, at in sent.items()]


def _open_decisions(installation: Installation, project: str, count: int) -> list[dict[str, Any]]:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        found: list[dict[str, Any]] = []
        page: str | None = f"api/decisions/?project={project}&status=open&page_size=100"
        while page:
            answer = installation.http.get(page).json()
            found += answer["results"]
            page = answer["next"]
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise RuntimeError("the decisions of W4 did not open")


def hint_latencies(
    installation: Installation, sockets: int = 200, bursts: int = 10, size: int = 25
) -> tuple[list[float], list[float], int]:
    """W6: from the commit of a comment to its hint on every socket, 50 comments a second.

    Shape: milliseconds of each burst's first comment, those of the others, and hints that never
    came. A comment's time is the one its transaction began at, so a little of the commit is in it.
    """
    project = installation.new_project()
    rows = [
        installation.post(f"projects/{project}/tasks", {"title": f"打开{n}", "route": "direct"})
        for n in range(bursts * size)
    ]
    cookie = _session_cookie(installation)
    came = asyncio.run(_watch(installation, project, rows, cookie, sockets, size))
    committed = installation.comment_times(project)
    names = [row["id"] for row in rows]
    missing = sum(name not in mine for mine in came for name in names)
    late: dict[bool, list[float]] = {True: [], False: []}
    for mine in came:
        for number, name in enumerate(names):
            if name in mine:
                late[number % size == 0].append((mine[name] - committed[int(name)]) * 1000)
    return late[True], late[False], missing


@contextmanager
def sign_in(installation: Installation) -> Iterator[httpx.Client]:
    """A browser that Sir is signed in with."""
    with httpx.Client(base_url=installation.url, follow_redirects=True, timeout=60) as browser:
        page = browser.get("accounts/login/")
        token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        form = {"username": "sir", "password": "bench-sir-9", "csrfmiddlewaretoken": token}
        browser.post("accounts/login/", data=form, headers={"Referer": installation.url})
        yield browser


def _session_cookie(installation: Installation) -> str:
    with sign_in(installation) as browser:
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def _watch(
    installation: Installation,
    project: str,
    rows: list[dict[str, Any]],
    cookie: str,
    sockets: int,
    burst: int,
) -> list[dict[str, float]]:
    """Comment on each task in bursts, and note when each socket hears of it, by task id."""
    url = installation.url.replace("http://", "ws://") + f"ws/live/?project={project}"
    headers = {"Cookie": cookie, "Origin": installation.url.rstrip("/")}
    came: list[dict[str, float]] = []
    connections = [
        await connect(url, additional_headers=headers, max_queue=None) for _ in range(sockets)
    ]
    is_open = asyncio.Event()

    async def listen(connection: Any) -> None:
        mine: dict[str, float] = {}
        came.append(mine)
        async for text in connection:
            now = time.time()
            for topic in _hints(json.loads(text)) if is_open.is_set() else ():
                mine.setdefault(topic.removeprefix("task:"), now)

    listeners = [asyncio.create_task(listen(one)) for one in connections]
    await asyncio.sleep(1)
    is_open.set()
    headers = dict(installation.http.headers)
    async with httpx.AsyncClient(base_url=installation.url, headers=headers, timeout=60) as client:
        for first in range(0, len(rows), burst):
            posts = []
            for row in rows[first : first + burst]:
                path = f"api/projects/{project}/tasks/{row['id']}/comments"
                posts.append(asyncio.create_task(client.post(path, json={"body": "hello"})))
                await asyncio.sleep(1 / COMMENTS_A_SECOND)
            await asyncio.gather(*posts)
            await asyncio.sleep(QUIET_SECONDS)
    for listener in listeners:
        listener.cancel()
    for connection in connections:
        await connection.close()
    return came


def _hints(message: dict[str, Any]) -> list[str]:
    return [one["topic"] for one in message.get("batch", [message]) if "topic" in one]


def prefilter_speed() -> tuple[float, float]:
    """S0: one message of 1 MB, and 200 characters. Units: milliseconds; microseconds at p99."""
    large = ("请看一下这份说明，没有什么特别的。" * 30_000).encode()[:1_000_000]
    text = large.decode("utf-8", "ignore")
    big = statistics.median(_timed(lambda: prefilter(text, DEFAULT_POLICY)) for _ in range(3))
    short = ("帮我看看昨天的日志里有没有报错" * 20)[:200]
    prefilter(short, DEFAULT_POLICY)
    small = [_timed(lambda: prefilter(short, DEFAULT_POLICY)) for _ in range(5000)]
    return big * 1000, quantile(small, 0.99) * 1e6


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
