"""Pages over a crowd: server time and weight of each, and how soon a commit is heard of.

The times are those of a client on the same machine over one kept connection, so a little of HTTP
is in them. A page's weight is what a browser with empty caches takes over the wire: the page, its
style sheets, scripts and fonts as they come compressed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.bench.installation import PLAIN, Installation
from tests.bench.workloads import hint_latencies, sign_in
from tests.deployment.processes import ROOT, command_environment, manage
from tests.services_up import PostgresServer, RedisServer

SLUG = "crowd"
PAGES = {
    "board": "/projects/crowd/",
    "board, one chosen": "/projects/crowd/?task={root}",
    "board, by title": "/projects/crowd/?sort=title",
    "board, one filtered": "/projects/crowd/?q=root+7&status=done&task={root}",
    "board, half way down": "/projects/crowd/?page={half}&task={root}",
    "inbox": "/inbox/",
    "inbox history": "/inbox/history/",
    "decision": "/inbox/{decision}/",
    "audit": "/audit/",
    "audit, filtered": "/audit/?project=crowd&noun=decision",
    "audit, searched": "/audit/?q=TASK-77",
    "task": "/projects/crowd/tasks/{root}/",
    "step": "/projects/crowd/tasks/{step}/",
    "overview": "/",
}
"""What is measured. Shape: addresses by name, with the ids that the filling tells."""
PROMISED = frozenset(PAGES) - {"audit, filtered", "audit, searched", "overview"}
"""Pages that have to answer in 150 ms; a search reads what it searches."""
COPIES = 1_000
"""Of a sample of 100 roots: 100,000 roots and about 1,350,000 sealed events."""
LOOKS, WARMING = 40, 3
SOCKETS = 50
FILL_SECONDS = 3_600
ASSET = re.compile(r'<(?:link|script)[^>]+(?:href|src)="(/static/[^"]+\.(?:css|js))"')
FONT = re.compile(r'url\("?([^")]+\.woff2)"?\)')


@contextmanager
def crowded(folder: Path, copies: int = COPIES) -> Iterator[tuple[Installation, dict[str, Any]]]:
    """One web process on PostgreSQL and Redis over a crowd, and what the filling told of it."""
    with ExitStack() as stack:
        postgres, redis = stack.enter_context(PostgresServer()), stack.enter_context(RedisServer())
        environment = {
            **PLAIN,
            "DATABASE_URL": postgres.create_database(f"bench_{uuid4().hex[:8]}"),
            "REDIS_URL": f"{redis.url}/0",
        }
        data_dir = folder / f"crowd-{uuid4().hex[:6]}"
        data_dir.mkdir(mode=0o700)
        told = _fill(data_dir, environment, copies)
        web = stack.enter_context(manage("serve", data_dir=data_dir, environment=environment))
        yield Installation(data_dir, environment, web), told
        web.stop()


def _fill(data_dir: Path, environment: Mapping[str, str], copies: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.crowd", str(copies)],
        cwd=ROOT,
        env=command_environment(data_dir, environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=FILL_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def page_times(place: Installation, ids: Mapping[str, int]) -> dict[str, list[float]]:
    """Ask for each page again and again. Units: milliseconds, by the page's name."""
    found: dict[str, list[float]] = {}
    with sign_in(place) as browser:
        for name, path in PAGES.items():
            url = path.format(**ids).lstrip("/")
            times = [_took(browser, url) for _ in range(WARMING + LOOKS)]
            found[name] = times[WARMING:]
    return found


def _took(browser: httpx.Client, url: str) -> float:
    began = time.perf_counter()
    browser.get(url).raise_for_status()
    return (time.perf_counter() - began) * 1000


def page_weights(place: Installation, ids: Mapping[str, int]) -> dict[str, float]:
    """Add up what a browser with empty caches takes for a page. Units: kB of 1,000 bytes."""
    weighed: dict[str, int] = {}
    with sign_in(place) as browser:
        browser.headers["Accept-Encoding"] = "gzip, br"

        def take(url: str) -> str:
            answer = browser.get(url)
            answer.raise_for_status()
            weighed[url] = answer.num_bytes_downloaded
            return answer.text if not url.endswith(".woff2") else ""

        found = {}
        for name, path in PAGES.items():
            weighed.clear()
            for asset in dict.fromkeys(ASSET.findall(take(path.format(**ids)))):
                sheet = take(asset) if asset.endswith(".css") or asset.endswith(".js") else ""
                for font in FONT.findall(sheet) if asset.endswith(".css") else ():
                    take(str(httpx.URL(asset).join(font)))
            found[name] = sum(weighed.values()) / 1000
    return found


def hints_of(place: Installation) -> tuple[list[float], int]:
    """From a commit to its hint on 50 sockets at 50 commits a second. Units: ms; hints missing."""
    first, others, missing = hint_latencies(place, sockets=SOCKETS)
    return first + others, missing
