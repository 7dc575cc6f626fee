"""Two workers at once: one sends, one spreads, one reminds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine

from orchestration.models import Delivery, Notice, NotificationChannel
from orchestration.services.deliveries import deliver_notices, send_due, spread_notices
from orchestration.services.reminding import remind
from tests.factories import decide, new_project
from tests.notifications.conftest import WAIT_SECONDS, Receiver
from tests.races.contest import asking_task, in_own_connection, on_both, question_of

pytestmark = on_both


def test_second_worker_leaves_what_the_first_is_sending(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = question_of(asking_task(new_project()))
    spread_notices()
    receiver.is_held = True
    with (
        time_machine.travel(decision.created_at + timedelta(minutes=6)),
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(in_own_connection, send_due)
        assert receiver.arrived.wait(WAIT_SECONDS)
        assert send_due() == 0
        receiver.go_on.set()
        assert first.result(WAIT_SECONDS) == 1
    assert len(receiver.requests) == 1
    assert Delivery.objects.get().result == "sent"


def test_outcome_waits_for_the_opening_that_is_on_its_way(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = question_of(asking_task(new_project()))
    spread_notices()
    receiver.is_held = True
    with (
        time_machine.travel(decision.created_at + timedelta(minutes=6)) as clock,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(in_own_connection, send_due)
        assert receiver.arrived.wait(WAIT_SECONDS)
        decide(decision, "answer", reason="b")
        assert deliver_notices() == 0
        receiver.go_on.set()
        assert first.result(WAIT_SECONDS) == 1
        clock.shift(60)
        assert deliver_notices() == 1
    assert [b"decision.opened" in one.body for one in receiver.requests] == [True, False]


@pytest.mark.parametrize("count", [4])
def test_many_workers_send_and_remind_once(
    webhook: NotificationChannel, receiver: Receiver, count: int
) -> None:
    decision = question_of(asking_task(new_project()))

    def work() -> None:
        remind()
        spread_notices()
        send_due()

    with (
        time_machine.travel(decision.created_at + timedelta(days=1, minutes=1)),
        ThreadPoolExecutor(count) as pool,
    ):
        for done in [pool.submit(in_own_connection, work) for _ in range(count)]:
            done.result(WAIT_SECONDS * 3)
        work()
    assert Notice.objects.filter(event="reminder").count() == 1
    assert Delivery.objects.count() == 2
    assert len(receiver.requests) == len({one.headers["webhook-id"] for one in receiver.requests})
    assert len(receiver.requests) == 2
