"""A delegation ends with the work that was delegated; its outcome stands on the conversation."""

from __future__ import annotations

import pytest

from orchestration.models import Agent, AuditEvent, Conversation, Mail, Project, Task
from orchestration.services.cancelling import cancel_tree
from orchestration.services.lookups import lock_task
from orchestration.services.sweeping import PARTS
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import ConversationStatus
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    fresh,
    hand_in,
    new_agent,
    new_project,
    post,
    set_status,
    submit_plan,
)
from tests.services.mesh_rooms import mail, spawned

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project()


def delegate(project: Project, *, to: str = "bob") -> tuple[Task, Agent, Agent, Mail]:
    """Let an agent delegate a part of its work. Return the child, both agents and the mail."""
    known, alice = spawned(project)
    bob = new_agent(to, project=project)
    asked = mail("task_request", "打开说明文件", to=to, mode="delegation")
    sent = post(asked, alice, task=known.parent, project=project)
    assert sent.task is not None
    return fresh(sent.task), alice, bob, sent


def do(task: Task, agent: Agent, *, fails: bool = False) -> None:
    """Do delegated work, or fail it until its tries are used up."""
    while fresh(task).status == "pending":
        claim(task, agent)
        set_status(task, agent, "working")
        if fails:
            set_status(task, agent, "failed", detail="no such service")
        else:
            hand_in(task, agent)
            set_status(task, agent, "review")


def addresses(sent: Mail) -> list[str]:
    return [one.name for one in sent.recipients.all()]


def conversation(sent: Mail) -> Conversation:
    return Conversation.objects.get(pk=sent.conversation_id)


def test_delegation_closes_when_its_child_is_done(project: Project) -> None:
    task, alice, bob, sent = delegate(project)
    assert conversation(sent).status == ConversationStatus.OPEN
    do(task, bob)
    closed = conversation(sent)
    assert (closed.status, closed.outcome) == ("closed", f"{fresh(task)} ended: done")
    answer = Mail.objects.get(in_reply_to=sent)
    assert (answer.sender, answer.type, addresses(answer)) == (
        "system", "inform", [f"agent:{alice.name}"],
    )  # fmt: skip
    assert answer.conversation_id == sent.conversation_id
    event = AuditEvent.objects.get(kind="conversation.closed")
    assert (event.task_id, event.why) == (task.pk, "task ended")


def test_delegation_of_what_failed_closes_with_the_reason(project: Project) -> None:
    task, _, bob, sent = delegate(project)
    do(task, bob, fails=True)
    closed = conversation(sent)
    assert closed.status == ConversationStatus.CLOSED
    assert closed.outcome.endswith("ended: failed, no such service")


def test_delegation_stays_open_while_a_try_is_left(project: Project) -> None:
    task, _, bob, sent = delegate(project)
    claim(task, bob)
    set_status(task, bob, "working")
    set_status(task, bob, "failed", detail="once")
    assert fresh(task).status == "pending"
    assert conversation(sent).status == ConversationStatus.OPEN
    PARTS["delegations"]()
    assert conversation(sent).status == ConversationStatus.OPEN


def test_delegation_of_what_sir_cancels_closes(project: Project) -> None:
    task, _, _, sent = delegate(project)
    with unit_of_work(SYSTEM) as work:
        cancel_tree(work, lock_task(task.pk), why="not needed")
    assert conversation(sent).status == ConversationStatus.CLOSED
    assert "cancelled" in conversation(sent).outcome


def test_sweep_closes_what_ended_with_its_parent(project: Project) -> None:
    task, alice, _, sent = delegate(project)
    assert task.parent is not None
    with unit_of_work(SYSTEM) as work:
        cancel_tree(work, lock_task(task.parent.pk), why="not needed")
    assert PARTS["delegations"]() == 1
    assert conversation(sent).status == ConversationStatus.CLOSED
    told = Mail.objects.get(in_reply_to=sent)
    assert addresses(told) == [f"agent:{alice.name}"]
    assert PARTS["delegations"]() == 0
    assert Mail.objects.filter(in_reply_to=sent).count() == 1


def test_task_that_is_delegated_whole_closes_with_it(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    alice, bob = new_agent("alice", project=project), new_agent("bob", project=project)
    step = child(root, "1")
    sent = post(
        mail("task_request", "please do it", to="bob", mode="delegation"),
        alice, task=step, project=project,
    )  # fmt: skip
    assert sent.task_id == step.pk
    do(step, bob)
    assert PARTS["delegations"]() == 1
    closed = conversation(sent)
    assert (closed.status, closed.outcome) == ("closed", f"{fresh(step)} ended: done")
    assert addresses(Mail.objects.get(in_reply_to=sent)) == ["agent:alice"]


def test_other_conversations_of_an_ended_task_are_left_alone(project: Project) -> None:
    task, _, bob, _ = delegate(project)
    talk = post(
        mail("request", "which file?", to=f"{bob.name}", mode="query"),
        new_agent("carol", project=project), task=task, project=project,
    )  # fmt: skip
    do(task, bob)
    PARTS["delegations"]()
    assert conversation(talk).status == ConversationStatus.OPEN


def test_sweep_of_many_delegations_asks_once(
    project: Project, django_assert_num_queries: object
) -> None:
    delegate(project)
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert PARTS["delegations"]() == 0
