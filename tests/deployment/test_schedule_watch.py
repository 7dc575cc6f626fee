"""The embedded server's schedule, when its messages stay away."""

from __future__ import annotations

import pytest

from config.workers import ScheduleWatch
from orchestration import jobs
from orchestration.models import Canary
from tests.deployment.processes import wait_until

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_silent_schedule_is_run_by_its_watch() -> None:
    watch = ScheduleWatch(silent_seconds=0.4)
    watch.start()
    try:
        assert wait_until(lambda: Canary.objects.filter(answered_at__isnull=False).exists())
    finally:
        watch.ask_to_stop()
        watch.join(5)


def test_schedule_that_is_heard_is_left_alone() -> None:
    def is_answered_although_heard() -> bool:
        jobs.last_heard.note()
        return Canary.objects.exists()

    watch = ScheduleWatch(silent_seconds=1.0)
    jobs.last_heard.note()
    watch.start()
    try:
        assert not wait_until(is_answered_although_heard, seconds=1.5)
    finally:
        watch.ask_to_stop()
        watch.join(5)
    assert not watch.is_alive()
