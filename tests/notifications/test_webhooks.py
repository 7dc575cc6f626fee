"""Webhooks: told only when still open and unseen, signed, tried again, followed by the outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from standardwebhooks import Webhook

from orchestration.contracts.notices import ChannelKind
from orchestration.models import AuditEvent, Decision, Delivery, Notice, NotificationChannel
from orchestration.outbound.sealing import open_sealed
from orchestration.outbound.signing import sign
from orchestration.services.decisions import mark_seen
from orchestration.services.deliveries import (
    ATTEMPTS,
    BATCH,
    CLAIM_SECONDS,
    claim_delivery,
    deliver_notices,
    due_deliveries,
    retry_seconds,
    send_due,
)
from orchestration.services.notification_channels import NewChannel, add_channel, rotate_secret
from orchestration.services.sweeping import expire_decisions
from orchestration.services.tasks import cancel_task
from orchestration.services.work import SYSTEM, Actor
from tests.factories import decide, new_project, new_sir
from tests.notifications.conftest import Receiver
from tests.races.contest import asking_task, question_of
from tests.services_up import free_port

pytestmark = pytest.mark.django_db


def types_of(receiver: Receiver) -> list[str]:
    """The kinds of what arrived, in order."""
    return [json.loads(one.body)["type"] for one in receiver.requests]


def asked(policy: dict[str, Any] | None = None) -> Decision:
    """An open question of an agent."""
    return question_of(asking_task(new_project(policy=policy), "What is the password: hunter2?"))


def after(moment: Any, **span: float) -> time_machine.travel:
    """Let a span have passed since a moment."""
    return time_machine.travel(moment + timedelta(**span), tick=False)


def test_open_and_unseen_item_is_told_after_the_delay(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    assert deliver_notices() == 0
    opened = Notice.objects.get(decision=decision)
    assert Delivery.objects.get().due_at == opened.created_at + timedelta(seconds=300)
    with after(decision.created_at, seconds=299):
        assert deliver_notices() == 0
    with after(decision.created_at, seconds=301):
        assert deliver_notices() == 1
        assert deliver_notices() == 0
    assert types_of(receiver) == ["decision.opened"]
    assert Delivery.objects.get().result == "sent"


def test_body_is_small_and_holds_nothing_that_an_agent_wrote(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
    body = receiver.requests[0].body
    assert b"hunter2" not in body
    assert len(body) < 1000
    data = json.loads(body)["data"]
    assert data["id"] == str(decision.pk)
    assert data["url"] == f"https://sign.example/inbox/{decision.pk}/"
    assert (data["kind"], data["status"], data["verdict"]) == ("waiting_human", "open", None)


def test_seen_item_is_not_told(webhook: NotificationChannel, receiver: Receiver) -> None:
    decision = asked()
    deliver_notices()
    mark_seen(decision_id=decision.pk, user_id=new_sir().pk, actor=SYSTEM)
    with after(decision.created_at, minutes=6):
        assert deliver_notices() == 0
    assert receiver.requests == []
    assert (Delivery.objects.get().result, Delivery.objects.get().attempts) == ("dropped", 1)


def test_item_decided_before_the_delay_is_told_neither_way(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    deliver_notices()
    decide(decision, "answer", reason="b")
    with after(decision.created_at, minutes=6):
        deliver_notices()
    assert receiver.requests == []
    assert set(Delivery.objects.values_list("result", flat=True)) <= {"dropped"}


@pytest.mark.parametrize(
    ("end", "event"), [("answer", "decision.decided"), ("cancel", "decision.withdrawn")]
)
def test_outcome_follows_what_was_told(
    webhook: NotificationChannel, receiver: Receiver, end: str, event: str
) -> None:
    decision = asked()
    acts: dict[str, Callable[[], object]] = {
        "answer": lambda: decide(decision, "answer", reason="b"),
        "cancel": lambda: cancel_task(
            task_id=decision.task_id or 0, actor=Actor("human:sir"), reason="no"
        ),
    }
    with after(decision.created_at, minutes=6):
        deliver_notices()
        acts[end]()
        deliver_notices()
    assert types_of(receiver) == ["decision.opened", event]
    assert Delivery.objects.filter(result="sent").count() == 2


def test_policy_that_decides_is_told_as_expired(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    from_policy = {"policy_id": "ask-once", "after_seconds": 3600, "outcome": "reject"}
    decision = asked({"expiry": {"waiting_human": from_policy}})
    with after(decision.created_at, minutes=6):
        deliver_notices()
    with after(decision.created_at, minutes=61):
        expire(decision)
        deliver_notices()
    assert types_of(receiver) == ["decision.opened", "decision.expired"]
    last = json.loads(receiver.requests[-1].body)["data"]
    assert (last["verdict"], last["decided_by"]) == ("reject", "ask-once")


def expire(decision: Decision) -> None:
    """Let the sweep carry out the policy."""
    assert expire_decisions() == 1
    decision.refresh_from_db()
    assert decision.decided_by_policy == "ask-once"


def test_signature_is_what_the_standard_says(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
        got = receiver.requests[0]
        assert Webhook(open_sealed(webhook.secret)).verify(got.body, got.headers)
    assert got.headers["webhook-id"] == Delivery.objects.get().message_id
    assert got.headers["host"] == f"localhost:{receiver.port}"


def test_signature_of_the_published_example() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_rotated_secret_and_the_one_before_both_verify_for_a_day(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    before = open_sealed(webhook.secret)
    _, secret = rotate_secret(webhook.pk, actor=SYSTEM)
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
        first = receiver.requests[0]
        assert Webhook(secret).verify(first.body, first.headers)
        assert Webhook(before).verify(first.body, first.headers)
    with after(decision.created_at, hours=25):
        deliver_notices()
        second = receiver.requests[1]
        assert len(second.headers["webhook-signature"].split()) == 1
        assert Webhook(secret).verify(second.body, second.headers)


def test_failing_receiver_is_tried_again_under_the_same_id(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    receiver.statuses = [500]
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
        row = Delivery.objects.get()
        assert (row.result, row.attempts, row.error) == ("", 1, "the receiver answered 500")
        assert send_due() == 0
    with time_machine.travel(row.due_at, tick=False):
        assert send_due() == 1
    assert len({one.headers["webhook-id"] for one in receiver.requests}) == 1
    assert (Delivery.objects.get().result, len(receiver.requests)) == ("sent", 2)


def test_receiver_that_never_takes_it_is_given_up_and_said_so(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    receiver.statuses = [503] * ATTEMPTS
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
    for _ in range(ATTEMPTS - 1):
        with time_machine.travel(Delivery.objects.get().due_at, tick=False):
            send_due()
    row = Delivery.objects.get()
    assert (row.result, row.attempts, row.error) == (
        "failed",
        ATTEMPTS,
        "the receiver answered 503",
    )
    assert AuditEvent.objects.filter(kind="notification.failed").count() == 1


def test_waits_between_tries_grow_to_a_cap() -> None:
    waits = [retry_seconds(number) for number in range(1, 12)]
    assert 7.5 <= waits[0] <= 12.5
    assert all(later > sooner for sooner, later in pairwise(waits[:6]))
    assert max(waits) <= 6 * 3600 * 1.25


def test_gone_receiver_is_never_asked_again(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    receiver.statuses = [410]
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
    webhook.refresh_from_db()
    assert (webhook.is_enabled, Delivery.objects.get().result) == (False, "failed")
    other = asked()
    with after(other.created_at, minutes=6):
        deliver_notices()
    assert len(receiver.requests) == 1


def test_redirect_is_not_followed(webhook: NotificationChannel, receiver: Receiver) -> None:
    receiver.statuses = [307]
    receiver.location = receiver.url
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
    assert len(receiver.requests) == 1
    assert Delivery.objects.get().error == "the receiver answered 307"


def test_worker_that_dies_between_claim_and_send_leaves_it_to_be_sent(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    deliver_notices()
    row = Delivery.objects.get()
    with after(decision.created_at, minutes=6):
        assert claim_delivery(row.pk) is not None
        assert send_due() == 0
    with after(decision.created_at, minutes=6, seconds=CLAIM_SECONDS + 1):
        assert send_due() == 1
    assert [one.headers["webhook-id"] for one in receiver.requests] == [row.message_id]


def test_lost_message_loses_nothing(webhook: NotificationChannel, receiver: Receiver) -> None:
    decision = asked()
    assert Notice.objects.filter(decision=decision, spread_at=None).count() == 1
    with after(decision.created_at, minutes=20):
        assert not due_deliveries(decision.created_at).exists()
        assert deliver_notices() == 1
    assert types_of(receiver) == ["decision.opened"]


def test_channel_of_another_project_or_for_p0_only_is_left_alone(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    other = NewChannel(
        ChannelKind.WEBHOOK, "other", receiver.url + "/other", project_id=new_project().pk
    )
    urgent = NewChannel(ChannelKind.WEBHOOK, "p0", receiver.url + "/p0", is_p0_only=True)
    for new in (other, urgent):
        add_channel(new, user_id=None, actor=SYSTEM)
    decision = asked()
    with after(decision.created_at, minutes=6):
        deliver_notices()
    assert [one.path for one in receiver.requests] == ["/hook"]


def test_new_channel_is_not_told_of_the_past(receiver: Receiver, lets_out: Any) -> None:
    asked()
    add_channel(NewChannel(ChannelKind.WEBHOOK, "new", receiver.url), user_id=None, actor=SYSTEM)
    deliver_notices()
    assert not Delivery.objects.exists()


def owe(channel: NotificationChannel, count: int, *, due_at: datetime) -> None:
    """Let tests be owed over a channel."""
    Delivery.objects.bulk_create(
        Delivery(
            channel=channel, kind="test", key=f"{channel.name}:{n}",
            message_id=f"{channel.name}:{n}", due_at=due_at, created_at=due_at,
        )
        for n in range(count)
    )  # fmt: skip


def test_dead_channel_with_more_than_a_batch_owed_holds_up_no_other(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    now = timezone.now()
    gone = f"http://localhost:{free_port()}/hook"
    dead, _ = add_channel(NewChannel(ChannelKind.WEBHOOK, "dead", gone), user_id=None, actor=SYSTEM)
    owe(dead, BATCH + 1, due_at=now - timedelta(hours=1))
    owe(webhook, 1, due_at=now - timedelta(seconds=1))
    assert send_due() == 2
    assert types_of(receiver) == ["channel.test"]


def test_what_stopped_a_project_is_told_first(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = asked()
    deliver_notices()
    Decision.objects.filter(pk=decision.pk).update(is_p0=True)
    with after(decision.created_at, minutes=6):
        owe(webhook, 1, due_at=decision.created_at)
        assert send_due() == 2
    assert types_of(receiver) == ["decision.opened", "channel.test"]
