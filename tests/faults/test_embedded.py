"""The one-process mode: killed or stopped in the middle of a run, it goes on at the next start."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.deployment.processes import ManageProcess, wait_until
from tests.faults.site import SLOW, Run, Site, assert_ran_once, assert_trail_holds

pytestmark = pytest.mark.faults
SLOTS = 3
EMBEDDED = {"web": ["serve", "--concurrency", str(SLOTS)]}
STOP_SECONDS = 10.0


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`serve` alone, on SQLite and memory."""
    with ExitStack() as stack:
        yield Site(stack, tmp_path_factory.mktemp("embedded"), "")


@pytest.fixture
def site(installation: Site) -> Site:
    """The server running, whatever the last test did to it."""
    installation.heal(EMBEDDED)
    return installation


def submitted(site: Site, slug: str) -> tuple[Run, ManageProcess]:
    """Submit a run with one long step, and wait until that and the rest are in the middle."""
    run = Run(site.folder, slug, slow_seconds=8.0)
    follower = site.start(*run.arguments)
    assert wait_until(lambda: run.is_in_the_middle() and SLOW in run.running()), follower.output
    return run, follower


def assert_goes_on(site: Site, run: Run, follower: ManageProcess) -> None:
    """The follower has left; after the next start the run ends, and the cut step ran once more."""
    assert follower.wait() == 2, follower.output
    assert "the work goes on when it runs again" in follower.output
    assert SLOW in run.running()
    began = time.monotonic()
    site.heal(EMBEDDED)
    # Taken back at the start, not only when its lease has run out.
    assert wait_until(lambda: run.count("start")[SLOW] == 2, seconds=20)
    assert time.monotonic() - began < 20
    site.wait_until_done(run)
    assert_ran_once(site, run)
    assert run.count("end")[SLOW] == 1
    # At most one a slot was cut off, be it after its command and before its result was recorded.
    assert sum(count - 1 for count in run.count("start").values()) <= SLOTS
    assert_trail_holds(site)


def test_killed_server_goes_on_at_the_next_start(site: Site) -> None:
    run, follower = submitted(site, "killed")
    site.kill("web")
    assert_goes_on(site, run, follower)


def test_ctrl_c_stops_within_seconds_and_work_goes_on_at_the_next_start(site: Site) -> None:
    run, follower = submitted(site, "stopped")
    server = site.processes.pop("web")
    began = time.monotonic()
    assert server.stop(signal.SIGINT) == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert server.lines[-1].startswith("Stopped"), server.output
    assert "Traceback" not in server.output
    assert_goes_on(site, run, follower)
