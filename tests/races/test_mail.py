"""Mail in a race: one mail an id, one next round, one next version, whoever is first."""

from __future__ import annotations

from functools import partial

from orchestration.errors import CountersignError
from orchestration.models import Conversation, Mail, SharedDocumentVersion
from tests.factories import new_agent, new_project, post
from tests.races.contest import on_both, rivals
from tests.services.mesh_rooms import mail, new_task, write

pytestmark = on_both
ROUNDS = 5
RIVALS = 4


def test_the_same_mail_from_several_processes_is_one() -> None:
    project, alice = new_project(), new_agent("alice")
    new_agent("bob")
    with rivals(RIVALS) as fire:
        for n in range(ROUNDS):
            letter = mail("request", to="bob", message_id=f"m-{n}")
            answers = fire(*[partial(post, letter, alice, project=project)] * RIVALS)
            assert len({one.pk for one in answers}) == 1
    assert Mail.objects.count() == ROUNDS
    assert Conversation.objects.count() == ROUNDS


def test_two_mails_under_one_id_are_one_mail_and_a_conflict() -> None:
    project, alice = new_project(), new_agent("alice")
    new_agent("bob")
    with rivals(RIVALS) as fire:
        for n in range(ROUNDS):
            letters = [mail("inform", f"text {k}", to="bob", message_id=f"m-{n}")
                       for k in range(RIVALS)]  # fmt: skip
            answers = fire(*[partial(post, one, alice, project=project) for one in letters])
            assert sum(isinstance(one, Mail) for one in answers) == 1
            refused = [one for one in answers if isinstance(one, CountersignError)]
            assert {one.code for one in refused} == {"message_conflict"}
    assert Mail.objects.count() == ROUNDS


def test_a_query_has_one_reply() -> None:
    project, alice, bob = new_project(), new_agent("alice"), new_agent("bob")
    with rivals(RIVALS) as fire:
        for n in range(ROUNDS):
            asked = post(mail("request", to="bob", mode="query"), alice, project=project)
            asked = Mail.objects.select_related("conversation", "project").get(pk=asked.pk)
            replies = [mail("reply", f"{n} {k}") for k in range(RIVALS)]
            answers = fire(*[partial(post, one, bob, answered=asked) for one in replies])
            assert sum(isinstance(one, Mail) for one in answers) == 1
            assert asked.replies.count() == 1


def test_a_round_has_one_proposal() -> None:
    task = new_task(new_project())
    alice, bob = new_agent("alice"), new_agent("bob")
    first = post(mail("request", to="bob", mode="negotiation"), alice, task=task)
    with rivals(RIVALS) as fire:
        counters = [mail("reply", f"plan {k}") for k in range(RIVALS)]
        answers = fire(*[partial(post, one, bob, answered=first) for one in counters])
        (second,) = [one for one in answers if isinstance(one, Mail)]
        both = [
            partial(post, mail("reply", "", accept=True), agent, answered=second)
            for agent in (alice, bob) for _ in range(RIVALS // 2)
        ]  # fmt: skip
        answers = fire(*both)
    assert sum(isinstance(one, Mail) for one in answers) == 2
    talk = Conversation.objects.get()
    assert (talk.status, talk.round, talk.outcome) == ("closed", 2, second.text)
    assert task.comments.count() == 1


def test_a_version_is_written_by_one() -> None:
    task = new_task(new_project())
    agents = [new_agent() for _ in range(RIVALS)]
    with rivals(RIVALS) as fire:
        for n in range(ROUNDS):
            acts = [partial(write, task, one, f"{n} {one.name}", n) for one in agents]
            answers = fire(*acts)
            assert sum(isinstance(one, tuple) for one in answers) == 1
    kept = SharedDocumentVersion.objects.values_list("version", flat=True)
    assert list(kept) == list(range(1, ROUNDS + 1))
