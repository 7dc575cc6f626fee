"""Set-ups of the handshake: tasks of each complexity, a spawned child, and what is on record."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from orchestration.contracts.mail import MailInput, SharedDocumentInput
from orchestration.contracts.mail_types import MailType
from orchestration.models import (
    Agent,
    Assignment,
    Conversation,
    Decision,
    Handshake,
    Mail,
    Project,
    Task,
)
from orchestration.services.intake import NewTask, create_task
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.shared_documents import write_shared_document
from orchestration.services.spawning import NewChild, spawn_task
from orchestration.services.work import Actor
from tests.factories import (
    actor_of,
    claim,
    confirm_intent,
    fresh,
    new_agent,
    open_decision_of,
    post,
    set_status,
)

SIR = Actor("human:sir")
ROUTES = {"low": "direct", "medium": "light_plan"}


def new_task(project: Project, complexity: str = "medium", **rest: Any) -> Task:
    """A root that waits for an agent, of one complexity."""
    new = NewTask(text="Tidy the report", route=ROUTES[complexity], **rest)
    task = create_task(project_id=project.pk, new=new, actor=SIR)
    assert fresh(task).complexity == complexity
    return task


def spawned(project: Project, by: Agent | None = None) -> tuple[Task, Agent]:
    """A medium child that an agent spawned below the task it works on, and that agent."""
    easily_medium = ProjectChange(policy={"thresholds": {"s1_simple_threshold": 5}})
    update_project(project_id=project.pk, change=easily_medium, actor=SIR)
    parent, spawner = new_task(project, "low"), by or new_agent("alice", project=project)
    claim(parent, spawner)
    set_status(parent, spawner, "working")
    child = NewChild(text="分析 user-service 的性能瓶颈并给出优化建议")
    made = spawn_task(task_id=parent.pk, child=child, agent=spawner, actor=actor_of(spawner))
    assert fresh(made).complexity == "medium"
    return fresh(made), spawner


def handshake_of(task: Task) -> Handshake:
    """The newest intent of a task."""
    return Handshake.objects.filter(task=task).latest("pk")


def lease_of(task: Task) -> Assignment:
    """The newest executor's assignment of a task."""
    return Assignment.objects.filter(task=task, seat="executor").latest("pk")


def ack(intent: Mail, agent: Agent, status: str = "confirmed", **rest: Any) -> Mail:
    """Answer an intent as an agent."""
    fields = {"type": MailType.INTENT_ACK, "message_id": f"ack-{uuid4()}", "status": status}
    return post(MailInput(**{**fields, **rest}), agent, answered=intent)


def mail(kind: str, content: str = "text", **rest: Any) -> MailInput:
    """Write a mail of a type."""
    fields = {"type": kind, "message_id": f"m-{uuid4()}", "content": content, **rest}
    return MailInput.model_validate(fields)


def disagreement(project: Project, task: Task) -> Conversation:
    """Let two agents use up the rounds of a negotiation."""
    pair = [new_agent(f"left-{task.pk}"), new_agent(f"right-{task.pk}")]
    opening = mail("request", "plan 1", to=pair[1].name, mode="negotiation")
    last = post(opening, pair[0], task=task, project=project)
    for n in range(2, 7):
        last = post(mail("reply", f"plan {n}"), pair[(n - 1) % 2], answered=last)
    assert last.round == 5
    return Conversation.objects.get(pk=last.conversation_id)


def write(
    task: Task, agent: Agent, content: str, seen: int | None, *, name: str = "design"
) -> tuple[int, bool]:
    """Write a version of a shared document as an agent."""
    version, is_new = write_shared_document(
        task_id=task.pk,
        name=name,
        document=SharedDocumentInput(content=content),
        seen_version=seen,
        actor=actor_of(agent),
    )
    return version.version, is_new


def asked(project: Project) -> tuple[Task, Decision]:
    """A medium task whose executor asked a question, and the decision about it."""
    task, agent = new_task(project), new_agent("bob")
    claim(task, agent)
    confirm_intent(task, agent, questions=["Which period?"])
    return task, open_decision_of(project, "clarification")
