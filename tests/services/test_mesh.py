"""Mail between agents: types, modes, mentions, identity, complexity, and nothing sent twice."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.contracts.results import CommentInput
from orchestration.errors import Conflict, Forbidden, Invalid, MessageConflict, Stale
from orchestration.models import Agent, Conversation, Mail, Project, Task
from orchestration.services.agents import revoke_agent
from orchestration.services.tasks import add_task_comment
from tests.factories import (
    actor_of,
    claim,
    confirm_intent,
    decide,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    post,
    set_status,
)
from tests.services.mesh_rooms import (
    SIR,
    ack,
    disagreement,
    handshake_of,
    mail,
    new_task,
    spawned,
    write,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def alice(project: Project) -> Agent:
    return new_agent("alice", project=project)


@pytest.fixture
def bob(project: Project) -> Agent:
    return new_agent("bob", project=project)


def addresses(sent: Mail) -> list[str]:
    return [one.name for one in sent.recipients.all()]


def test_an_inform_expects_no_reply_and_gets_none(
    project: Project, alice: Agent, bob: Agent
) -> None:
    sent = post(mail("inform", to="bob"), alice, project=project)
    assert not sent.expects_reply
    assert (sent.sender, addresses(sent)) == ("agent:alice", ["agent:bob"])
    assert not sent.replies.exists()
    with pytest.raises(Conflict) as refused:
        post(mail("reply"), bob, answered=sent)
    assert refused.value.code == "no_reply_expected"


def test_a_request_is_answered_by_whom_it_was_for(
    project: Project, alice: Agent, bob: Agent
) -> None:
    sent = post(mail("request", to="bob"), alice, project=project)
    assert sent.expects_reply
    with pytest.raises(Forbidden):
        post(mail("reply"), new_agent("carol", project=project), answered=sent)
    reply = post(mail("reply"), bob, answered=sent)
    assert addresses(reply) == ["agent:alice"]
    assert reply.conversation == sent.conversation
    assert not reply.expects_reply


def test_the_same_mail_twice_is_one_and_another_under_its_id_is_refused(
    project: Project, alice: Agent, bob: Agent
) -> None:
    first = mail("inform", to="bob", message_id="m-1")
    sent = post(first, alice, project=project)
    assert post(first, alice, project=project) == sent
    with pytest.raises(MessageConflict):
        post(mail("inform", "other", to="bob", message_id="m-1"), alice, project=project)
    with pytest.raises(MessageConflict):
        post(mail("inform", to="alice", message_id="m-1"), bob, project=project)
    assert Mail.objects.filter(message_id="m-1").count() == 1


@pytest.mark.parametrize("name", ["nobody", "outsider", "gone", "human:nobody", "alice"])
def test_mail_to_whom_it_cannot_reach_names_them(
    project: Project, alice: Agent, bob: Agent, name: str
) -> None:
    new_agent("outsider", project=new_project())
    gone = new_agent("gone", project=project)
    revoke_agent(agent_id=gone.pk, actor=SIR)
    with pytest.raises(Invalid) as refused:
        post(mail("inform", to=["bob", name]), alice, project=project)
    assert [one["path"] for one in refused.value.errors] == ["to.1"]
    assert not Mail.objects.exists()


@pytest.mark.parametrize(
    ("text", "named", "complexity"),
    [
        ("重构 task 模块", {}, "high"),
        ("先读，然后写", {}, "medium"),
        ("x" * 201, {}, "medium"),
        ("查一下版本号", {}, "low"),
        ("查一下版本号", {"metadata": {"complexity": "high"}}, "high"),
        ("重构", {"metadata": {"complexity": "low"}}, "low"),
        ("重构", {"complexity_hint": "medium"}, "medium"),
        ("hi", {"parts": [{"kind": "metadata", "key": "complexity", "value": "high"}]}, "high"),
        ("hi", {"parts": [{"kind": "text", "text": "架构"}]}, "high"),
    ],
)
def test_complexity_is_what_is_named_else_by_rule(
    project: Project, alice: Agent, bob: Agent, text: str, named: dict[str, Any], complexity: str
) -> None:
    sent = post(mail("request", text, to="bob", **named), alice, project=project)
    assert sent.complexity == complexity


def test_complexity_survives_continuation_and_broadcast(
    project: Project, alice: Agent, bob: Agent
) -> None:
    carol = new_agent("carol", project=project)
    new_agent("elsewhere", project=new_project())
    sent = post(mail("request", "重构", to="*"), alice, project=project)
    assert addresses(sent) == ["agent:bob", "agent:carol"]
    assert sent.complexity == "high"
    for agent in (bob, carol):
        reply = post(mail("reply", "ok"), agent, answered=sent)
        assert reply.complexity == "high"
        more = post(mail("request", "yes?", to="carol"), alice, answered=reply)
        assert more.complexity == "high"


def test_the_sources_parts_are_stored_in_our_form(
    project: Project, alice: Agent, bob: Agent
) -> None:
    parts = [
        {"kind": "text", "text": "重构 task 模块..."},
        {"kind": "data", "data": {"a": [1]}},
        {"kind": "metadata", "key": "complexity", "value": "high"},
    ]
    sent = post(mail("request", "", to="bob", parts=parts), alice, project=project)
    assert sent.parts == [{"text": "重构 task 模块..."}, {"data": {"a": [1]}}]
    assert sent.metadata == {"complexity": "high"}


def comment(task: Task, agent: Agent, body: str, kind: str = "general") -> None:
    document = CommentInput.model_validate({"comment_type": kind, "body": body})
    add_task_comment(task_id=task.pk, document=document, agent=agent, actor=actor_of(agent))


@pytest.mark.parametrize("kind", ["general", "observation", "review", "handoff"])
def test_a_mention_reaches_the_mailbox_once(project: Project, alice: Agent, kind: str) -> None:
    task, fei = new_task(project), new_agent("张飞", project=project)
    coder = new_agent("bob-coder@example", project=project)
    new_agent("bob", project=project)
    new_agent("outsider", project=new_project())
    body = "请@张飞看一下，@张飞！ @bob-coder@example, @outsider @nobody @alice a@bob.com"
    comment(task, alice, body, kind)
    sent = Mail.objects.get()
    assert (sent.type, sent.expects_reply, sent.sender) == ("inform", False, "agent:alice")
    assert sorted(addresses(sent)) == sorted([f"agent:{fei.name}", f"agent:{coder.name}"])
    assert sent.text == body
    assert sent.task == task


def test_a_mention_by_sir_is_sirs(project: Project, bob: Agent) -> None:
    task = new_task(project)
    add_task_comment(
        task_id=task.pk, document=CommentInput(body="@bob look"), agent=None, actor=SIR
    )
    assert Mail.objects.get().sender == "human:sir"


def test_a_query_closes_with_its_reply(project: Project, alice: Agent, bob: Agent) -> None:
    asked = mail("request", "which file?", to="bob", mode="query")
    sent = post(asked, alice, project=project)
    reply = post(mail("reply", "fsm.go"), bob, answered=sent)
    assert Conversation.objects.get(pk=sent.conversation_id).status == "closed"
    assert reply.conversation.mode == ConversationMode.QUERY
    with pytest.raises(Conflict) as refused:
        post(mail("reply", "or not"), bob, answered=sent)
    assert refused.value.code == "conversation_closed"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": "inform", "mode": "query"}, "type"),
        ({"type": "request", "mode": "query", "to": ["bob", "carol"]}, "to"),
        ({"type": "request", "mode": "negotiation"}, "task"),
        ({"type": "request", "mode": "delegation"}, "type"),
        ({"type": "task_request", "mode": "delegation"}, "task"),
        ({"type": "inform", "mode": "co_creation"}, "task"),
        ({"type": "inform", "content": ""}, "content"),
        ({"type": "request", "to": []}, "to"),
        ({"type": "reply"}, "in_reply_to"),
        ({"type": "intent_ack"}, "in_reply_to"),
        ({"type": "intent_confirmation"}, "scope"),
    ],
)
def test_a_mail_that_is_not_complete_says_what_is_missing(
    project: Project, alice: Agent, bob: Agent, fields: dict[str, Any], path: str
) -> None:
    new_agent("carol", project=project)
    document = mail(**{"kind": fields["type"], "to": "bob", **{k: v for k, v in fields.items()
                       if k != "type"}})  # fmt: skip
    with pytest.raises(Invalid) as refused:
        post(document, alice, project=project)
    assert refused.value.errors[0]["path"] == path
    assert not Mail.objects.exists()


def propose(project: Project, task: Task, alice: Agent) -> Mail:
    first = mail("request", "plan A", to="bob", mode="negotiation")
    return post(first, alice, task=task, project=project)


def test_a_negotiation_ends_when_both_accept_and_its_result_is_a_comment(
    project: Project, alice: Agent, bob: Agent
) -> None:
    task = new_task(project)
    first = propose(project, task, alice)
    assert first.round == 1
    with pytest.raises(Conflict):
        post(mail("reply", "again A"), alice, answered=first)
    second = post(mail("reply", "plan B"), bob, answered=first)
    assert (second.round, addresses(second)) == (2, ["agent:alice"])
    with pytest.raises(Conflict) as refused:
        post(mail("reply", "plan C"), alice, answered=first)
    assert refused.value.extra["message_id"] == second.message_id
    with pytest.raises(Forbidden):
        post(mail("reply", accept=True), new_agent("eve", project=project), answered=second)
    post(mail("reply", "", accept=True), alice, answered=second)
    assert not task.comments.exists()
    with pytest.raises(Conflict):
        post(mail("reply", "", accept=True), alice, answered=second)
    post(mail("reply", "", accept=True), bob, answered=second)
    talk = Conversation.objects.get(pk=first.conversation_id)
    assert (talk.status, talk.outcome) == ("closed", "plan B")
    assert "plan B" in task.comments.get().body
    with pytest.raises(Conflict):
        post(mail("reply", "late"), alice, answered=second)


@pytest.mark.parametrize(
    ("verdict", "reason", "outcome"),
    [
        ("confirmed", "", "plan 5"),
        ("confirmed_with_correction", "neither; plan Z", "plan Z"),
        ("rejected", "stop this", "stop this"),
    ],
)
def test_after_five_rounds_sir_decides(
    project: Project, verdict: str, reason: str, outcome: str
) -> None:
    task = new_task(project)
    talk = disagreement(project, task)
    assert (talk.status, talk.round) == ("awaiting_sir", 5)
    decision = open_decision_of(project, "clarification")
    texts = [one["text"] for one in decision.content["rounds"]]
    assert texts == [f"plan {n}" for n in range(1, 7)]
    before = task.status
    decide(decision, verdict, reason=reason)
    talk.refresh_from_db()
    assert talk.status == "closed"
    assert outcome in talk.outcome
    assert outcome in task.comments.get().body
    told = Mail.objects.filter(type="inform", conversation=talk).get()
    assert len(addresses(told)) == 2
    task.refresh_from_db()
    assert task.status == before


def test_a_shared_document_is_written_on_what_was_read(
    project: Project, alice: Agent, bob: Agent
) -> None:
    task = new_task(project)
    assert write(task, alice, "one", None) == (1, True)
    assert write(task, bob, "two", 1) == (2, True)
    with pytest.raises(Stale) as refused:
        write(task, alice, "mine", 1)
    assert refused.value.extra["version"] == 2
    with pytest.raises(Stale):
        write(task, alice, "mine", None)
    assert write(task, bob, "two", 1) == (2, False)
    kept = task.shared_documents.get().versions.values_list("author", "content")
    assert list(kept) == [("agent:alice", "one"), ("agent:bob", "two")]
    assert task.events.filter(kind="shared_document.written").count() == 2


def test_only_known_types_are_mail() -> None:
    assert {str(one) for one in MailType} == {
        "inform", "request", "reply", "task_request", "intent_confirmation", "intent_ack",
        "execution_start",
    }  # fmt: skip


def test_a_delegation_is_a_child_of_what_its_sender_works_on(project: Project) -> None:
    child, alice = spawned(project)
    parent = child.parent
    assert parent is not None
    bob = new_agent("bob", project=project)
    asked = mail(
        "task_request", "重构 task 模块的状态机逻辑", to="bob", mode="delegation",
        complexity_hint="medium",
    )  # fmt: skip
    sent = post(asked, alice, task=parent, project=project)
    assert post(asked, alice, task=parent, project=project) == sent
    made = sent.task
    assert made is not None
    assert (made.parent_id, made.depth, sent.complexity) == (parent.pk, 1, "medium")
    assert (made.description, made.status) == ("重构 task 模块的状态机逻辑", "pending")
    assert set(parent.children.values_list("pk", flat=True)) == {child.pk, made.pk}
    assert addresses(sent) == ["agent:bob"]
    assert sent.expects_reply
    claim(made, bob)
    intent = confirm_intent(made, bob)
    assert addresses(intent) == ["agent:alice"]
    ack(intent, alice)
    assert handshake_of(made).answered_by == "agent:alice"
    set_status(made, bob, "working")
    assert (fresh(made).status, fresh(made).assignee) == ("working", bob)
    assert fresh(parent).status == "working"


def test_a_childs_end_is_mailed_to_its_spawner(project: Project) -> None:
    child, alice = spawned(project)
    bob = new_agent("bob", project=project)
    claim(child, bob)
    ack(confirm_intent(child, bob), alice)
    set_status(child, bob, "working")
    for _ in range(2):
        if fresh(child).status == "pending":
            claim(child, bob)
        set_status(child, bob, "failed", detail="@bob no such service")
    told = Mail.objects.get(sender="system", type="inform", details__status="failed")
    assert addresses(told) == ["agent:alice"]
    assert told.task == child


def test_a_part_that_fails_leaves_nothing_behind(project: Project) -> None:
    child, alice = spawned(project)
    parent = child.parent
    assert parent is not None
    new_agent("bob", project=project)
    own_words = mail("task_request", parent.description, to="bob", mode="delegation")
    with pytest.raises(Invalid):
        post(own_words, alice, task=parent, project=project)
    assert parent.children.count() == 1
    assert not Mail.objects.filter(message_id=own_words.message_id).exists()
