"""`make test`: install or find what the tests need, then run every pass and say what is missing.

Passes: everything on SQLite, the browser, everything that touches the database on PostgreSQL and
Redis, the processes that are killed, with them the browser over those servers. With CI=true a
missing program is a failure, not an omission.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.runner.sandboxes import say_what_holds
from tests.services_up import (
    PostgresServer,
    RedisServer,
    ServiceMissing,
    find_postgres,
    find_redis,
)

POSTGRES, REDIS, BROWSER = "PostgreSQL", "Redis", "a browser"
SANDBOX = "bubblewrap"
PROGRAMS = "the programs of PostgreSQL and Redis"
DEBIAN_PACKAGES: Mapping[str, Sequence[str]] = {
    POSTGRES: ("postgresql",),
    REDIS: ("redis-server",),
    BROWSER: ("chromium", "chromium-driver"),
    PROGRAMS: ("postgresql", "redis-server"),
    SANDBOX: ("bubblewrap",),
}
PARALLEL = ("-n", "2")
NOTHING_RAN = 5


@dataclass(frozen=True)
class Pass:
    """One run of pytest. Shape: `needs` are keys of DEBIAN_PACKAGES."""

    title: str
    marks: str
    options: Sequence[str] = PARALLEL
    needs: frozenset[str] = field(default_factory=frozenset)
    is_on_services: bool = False


PASSES = (
    Pass("SQLite", "not postgres and not browser and not faults"),
    Pass("browser", "browser and not faults", (), frozenset({BROWSER})),
    Pass(
        "PostgreSQL and Redis",
        "(database or postgres) and not sqlite and not browser and not faults",
        needs=frozenset({POSTGRES, REDIS}),
        is_on_services=True,
    ),
    # These kill servers, so they never use those of TEST_DATABASE_URL and TEST_REDIS_URL.
    Pass("killed processes", "faults", (), frozenset({PROGRAMS})),
)


def missing_programs() -> set[str]:
    """Return what neither the PATH nor TEST_DATABASE_URL and TEST_REDIS_URL provide."""
    missing: set[str] = set()
    finders: dict[str, Callable[[], object]] = {
        POSTGRES: lambda: os.environ.get("TEST_DATABASE_URL") or find_postgres("initdb"),
        REDIS: lambda: os.environ.get("TEST_REDIS_URL") or find_redis(),
        PROGRAMS: lambda: (find_postgres("initdb"), find_redis()),
    }
    for name, find in finders.items():
        try:
            find()
        except ServiceMissing:
            missing.add(name)
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        missing.add(BROWSER)
    return missing


def install(missing: set[str]) -> None:
    """Install Debian's packages for what is missing, where we may: as root with apt-get."""
    if not missing or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    packages = sorted({package for name in missing for package in DEBIAN_PACKAGES[name]})
    print(f"Installing {' '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f"{' '.join(command[:2])} failed with {done.returncode}", flush=True)


def run_pytest(one: Pass, addresses: Mapping[str, str]) -> int:
    """Run one pass. Return pytest's exit code; a pass in which nothing ran is a failure."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TEST_")
    }
    if one.is_on_services:
        environment |= addresses
    command = [sys.executable, "-m", "pytest", "-q", "-m", one.marks, *one.options]
    return subprocess.run(command, env=environment, check=False).returncode


def main() -> int:
    """Run the passes. Return 1 when one failed or, with CI=true, could not run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    is_ci = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
    missing = missing_programs()
    install(missing if shutil.which("bwrap") else missing | {SANDBOX})
    missing = missing_programs()
    print(say_what_holds(), flush=True)
    if missing and is_ci:
        print(f"Missing with CI=true: {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    failed: list[str] = []
    with ExitStack() as stack:
        addresses = _start_services(stack, missing)
        for one in PASSES:
            if one.needs & missing:
                continue
            print(f"\n== {one.title}: pytest -m '{one.marks}'", flush=True)
            began = time.monotonic()
            code = run_pytest(one, addresses)
            print(f"== {one.title}: exit {code} after {time.monotonic() - began:.0f} s", flush=True)
            if code:
                failed.append(one.title + (" (no test ran)" if code == NOTHING_RAN else ""))
    not_run = [one.title for one in PASSES if one.needs & missing]
    if not_run:
        print(f"Not tested, for want of {', '.join(sorted(missing))}: {', '.join(not_run)}")
    print(f"Failed: {', '.join(failed)}" if failed else "All passes are green")
    return 1 if failed else 0


def _start_services(stack: ExitStack, missing: set[str]) -> dict[str, str]:
    if {POSTGRES, REDIS} & missing:
        return {}
    database_url = os.environ.get("TEST_DATABASE_URL")
    redis_url = os.environ.get("TEST_REDIS_URL")
    return {
        "TEST_DATABASE_URL": database_url or stack.enter_context(PostgresServer()).url,
        "TEST_REDIS_URL": redis_url or stack.enter_context(RedisServer()).url,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
