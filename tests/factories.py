"""Readable set-ups for tests: projects, agents, people, plans, and a driver for the engine.

Everything goes through the product's own services, so a set-up is also a use of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User

from orchestration.contracts.mail import MailInput
from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.models import Agent, Assignment, Decision, Mail, Project, Task
from orchestration.rules.scoring import COLLABORATION
from orchestration.services.agents import create_agent
from orchestration.services.decisions import Outcome, Verdict, decide_decision
from orchestration.services.intake import NewTask, create_task
from orchestration.services.mesh import send_mail
from orchestration.services.posts import Post
from orchestration.services.projects import create_project
from orchestration.services.tasks import (
    StatusChange,
    add_task_comment,
    add_task_output,
    change_status,
    claim_task,
)
from orchestration.services.work import SYSTEM, Actor, Slot
from orchestration.services.working import work_until_idle
from orchestration.states import CommentType, Complexity, DecisionStatus

SLOT = Slot("test:0:0")
Step = dict[str, Any]


def new_project(slug: str = "", *, policy: Mapping[str, Any] | None = None) -> Project:
    """Create a project with a workspace of its own."""
    return create_project(slug=slug or f"p-{uuid4().hex[:10]}", actor=SYSTEM, policy=policy)


def new_sir(username: str = "sir") -> User:
    """Create (or find) a person who decides."""
    user, _ = get_user_model().objects.get_or_create(username=username)
    user.groups.add(Group.objects.get_or_create(name="sir")[0])
    return user


def new_agent(
    name: str = "",
    *,
    project: Project | None = None,
    scopes: Sequence[str] = ("observe", "execute", "plan", "review", "orchestrate"),
) -> Agent:
    """Create an agent that may work in one project, or in all."""
    agent, _ = create_agent(
        name=name or f"agent-{uuid4().hex[:8]}",
        scopes=tuple(scopes),
        projects=[project] if project is not None else [],
        actor=SYSTEM,
    )
    return agent


def step(
    key: str, *, run: Sequence[str] = ("true",), after: Sequence[str] = (), **rest: Any
) -> Step:
    """Write one step of a plan; without `run` it waits for an agent."""
    document: Step = {"id": key, "action": f"do {key}", "depends_on": list(after), **rest}
    if run:
        document["run"] = list(run)
    return document


def agent_step(key: str, *, after: Sequence[str] = (), **rest: Any) -> Step:
    """Write a step that an agent has to execute."""
    return step(key, run=(), after=after, delegate=False, **rest)


def submit_plan(
    project: Project,
    *steps: Step,
    is_trusted: bool = True,
    text: str = "a planned task",
    **rest: Any,
) -> Task:
    """Create a root task with a ready plan."""
    plan = {"summary": text, "steps": list(steps)}
    new = NewTask(text=text, plan=plan, is_trusted=is_trusted, **rest)
    return create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))


def drive(project: Project | None = None) -> int:
    """Let our own workers run until nothing is queued for them."""
    count = 0
    while True:
        done = work_until_idle(
            SLOT, slice_seconds=120, project_id=project.pk if project is not None else None
        )
        if not done:
            return count
        count += done


def child(root: Task, key: str) -> Task:
    """Read a step of a task afresh, by its key."""
    return Task.objects.get(parent=root, step_key=key, is_superseded=False)


def fresh(task: Task) -> Task:
    """Read a task afresh."""
    return Task.objects.select_related("project", "parent", "root").get(pk=task.pk)


def open_decision_of(project: Project, kind: str = "") -> Decision:
    """Read the one open decision of a project (of a kind)."""
    rows = Decision.objects.filter(project=project, status=DecisionStatus.OPEN.value)
    return rows.get(kind=kind) if kind else rows.get()


def decide(
    decision: Decision,
    verdict: str,
    *,
    reason: str = "",
    user: User | None = None,
    payload: Mapping[str, Any] | None = None,
) -> Outcome:
    """Give a verdict as Sir, on exactly what is stored."""
    person = user or new_sir()
    return decide_decision(
        decision_id=decision.pk,
        verdict=Verdict(verdict, decision.version, decision.digest, reason, payload),
        actor=Actor(f"human:{person.get_username()}"),
        user_id=person.pk,
    )


def actor_of(agent: Agent) -> Actor:
    """The actor an agent is."""
    return Actor(f"agent:{agent.name}")


def claim(task: Task, agent: Agent) -> Assignment:
    """Claim a task for an agent."""
    return claim_task(known=task, agent=agent, actor=actor_of(agent))


def set_status(task: Task, agent: Agent, status: str, **rest: Any) -> Task:
    """Change a task's status as its assignee."""
    change = StatusChange(status=status, **rest)
    return change_status(task_id=task.pk, change=change, agent=agent, actor=actor_of(agent))


def confirm_intent(
    task: Task,
    agent: Agent,
    *,
    questions: Sequence[str] = (),
    scope: Sequence[str] = ("as asked",),
    message_id: str = "",
    **rest: Any,
) -> Mail:
    """Put up what an agent understood of its claimed task; without questions rules confirm it."""
    document = MailInput(
        type=MailType.INTENT_CONFIRMATION,
        message_id=message_id or f"intent-{uuid4()}",
        scope=tuple(scope),
        approach="step by step",
        questions=tuple(questions),
        **rest,
    )
    return post(document, agent, task=task)


def post(
    document: MailInput,
    agent: Agent,
    *,
    task: Task | None = None,
    answered: Mail | None = None,
    project: Project | None = None,
) -> Mail:
    """Send a mail as an agent."""
    about = task or (answered.task if answered is not None else None)
    known = answered.project if answered is not None else None
    home = project or (about.project if about is not None else known)
    assert home is not None
    letter = Post(document, actor_of(agent), agent, home, task=about, answered=answered)
    return send_mail(letter).mail


def start(task: Task, agent: Agent) -> None:
    """Begin a claimed task; where its complexity asks for it, after the handshake."""
    mode = COLLABORATION[Complexity(fresh(task).complexity or Complexity.LOW)]
    if mode.handshake:
        confirm_intent(task, agent, scope=task.scope or ("as asked",))
    set_status(task, agent, "working")


def hand_in(task: Task, agent: Agent, content: str = "the work") -> None:
    """Hand in an output and a hand-off."""
    document = OutputInput(title="work", content=content)
    add_task_output(
        task_id=task.pk,
        document=document,
        data=content.encode(),
        agent=agent,
        actor=actor_of(agent),
    )
    comment = CommentInput(comment_type=CommentType.HANDOFF, body="done; nothing open")
    add_task_comment(task_id=task.pk, document=comment, agent=agent, actor=actor_of(agent))


def execute(task: Task, agent: Agent, content: str = "the work") -> None:
    """Do a whole step as an agent: claim, work, hand in, review."""
    claim(task, agent)
    start(task, agent)
    hand_in(task, agent, content)
    set_status(task, agent, "review")
