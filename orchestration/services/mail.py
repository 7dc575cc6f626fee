"""Store mail and find whom it is for. What a mail does beyond that is `services.mesh`.

Source: DESIGN section 12 ("Mail envelope"), FORMATS ("Mesh message").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from orchestration.contracts.mail import EVERYBODY
from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.errors import Fault, Invalid, MessageConflict
from orchestration.models import (
    Agent,
    Comment,
    Conversation,
    Mail,
    MailRecipient,
    Project,
    Task,
)
from orchestration.rules.mesh import infer_complexity, mention_candidates, mentioned
from orchestration.services.work import Work, locked
from orchestration.states import Complexity

AGENT_PREFIX, HUMAN_PREFIX = "agent:", "human:"
ANSWERED = frozenset({MailType.REQUEST, MailType.TASK_REQUEST, MailType.INTENT_CONFIRMATION})
"""Types that wait for a reply. An `inform` expects none and creates none."""


@dataclass(frozen=True, slots=True)
class Address:
    """Somebody a mail is for. Shape: `name` is an actor's name (`agent:bob`, `human:sir`)."""

    name: str
    agent: Agent | None = None


@dataclass(slots=True)
class Letter:
    """A mail before it is stored. Shape: without a `message_id` the system gives one."""

    project: Project
    type: MailType
    sender: str
    to: Sequence[Address] = ()
    task: Task | None = None
    sender_agent: Agent | None = None
    message_id: str = ""
    digest: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    assertions: list[dict[str, Any]] = field(default_factory=list)
    in_reply_to: Mail | None = None
    mode: ConversationMode = ConversationMode.PLAIN
    complexity: Complexity | None = None

    @property
    def text(self) -> str:
        """Everything that was written."""
        return "\n\n".join(str(part["text"]) for part in self.parts if "text" in part)


def store_mail(work: Work, letter: Letter) -> Mail:
    """Store one mail with its recipients; it continues the conversation of what it answers.

    Complexity: the one that was named, else the conversation's, else its task's, else by rule
    from the text.
    Errors: MessageConflict when the `message_id` is taken; nothing may be written after that.
    Locks: the recipients' rows in id order, so that a mailbox fills in the order of its ids.
    """
    agents = sorted(one.agent.pk for one in letter.to if one.agent is not None)
    list(locked(Agent.objects.filter(pk__in=agents)).order_by("pk").values_list("pk"))
    conversation = _conversation(work, letter)
    mail = Mail(
        project=letter.project,
        task=letter.task or conversation.task,
        conversation=conversation,
        message_id=letter.message_id or f"system-{uuid4()}",
        digest=letter.digest,
        type=letter.type.value,
        sender=letter.sender,
        sender_agent=letter.sender_agent,
        in_reply_to=letter.in_reply_to,
        parts=letter.parts,
        metadata=dict(letter.metadata),
        details=dict(letter.details),
        assertions=letter.assertions,
        complexity=letter.complexity or conversation.complexity,
        expects_reply=letter.type in ANSWERED,
        created_at=work.now,
    )
    try:
        with transaction.atomic():
            mail.save(force_insert=True)
    except IntegrityError:
        raise MessageConflict("This message_id is taken.") from None
    MailRecipient.objects.bulk_create(
        MailRecipient(mail=mail, name=one.name, agent=one.agent) for one in letter.to
    )
    _record(work, mail, letter.to)
    return mail


def _conversation(work: Work, letter: Letter) -> Conversation:
    if letter.in_reply_to is not None:
        return letter.in_reply_to.conversation
    letter.complexity = letter.complexity or _complexity_of(letter)
    return Conversation.objects.create(
        project=letter.project,
        task=letter.task,
        mode=letter.mode.value,
        complexity=letter.complexity.value,
        created_at=work.now,
    )


def _complexity_of(letter: Letter) -> Complexity:
    """That of the task the mail is about, else what the rule finds in the text.

    What is delegated is a task of its own.
    """
    about = None if letter.mode is ConversationMode.DELEGATION else letter.task
    known = about.complexity if about is not None else ""
    return Complexity(known) if known else infer_complexity(letter.text)


def _record(work: Work, mail: Mail, to: Sequence[Address]) -> None:
    work.record(
        "mail.sent",
        subject=f"mail:{mail.pk}",
        project_id=mail.project_id,
        task_id=mail.task_id,
        after={
            "type": mail.type,
            "message_id": mail.message_id,
            "sender": mail.sender,
            "to": [one.name for one in to],
            "complexity": mail.complexity,
        },
    )
    if mail.task_id is not None:
        work.hint(f"task:{mail.task_id}", mail.project_id)
    work.hint(f"project:{mail.project_id}", mail.project_id)


def project_agents(project: Project) -> QuerySet[Agent]:
    """List the agents that see a project and whose token holds."""
    rows = Agent.objects.filter(revoked_at__isnull=True)
    return rows.filter(Q(projects=project) | Q(projects__isnull=True)).distinct()


def find_addresses(
    project: Project, names: Sequence[str], *, sender: str, field_name: str = "to"
) -> list[Address]:
    """Find whom names mean: an agent of the project, `human:NAME`, or `*` for every agent.

    Errors: Invalid naming everyone who cannot be reached, or a mail to oneself.
    """
    if EVERYBODY in names:
        rows = project_agents(project).order_by("pk")
        everybody = [Address(f"{AGENT_PREFIX}{one.name}", one) for one in rows]
        return [one for one in everybody if one.name != sender]
    wanted = list(dict.fromkeys(names))
    plain = [name.removeprefix(AGENT_PREFIX) for name in wanted]
    agents = {one.name: one for one in project_agents(project).filter(name__in=plain)}
    found: list[Address] = []
    faults: list[Fault] = []
    for at, name in enumerate(wanted):
        address = _address(name, agents)
        if address is None:
            message = f"{name!r} is nobody in this project"
            faults.append(Fault(path=f"{field_name}.{at}", message=message))
        elif address.name == sender:
            faults.append(Fault(path=f"{field_name}.{at}", message="is the sender"))
        elif address not in found:
            found.append(address)
    if faults:
        raise Invalid("The mail has nowhere to go.", errors=faults)
    return found


def _address(name: str, agents: Mapping[str, Agent]) -> Address | None:
    if name.startswith(HUMAN_PREFIX):
        username = name.removeprefix(HUMAN_PREFIX)
        rows = get_user_model().objects.filter(
            username=username, is_active=True, groups__name__in=("sir", "viewer")
        )
        return Address(name) if rows.exists() else None
    agent = agents.get(name.removeprefix(AGENT_PREFIX))
    return Address(f"{AGENT_PREFIX}{agent.name}", agent) if agent is not None else None


def sender_address(mail: Mail) -> list[Address]:
    """Give the address a reply goes to; the system reads no mail."""
    if mail.sender_agent is not None or mail.sender.startswith(HUMAN_PREFIX):
        return [Address(mail.sender, mail.sender_agent)]
    return []


def mail_mentions(work: Work, task: Task, comment: Comment) -> Mail | None:
    """Send a comment to the agents that it mentions, as one `inform`. Return the mail, if any.

    Only agents that see the project are found; nobody is told of a comment of their own.
    """
    candidates = mention_candidates(comment.body)
    if not candidates:
        return None
    agents = {one.name: one for one in project_agents(task.project).filter(name__in=candidates)}
    names = mentioned(comment.body, agents)
    to = [
        Address(f"{AGENT_PREFIX}{name}", agents[name])
        for name in names
        if agents[name].pk != comment.agent_id
    ]
    if not to:
        return None
    by_agent = comment.agent is not None
    letter = Letter(
        project=task.project,
        task=task,
        type=MailType.INFORM,
        sender=f"{AGENT_PREFIX}{comment.author}" if by_agent else work.actor.name,
        sender_agent=comment.agent,
        to=to,
        parts=[{"text": comment.body}],
        details={"comment": str(comment.pk), "comment_type": comment.comment_type},
    )
    return store_mail(work, letter)
