"""The one door for mail: check it by its type, store it, and do what it says.

The sender is whoever's token it was; the same `message_id` with the same body does nothing twice,
with another body it is refused.
Source: DESIGN section 12, FORMATS ("Mesh message"), source document 003.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orchestration.broadcast import AGENTS_TOPIC
from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.errors import Conflict, Forbidden, MessageConflict
from orchestration.models import Mail, Task
from orchestration.services.handshake_mail import send_ack, send_intent, send_start
from orchestration.services.holding import lock_writable_project
from orchestration.services.mail import Address, find_addresses, sender_address, store_mail
from orchestration.services.moves import move_conversation
from orchestration.services.negotiation import (
    answer_round,
    lock_conversation,
    open_negotiation,
    require_turn,
)
from orchestration.services.posts import Post, letter_of, missing
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.spawning import NewChild, spawn_within
from orchestration.services.tasks import lock_with_parent
from orchestration.services.work import Work, unit_of_work
from orchestration.states import AssignmentStatus, ConversationStatus, Seat, TaskStatus

OPENERS: Mapping[ConversationMode, MailType] = {
    ConversationMode.QUERY: MailType.REQUEST,
    ConversationMode.NEGOTIATION: MailType.REQUEST,
    ConversationMode.DELEGATION: MailType.TASK_REQUEST,
}
"""The type that a mode begins with; co-creation begins with any."""
PAIRS = frozenset({ConversationMode.QUERY, ConversationMode.NEGOTIATION})
ON_A_TASK = frozenset({ConversationMode.NEGOTIATION, ConversationMode.CO_CREATION})


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a mail. `is_repeat` marks the identical repeat of the one that stands."""

    mail: Mail
    is_repeat: bool


def send_mail(post: Post) -> Sent:
    """Send one mail and do what its type says, in one transaction.

    Errors: MessageConflict for another body under a known `message_id`; Invalid naming what is
    missing; Conflict for a reply that nothing waits for, and in a project that is archived or in
    safe stop; those of the handshake and of the lease.
    Locks: project, then as the type does.
    """
    standing = _standing(post)
    if standing is not None:
        return standing
    try:
        return Sent(_send(post), is_repeat=False)
    except MessageConflict:
        # Somebody was faster with this id, perhaps the same caller in another process.
        standing = _standing(post)
        if standing is None:
            raise
        return standing


def _standing(post: Post) -> Sent | None:
    """Find the mail that stands under this id. Errors: MessageConflict when it is another."""
    rows = Mail.objects.select_related("conversation", "task", "project", "sender_agent")
    found = rows.filter(project=post.project, message_id=post.document.message_id).first()
    if found is None:
        return None
    if found.sender == post.actor.name and found.digest == post.digest:
        return Sent(found, is_repeat=True)
    raise MessageConflict("Another mail was sent under this message_id.")


@retry_on_deadlock
def _send(post: Post) -> Mail:
    with unit_of_work(post.actor) as work:
        lock_writable_project(post.project.pk)
        return SENDERS[post.document.type](work, post)


def _require_words(post: Post) -> None:
    if not post.document.stored_parts:
        raise missing(("content", "a mail has content or parts"))


def _addressed(post: Post) -> list[Address]:
    """Find whom a mail names. Errors: Invalid without anybody."""
    if not post.document.to:
        raise missing(("to", "is required"))
    found = find_addresses(post.project, post.document.to, sender=post.actor.name)
    if not found:
        raise missing(("to", "there is nobody else in this project"))
    return found


def _send_plain(work: Work, post: Post) -> Mail:
    """Send an inform, a request or a task_request; it may open a conversation of a mode."""
    _require_words(post)
    mode = _opened_mode(post)
    if mode is ConversationMode.DELEGATION and post.task is None:
        post = replace(post, task=_only_work(post))
    _require_mode(post)
    to = _addressed(post)
    if mode in PAIRS and len(to) != 1:
        raise missing(("to", f"a {mode} is with exactly one"))
    letter = letter_of(post, to)
    letter.mode = mode or letter.mode
    if mode is ConversationMode.DELEGATION and post.answered is None:
        letter.task = _delegate(work, post)
    mail = store_mail(work, letter)
    if mode is ConversationMode.NEGOTIATION:
        open_negotiation(work, mail)
    return mail


def _opened_mode(post: Post) -> ConversationMode | None:
    """Say which mode a mail opens: a task_request that names none delegates."""
    named = post.document.mode
    opens = named is None and post.answered is None
    is_task = post.document.type is MailType.TASK_REQUEST
    return ConversationMode.DELEGATION if opens and is_task else named


def _only_work(post: Post) -> Task | None:
    """Find the one task that a sender works on in the project, or None."""
    rows = Task.objects.select_related("project").filter(
        project=post.project,
        status=TaskStatus.WORKING.value,
        assignments__agent=post.agent,
        assignments__seat=Seat.EXECUTOR.value,
        assignments__status=AssignmentStatus.LEASED.value,
    )
    found = list(rows[:2]) if post.agent is not None else []
    return found[0] if len(found) == 1 else None


def _delegate(work: Work, post: Post) -> Task | None:
    """Spawn the delegated work below the task that its sender works on.

    Whoever does not work on the task delegates the task itself: it is offered already.
    """
    task, agent = post.task, post.agent
    if task is None or agent is None:
        return task
    leases = task.assignments.filter(
        agent=agent, seat=Seat.EXECUTOR.value, status=AssignmentStatus.LEASED.value
    )
    if not leases.exists():
        return task
    document = post.document
    child = NewChild(text=document.text, scope=document.scope, hint=document.hint)
    return spawn_within(work, task.pk, child, agent, lease_token=post.lease_token)


def _require_mode(post: Post) -> None:
    """Raise where a mail does not fit the mode it names or continues. Errors: Invalid."""
    document, answered = post.document, post.answered
    if answered is not None:
        if document.mode is not None and document.mode != answered.conversation.mode:
            raise missing(("mode", f"this conversation is {answered.conversation.mode}"))
        if answered.conversation.mode in PAIRS:
            raise missing(("type", f"a {answered.conversation.mode} goes on with a reply"))
        return
    mode = _opened_mode(post) or ConversationMode.PLAIN
    opener = OPENERS.get(mode)
    if opener is not None and document.type is not opener:
        raise missing(("type", f"a {mode} begins with a {opener}"))
    if (mode in ON_A_TASK or mode is ConversationMode.DELEGATION) and post.task is None:
        raise missing(("task", f"a {mode} is about a task"))


def _send_reply(work: Work, post: Post) -> Mail:
    """Reply to a mail that expects it. Errors: Conflict where none does."""
    answered = post.answered
    if answered is None:
        raise missing(("in_reply_to", "is required"))
    _require_mode_of_reply(post, answered)
    if answered.conversation.mode == ConversationMode.NEGOTIATION:
        return _send_round(work, post, answered)
    _require_words(post)
    if not answered.expects_reply:
        raise Conflict(f"an {answered.type} expects no reply", code="no_reply_expected")
    if answered.type == MailType.INTENT_CONFIRMATION:
        raise missing(("type", "an intent_confirmation is answered by an intent_ack"))
    if not answered.recipients.filter(name=post.actor.name).exists():
        raise Forbidden("Only whom a mail is for replies to it.", code="not_a_participant")
    is_query = answered.conversation.mode == ConversationMode.QUERY
    conversation = lock_conversation(answered.conversation_id, None) if is_query else None
    if conversation is not None and conversation.status != ConversationStatus.OPEN:
        raise Conflict("This query was answered.", code="conversation_closed")
    mail = store_mail(work, letter_of(post, _reply_to(post, answered)))
    if conversation is not None:
        move_conversation(work, conversation, ConversationStatus.CLOSED, why="answered")
    # Whoever waits for this reply looks again.
    work.hint(AGENTS_TOPIC, None)
    return mail


def _require_mode_of_reply(post: Post, answered: Mail) -> None:
    mode = post.document.mode
    if mode is not None and mode != answered.conversation.mode:
        raise missing(("mode", f"this conversation is {answered.conversation.mode}"))


def _reply_to(post: Post, answered: Mail) -> list[Address]:
    if post.document.to:
        return _addressed(post)
    return [one for one in sender_address(answered) if one.name != post.actor.name]


def _send_round(work: Work, post: Post, answered: Mail) -> Mail:
    """Answer a proposal: accept it, or make the next one."""
    accepts = post.document.accept
    if not accepts:
        _require_words(post)
    task = lock_with_parent(answered.task_id) if answered.task_id is not None else None
    conversation = lock_conversation(answered.conversation_id, task)
    to = require_turn(conversation, answered, post.actor.name, accepts=accepts)
    answered.conversation = conversation
    mail = store_mail(work, letter_of(post, to, details={"accept": True} if accepts else {}))
    answer_round(work, conversation, mail, accepts=accepts)
    work.hint(AGENTS_TOPIC, None)
    return mail


SENDERS: Mapping[MailType, Callable[[Work, Post], Mail]] = {
    MailType.INFORM: _send_plain,
    MailType.REQUEST: _send_plain,
    MailType.TASK_REQUEST: _send_plain,
    MailType.REPLY: _send_reply,
    MailType.INTENT_CONFIRMATION: send_intent,
    MailType.INTENT_ACK: send_ack,
    MailType.EXECUTION_START: send_start,
}
