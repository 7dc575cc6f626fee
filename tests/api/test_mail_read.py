"""Read marks of the mailbox: what is unread, marking it read, once and only one's own."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import MailRecipient, Project
from orchestration.states import ProjectStatus
from tests.api.callers import Caller, agent_client, events, facts, problem

READ = "/api/mail/read"


@pytest.fixture
def alice(project: Project) -> Caller:
    return agent_client(project, name="alice")


@pytest.fixture
def bob(project: Project) -> Caller:
    return agent_client(project, name="bob")


@pytest.fixture
def carol(project: Project) -> Caller:
    return agent_client(project, name="carol")


def send(sender: Caller, message_id: str, *to: str) -> str:
    body = {"type": "inform", "to": list(to), "content": "hello", "message_id": message_id}
    answer = sender.send("/api/mail/", body)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def unread(caller: Caller) -> list[str]:
    return [one["id"] for one in caller.read("/api/mail/", unread="true")["results"]]


def test_mail_is_unread_until_its_reader_marks_it(alice: Caller, bob: Caller) -> None:
    first, second = send(alice, "m-1", "bob"), send(alice, "m-2", "bob")
    assert unread(bob) == [first, second]
    answer = bob.send(READ, {"mail": [first]})
    assert (answer.status_code, answer.json()) == (200, {"marked": 1, "unread": 1})
    assert unread(bob) == [second]
    shown = {one["id"]: one["read_at"] for one in bob.read("/api/mail/", box="in")["results"]}
    assert shown[first] is not None
    assert shown[second] is None
    (event,) = events("mail.read")
    assert facts(event)["mail"] == [first]


def test_same_mark_again_changes_nothing(alice: Caller, bob: Caller) -> None:
    mail = send(alice, "m-1", "bob")
    bob.send(READ, {"mail": [mail]})
    known = MailRecipient.objects.get().read_at
    answer = bob.send(READ, {"mail": [mail, mail]})
    assert (answer.status_code, answer.json()) == (200, {"marked": 0, "unread": 0})
    assert MailRecipient.objects.get().read_at == known
    assert len(events("mail.read")) == 1


def test_one_readers_mark_is_not_anothers(alice: Caller, bob: Caller, carol: Caller) -> None:
    mail = send(alice, "m-1", "bob", "carol")
    bob.send(READ, {"mail": [mail]})
    assert (unread(bob), unread(carol)) == ([], [mail])
    (seen,) = carol.read("/api/mail/")["results"]
    assert seen["read_at"] is None


def test_only_received_mail_is_marked_and_nothing_beside_it(
    alice: Caller, bob: Caller, carol: Caller
) -> None:
    mine, others = send(alice, "m-1", "bob"), send(alice, "m-2", "carol")
    sent = send(bob, "m-3", "alice")
    for wrong in (others, sent, "999999", "no-id", str(2**70)):
        refused = problem(bob.send(READ, {"mail": [mine, wrong]}), 422, "invalid")
        assert [one["path"] for one in refused["errors"]] == ["mail.1"]
    assert unread(bob) == [mine]
    assert not events("mail.read")


def test_people_mark_what_was_sent_to_them(alice: Caller, sir: Caller) -> None:
    mail = send(alice, "m-1", "human:sir")
    assert unread(sir) == [mail]
    assert sir.send(READ, {"mail": [mail]}).json() == {"marked": 1, "unread": 0}


@pytest.mark.parametrize("body", [{}, {"mail": []}, {"mail": "1"}])
def test_malformed_mark_is_refused(bob: Caller, body: dict[str, Any]) -> None:
    problem(bob.send(READ, body), 422, "invalid")


def test_nothing_is_marked_in_a_project_in_safe_stop(
    project: Project, alice: Caller, bob: Caller
) -> None:
    mail = send(alice, "m-1", "bob")
    Project.objects.filter(pk=project.pk).update(status=ProjectStatus.SAFE_STOP.value)
    problem(bob.send(READ, {"mail": [mail]}), 409, "project_safe_stop")
    assert unread(bob) == [mail]


def test_unread_is_true_or_false(bob: Caller) -> None:
    assert bob.get("/api/mail/", {"unread": "maybe"}).status_code == 422
    assert bob.read("/api/mail/", unread="false")["results"] == []


def test_a_query_of_unread_mail_takes_a_fixed_number_of_queries(
    alice: Caller, bob: Caller, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        send(alice, f"m-{number}", "bob")
    with django_assert_max_num_queries(8):
        assert len(unread(bob)) == 12
