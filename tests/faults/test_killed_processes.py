"""Kill a worker, the web process, Redis in the middle of a run: it ends, nothing runs twice."""

from __future__ import annotations

import signal

import pytest

from tests.deployment.processes import ManageProcess, wait_until
from tests.faults.site import (
    RUN_SECONDS,
    SLOW,
    Run,
    Site,
    assert_ran_once,
    assert_trail_holds,
)
from tests.services_up import RedisServer

pytestmark = pytest.mark.faults


def submitted(site: Site, slug: str, *, slow_seconds: float = 0.0) -> tuple[Run, ManageProcess]:
    """Submit a run and wait until it is in the middle. Return it and the process that follows."""
    run = Run(site.folder, slug, slow_seconds=slow_seconds)
    follower = site.start(*run.arguments)
    assert wait_until(run.is_in_the_middle), follower.output
    return run, follower


def assert_completes(site: Site, run: Run, follower: ManageProcess) -> None:
    """The run ends well, its follower says so, and all that is promised about it holds."""
    site.wait_until_done(run)
    assert follower.process.wait(RUN_SECONDS) == 0, follower.output
    assert "is done. Locked artifacts:" in follower.output
    assert_ran_once(site, run)
    assert_trail_holds(site)


def test_worker_killed_in_the_middle_of_a_step(site: Site) -> None:
    run, follower = submitted(site, "worker", slow_seconds=6.0)
    assert wait_until(lambda: SLOW in run.running())
    name = next(one for one in ("worker-1", "worker-2") if SLOW in site.held_by(one))
    site.kill(name)
    assert run.count("end")[SLOW] == 0
    assert_completes(site, run, follower)
    # Begun by the killed worker, and once more by the other one, which ended it.
    assert (run.count("start")[SLOW], run.count("end")[SLOW]) == (2, 1)


def test_web_process_killed(site: Site) -> None:
    run, follower = submitted(site, "web")
    site.kill("web")
    assert_completes(site, run, follower)
    assert set(run.count("start").values()) == {1}


def test_redis_killed_and_restarted(site: Site, redis_server: RedisServer) -> None:
    run, follower = submitted(site, "redis")
    redis_server.kill()
    assert wait_until(lambda: not site.is_ready())
    redis_server.start()
    assert_completes(site, run, follower)
    assert set(run.count("start").values()) == {1}
    assert wait_until(site.is_ready), site.readiness()


def test_scheduler_killed_and_every_wake_up_with_it(site: Site, redis_server: RedisServer) -> None:
    run = Run(site.folder, "beat")
    site.kill("beat")
    redis_server.kill()
    follower = site.start(*run.arguments)
    follower.wait_for("does the work")
    assert site.root_status(run) == "working"
    redis_server.start()
    site.processes["beat"] = site.start("beat")
    assert_completes(site, run, follower)


def test_deaf_worker_turns_readiness_red_and_its_return_green(site: Site) -> None:
    names = [name for name in site.processes if name.startswith("worker")]
    for name in names:
        site.processes[name].process.send_signal(signal.SIGSTOP)
    try:
        # The minute is moved, not waited for: the last answer is put 55 s into the past.
        site.database.rows(
            "UPDATE orchestration_canary SET answered_at = answered_at - interval '55 seconds'"
        )
        assert wait_until(lambda: site.check("canary") is False, seconds=20)
        assert [site.check(name) for name in ("database", "broker")] == [True, True]
    finally:
        for name in names:
            site.processes[name].process.send_signal(signal.SIGCONT)
    assert wait_until(site.is_ready, seconds=30), site.readiness()
