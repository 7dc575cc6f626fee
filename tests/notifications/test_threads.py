"""What is told of one item stays one thread: in a mail program, at a webhook, at a service."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import time_machine
from pytest_django import Settings

from orchestration.contracts.notices import ChannelKind
from orchestration.models import Decision, Delivery, NotificationChannel
from orchestration.outbound.services import SCHEMAS
from orchestration.services.decisions import mark_seen
from orchestration.services.deliveries import deliver_notices
from orchestration.services.notification_channels import NewChannel, add_channel
from orchestration.services.work import SYSTEM
from tests.factories import decide, new_project, new_sir
from tests.notifications.conftest import Mailbox, Receiver
from tests.notifications.test_mails import urgent
from tests.races.contest import asking_task, question_of


def later(decision: Decision, minutes: float) -> time_machine.travel:
    """Some time after an item was opened."""
    return time_machine.travel(decision.created_at + timedelta(minutes=minutes), tick=False)


def test_outcome_answers_the_mail_that_opened_the_thread(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    decision = urgent()
    deliver_notices()
    decide(decision, "acknowledge")
    deliver_notices()
    opening, outcome = mailbox.mails
    assert outcome["In-Reply-To"] == outcome["References"] == opening["Message-ID"]
    assert outcome["Message-ID"] != opening["Message-ID"]
    assert opening["In-Reply-To"] is None
    assert outcome["Subject"].strip() == f"Re: {opening['Subject'].strip()}"
    assert "Acknowledge" in outcome.get_content()


def test_reminders_stand_in_the_same_thread_and_other_items_do_not(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    decision = urgent()
    other = urgent("Another")
    deliver_notices()
    decide(other, "acknowledge")
    with later(decision, 25 * 60):
        deliver_notices()
    with later(decision, 25 * 60 + 1):
        decide(decision, "acknowledge")
        deliver_notices()
    mine = [mail for mail in mailbox.mails if "Another" not in mail["Subject"]]
    opening, reminder, outcome = mine
    assert reminder["In-Reply-To"] == opening["Message-ID"]
    assert outcome["In-Reply-To"] == opening["Message-ID"]
    assert outcome["References"].split() == [opening["Message-ID"], reminder["Message-ID"]]


def test_second_try_of_the_opening_keeps_its_id(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    mailbox.refusals = ["451 try later"]
    decision = urgent()
    deliver_notices()
    known = Delivery.objects.get().message_id
    with later(decision, 5):
        deliver_notices()
    with later(decision, 6):
        decide(decision, "acknowledge")
        deliver_notices()
    opening, outcome = mailbox.mails
    assert opening["Message-ID"].startswith(f"<{known}@")
    assert outcome["In-Reply-To"] == opening["Message-ID"]


def test_webhook_tells_the_outcome_under_the_same_id(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    decision = question_of(asking_task(new_project()))
    with later(decision, 6):
        deliver_notices()
        decide(decision, "answer", reason="Blue.")
        deliver_notices()
    bodies = [json.loads(one.body) for one in receiver.requests]
    assert [one["type"] for one in bodies] == ["decision.opened", "decision.decided"]
    assert [one["data"]["id"] for one in bodies] == [str(decision.pk)] * 2


def test_guide_names_every_service_that_is_allowed() -> None:
    guide = " ".join(Path("docs/notifications.md").read_text().split())
    listed = guide.partition("these are allowed:")[2].partition("They speak")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == SCHEMAS


# --- A service of the library ---------------------------------------------------------------------


def service_to(receiver: Receiver) -> NotificationChannel:
    """A service of the library that speaks to the receiver."""
    new = NewChannel(ChannelKind.APPRISE, "chat", f"json://localhost:{receiver.port}/chat")
    return add_channel(new, user_id=None, actor=SYSTEM)[0]


def test_service_is_told_after_the_delay_and_then_the_outcome(
    db: None, receiver: Receiver, lets_out: Settings
) -> None:
    service_to(receiver)
    decision = question_of(asking_task(new_project()))
    with later(decision, 4):
        assert deliver_notices() == 0
    assert receiver.requests == []
    with later(decision, 6):
        assert deliver_notices() == 1
        decide(decision, "answer", reason="Blue.")
        assert deliver_notices() == 1
    opening, outcome = (json.loads(one.body) for one in receiver.requests)
    assert "waits for you" in opening["title"]
    assert f"https://sign.example/inbox/{decision.pk}/" in opening["message"]
    assert "Verdict: Answer, by sir." in outcome["message"]
    assert set(Delivery.objects.values_list("result", flat=True)) == {"sent"}


def test_service_is_not_told_of_what_was_seen_or_decided(
    db: None, receiver: Receiver, lets_out: Settings
) -> None:
    service_to(receiver)
    seen, decided = (question_of(asking_task(new_project())) for _ in range(2))
    mark_seen(decision_id=seen.pk, user_id=new_sir().pk, actor=SYSTEM)
    decide(decided, "answer", reason="Blue.")
    with later(decided, 6):
        deliver_notices()
    assert receiver.requests == []
    assert set(Delivery.objects.values_list("result", flat=True)) == {"dropped"}
