"""Mail: P0 at once, the digest once a day in the reader's time, hostile titles made harmless."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from orchestration.contracts.notices import ChannelKind, NoticeEvent
from orchestration.models import Decision, Delivery, NotificationChannel
from orchestration.notice_words import Told, notice_message, plain_line, quiet_line
from orchestration.services.deliveries import deliver_notices, send_due
from orchestration.services.inbox import open_decision
from orchestration.services.notification_channels import NewChannel, add_channel
from orchestration.services.sweeping import expire_decisions
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import DecisionKind
from tests.factories import decide, new_project
from tests.notifications.conftest import Mailbox
from tests.races.contest import asking_task, direct_task, question_of

pytestmark = pytest.mark.django_db
HOSTILE = (
    "Fix\r\nBcc: all@example.com\r\n\r\n<b>hi</b> [click](https://evil.example) @everyone "
    "\u202egpj.exe www.evil.example **now**"
)


def urgent(title: str = "Nothing goes on", *, language: str = "en") -> Decision:
    """An open P0 item."""
    task = direct_task(new_project())
    with unit_of_work(SYSTEM) as work:
        return open_decision(
            work, kind=DecisionKind.HIGH_NOTICE, project=task.project, task=task, title=title,
            question="?", content={}, is_p0=True,
        )  # fmt: skip


@pytest.mark.parametrize("is_p0", [True, False])
def test_only_p0_wakes_whoever_delivers(*, is_p0: bool) -> None:
    task = direct_task(new_project())
    with unit_of_work(SYSTEM) as work:
        open_decision(
            work, kind=DecisionKind.HIGH_NOTICE, project=task.project, task=task, title="t",
            question="?", content={}, is_p0=is_p0,
        )  # fmt: skip
        assert work.tells is is_p0


def test_p0_is_mailed_at_once(mail_channel: NotificationChannel, mailbox: Mailbox) -> None:
    decision = urgent()
    assert deliver_notices() == 1
    mail = mailbox.mails[0]
    assert mail["To"] == "sir@example.com"
    assert "P0" in mail["Subject"]
    assert f"https://sign.example/inbox/{decision.pk}/" in mail.get_content()
    assert mail.get_content_type() == "text/plain"
    assert mail["Message-ID"].startswith(f"<{Delivery.objects.get().message_id}@")


def test_other_items_wait_for_the_digest(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    decision = question_of(asking_task(new_project()))
    with time_machine.travel(decision.created_at + timedelta(minutes=6), tick=False):
        deliver_notices()
    assert mailbox.mails == []


def test_hostile_title_breaks_neither_header_nor_text(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    urgent(HOSTILE)
    deliver_notices()
    mail = mailbox.mails[0]
    assert (mail["Bcc"], len(mailbox.mails)) == (None, 1)
    text = mail["Subject"] + mail.get_content().replace("https://sign.example", "")
    assert "://" not in text
    assert "www." not in text
    assert "\u202e" not in text
    assert "\n" not in mail["Subject"]


def test_chat_programs_find_nothing_to_format_in_a_title() -> None:
    line = quiet_line(HOSTILE)
    assert not set("<>[]()*_`~|#@&\\\r\n\u202e") & set(line)
    assert "Bcc" in line
    assert plain_line("a\x00b\u2028c\td  e") == "a b c d e"
    assert len(plain_line("x" * 1000)) == 140


@pytest.mark.parametrize("event", list(NoticeEvent))
def test_every_event_has_its_words(event: NoticeEvent) -> None:
    told = Told(
        kind="waiting_human", event=event.value, is_p0=False, project="Demo", key="DEMO-1",
        title="Title", url="https://sign.example/inbox/1/", created_at=timezone.now(),
        deadline=timezone.now(), policy_id="ask-once", outcome="reject", verdict="", decided_by="",
    )  # fmt: skip
    message = notice_message(told)
    assert "Demo DEMO-1: Title" in message.subject
    assert "ask-once" in message.text


def test_refused_mail_is_tried_again(mail_channel: NotificationChannel, mailbox: Mailbox) -> None:
    mailbox.refusals = ["451 try later"]
    urgent()
    deliver_notices()
    row = Delivery.objects.get()
    assert (row.result, row.attempts) == ("", 1)
    assert "sir@example.com" not in row.error
    with time_machine.travel(row.due_at, tick=False):
        send_due()
    assert len(mailbox.mails) == 1


def at(hour: int, day: int = 2) -> time_machine.travel:
    """A moment in UTC."""
    return time_machine.travel(datetime(2026, 3, day, hour, 30, tzinfo=UTC), tick=False)


def test_digest_comes_once_a_day_at_the_readers_time(mailbox: Mailbox, db: None) -> None:
    with at(2, day=1):
        new = NewChannel(
            ChannelKind.EMAIL, "Sir", "sir@example.com", has_digest=True, is_p0_only=True,
            digest_at=time(8), time_zone="Asia/Shanghai",
        )  # fmt: skip
        add_channel(new, user_id=None, actor=SYSTEM)
        question_of(asking_task(new_project(), "first"))
        # Half past ten in Shanghai: the first morning comes tomorrow.
        deliver_notices()
        assert mailbox.mails == []
    with at(23, day=1):
        deliver_notices()
        assert mailbox.mails == []
    with time_machine.travel(datetime(2026, 3, 2, 0, 0, 5, tzinfo=UTC), tick=False):
        deliver_notices()
        deliver_notices()
        assert len(mailbox.mails) == 1
    with at(12):
        deliver_notices()
    assert len(mailbox.mails) == 1
    assert "[Countersign] 2026-03-02: 1 item waits for you" in mailbox.mails[0]["Subject"]


def test_digest_lists_what_waits_oldest_first_and_what_policies_decided(
    mailbox: Mailbox, db: None
) -> None:
    rule = {"policy_id": "ask-once", "after_seconds": 3600, "outcome": "acknowledge"}
    with at(1, day=1):
        new = NewChannel(
            ChannelKind.EMAIL, "Sir", "sir@example.com", has_digest=True, is_p0_only=True,
            digest_at=time(7), time_zone="UTC",
        )  # fmt: skip
        add_channel(new, user_id=None, actor=SYSTEM)
        titled("older")
    with at(2, day=1):
        titled("newer")
        titled("silent", rule)
    with at(5, day=1):
        assert expire_decisions() == 1
    with at(7, day=1):
        deliver_notices()
    text = mailbox.mails[0].get_content()
    waits, decided = text.split("Decided by policy")
    assert waits.index("older") < waits.index("newer")
    assert "silent" in decided
    assert "ask-once: acknowledge" in decided


def titled(title: str, rule: dict[str, object] | None = None) -> Decision:
    """An open question of a task with a title."""
    policy = {"expiry": {"high_notice": rule}} if rule else None
    task = direct_task(new_project(policy=policy), f"打开{title}")
    with unit_of_work(SYSTEM) as work:
        return open_decision(
            work, kind=DecisionKind.HIGH_NOTICE, project=task.project, task=task, title=title,
            question="?", content={},
        )  # fmt: skip


def test_empty_day_is_not_mailed(mail_channel: NotificationChannel, mailbox: Mailbox) -> None:
    after_eight = (timezone.now() + timedelta(days=2)).replace(hour=1)
    with time_machine.travel(after_eight, tick=False):
        deliver_notices()
    assert mailbox.mails == []
    assert Delivery.objects.get().result == "dropped"


def test_mail_speaks_the_language_of_the_channel(mailbox: Mailbox, db: None) -> None:
    new = NewChannel(ChannelKind.EMAIL, "Sir", "sir@example.com", language="zh-hans")
    add_channel(new, user_id=None, actor=SYSTEM)
    urgent()
    deliver_notices()
    assert "等你" in mailbox.mails[0].get_content()
    assert settings.LANGUAGE_CODE == "en"


def test_outcome_is_mailed_after_the_opening(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    decision = urgent()
    deliver_notices()
    decide(decision, "acknowledge")
    deliver_notices()
    texts = [one.get_content() for one in mailbox.mails]
    assert ["was decided" in text for text in texts] == [False, True]
    assert "by sir" in mailbox.mails[1].get_content()
