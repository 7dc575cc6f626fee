"""Claims over HTTP: their rate beside a bare view's, finish and claim next, 200 in flight."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle

import httpx

from tests.bench.installation import Installation
from tests.deployment.processes import ROOT, command_environment, wait_until
from tests.services_up import free_port

CLIENTS = 4
TOKENS = 4
"""As many agents as it takes to stay below the burst that each one may make."""
ROUNDS, CLAIMS = 3, 60


def new_tokens(installation: Installation) -> list[str]:
    """Make agents that work in every project. Return their tokens."""
    return [
        installation.command(
            "create_agent", f"bench-{number}", "--scopes", "observe,execute", "--quiet"
        ).strip()
        for number in range(TOKENS)
    ]


def new_tasks(installation: Installation, project: str, count: int) -> list[int]:
    """Create direct tasks that wait for an agent. Return their ids, oldest first."""

    def create(number: int) -> int:
        body = {"title": f"打开{number}", "route": "direct"}
        return int(installation.post(f"projects/{project}/tasks", body)["id"])

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sorted(pool.map(create, range(count)))


def rate(work: Callable[[httpx.Client, int], None], tasks: Sequence[int]) -> float:
    """Do something for each task from four clients. Units: a second."""

    def share(ids: Sequence[int]) -> None:
        with httpx.Client(timeout=60) as client:
            for pk in ids:
                work(client, pk)

    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(share, [tasks[place::CLIENTS] for place in range(CLIENTS)]))
    return len(tasks) / (time.monotonic() - began)


def claim_rates(installation: Installation, tokens: Sequence[str]) -> tuple[float, float]:
    """The rate of our claims and of the bare view's, in turn on one database, medians of three.

    Units: a second.
    """
    project = installation.new_project()
    turns = cycle(tokens)
    tasks = new_tasks(installation, project, 2 * ROUNDS * CLAIMS + 40)

    def claim(client: httpx.Client, pk: int) -> None:
        url = f"{installation.url}api/projects/{project}/tasks/{pk}/claim"
        answer = client.post(url, headers={"Authorization": f"Bearer {next(turns)}"})
        answer.raise_for_status()

    with bare_server(installation) as bare:

        def take(client: httpx.Client, pk: int) -> None:
            answer = client.post(f"{bare}bare/{pk}")
            answer.raise_for_status()
            assert answer.json()["taken"] == 1

        rate(claim, tasks[-40:-20])
        rate(take, tasks[-20:])
        ours, theirs = [], []
        for start in range(0, 2 * ROUNDS * CLAIMS, 2 * CLAIMS):
            ours.append(rate(claim, tasks[start : start + CLAIMS]))
            theirs.append(rate(take, tasks[start + CLAIMS : start + 2 * CLAIMS]))
    return statistics.median(ours), statistics.median(theirs)


@contextmanager
def bare_server(installation: Installation) -> Iterator[str]:
    """Serve the bare view from the installation's database, in one process. Give its address."""
    port = free_port()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "uvicorn", "tests.bench.bare_view:application",
            "--port", str(port), "--log-level", "error", "--no-access-log",
        ],
        cwd=ROOT,
        env=command_environment(installation.data_dir, installation.environment),
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/"
    try:
        if not wait_until(lambda: _answers(url), seconds=30):
            raise RuntimeError("the bare view did not start")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        httpx.post(f"{url}bare/0", timeout=5)
    except httpx.TransportError:
        return False
    return True


def finish_and_claim_next(
    installation: Installation, tokens: Sequence[str], count: int = 100
) -> list[float]:
    """Hand in a task and take the next in one request, again and again. Units: milliseconds."""
    project = installation.new_project()
    new_tasks(installation, project, count + 1)
    headers = {"Authorization": f"Bearer {tokens[0]}"}
    wish = {"seats": ["executor"], "projects": [project]}
    took: list[float] = []
    with httpx.Client(base_url=installation.url, headers=headers, timeout=60) as client:
        held = client.post("api/assignments/claim", json=wish).json()
        for number in range(count):
            result = {
                "lease_token": held["lease_token"],
                "status": "review",
                "output": {"type": "data", "title": "result", "content": f"{number}"},
                "comment": "Nothing is open.",
                "claim_next": wish,
            }
            began = time.monotonic()
            answer = client.post(f"api/assignments/{held['id']}/result", json=result)
            took.append((time.monotonic() - began) * 1000)
            answer.raise_for_status()
            held = answer.json()["next"]
    return took


def claims_in_flight(
    installation: Installation, tokens: Sequence[str], count: int = 200
) -> tuple[float, int, int]:
    """Send claims all at once. Shape: seconds until the last answer, tasks given out, errors."""
    project = installation.new_project()
    new_tasks(installation, project, count)
    return asyncio.run(_send_all(installation, project, tokens, count))


async def _send_all(
    installation: Installation, project: str, tokens: Sequence[str], count: int
) -> tuple[float, int, int]:
    limits = httpx.Limits(max_connections=count)
    body = {"seats": ["executor"], "projects": [project], "wait": 30}
    async with httpx.AsyncClient(base_url=installation.url, timeout=120, limits=limits) as client:

        async def claim(number: int) -> httpx.Response:
            token = tokens[number % len(tokens)]
            headers = {"Authorization": f"Bearer {token}"}
            return await client.post("api/assignments/claim", json=body, headers=headers)

        began = time.monotonic()
        answers = await asyncio.gather(
            *(claim(number) for number in range(count)), return_exceptions=True
        )
        seconds = time.monotonic() - began
    came = [one for one in answers if isinstance(one, httpx.Response)]
    given = {one.json()["task"] for one in came if one.status_code == 200}
    errors = count - sum(one.status_code in (200, 204) for one in came)
    return seconds, len(given), errors
