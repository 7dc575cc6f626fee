"""Negotiation: numbered rounds, each answers the last, until both accept or Sir decides.

Source: DESIGN section 12 ("Modes").
"""

from __future__ import annotations

from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import CommentInput
from orchestration.errors import Conflict, Forbidden
from orchestration.models import Conversation, Decision, Mail, Task
from orchestration.services.inbox import open_decision, open_decisions
from orchestration.services.mail import Address, Letter, store_mail
from orchestration.services.moves import move_conversation
from orchestration.services.outputs import add_comment
from orchestration.services.work import Work, locked
from orchestration.states import ConversationStatus, DecisionKind

MAX_ROUNDS = 5
NEGOTIATION = "negotiation"
"""`reason` of a clarification that is about a negotiation, and key of its id in it."""
QUESTION = "Two agents do not agree. Does the last proposal stand?"


def open_negotiation(work: Work, mail: Mail) -> None:
    """Make the first mail the first proposal."""
    conversation = mail.conversation
    conversation.round, conversation.proposal = 1, mail
    mail.round = 1
    work.touch(conversation, "round", "proposal")
    work.touch(mail, "round")


def lock_conversation(conversation_id: int, task: Task | None) -> Conversation:
    """Lock a conversation, after its task."""
    rows = Conversation.objects.select_related("proposal__sender_agent", "project")
    conversation: Conversation = locked(rows.filter(pk=conversation_id)).get()
    if task is not None:
        conversation.task = task
    return conversation


def participants(conversation: Conversation) -> list[Address]:
    """List the two that negotiate: who opened it, and whom it was opened with."""
    first = Mail.objects.select_related("sender_agent").filter(conversation=conversation)
    mail = first.order_by("pk")[0]
    others = mail.recipients.select_related("agent")
    return [
        Address(mail.sender, mail.sender_agent),
        *(Address(one.name, one.agent) for one in others),
    ]


def require_turn(
    conversation: Conversation, answered: Mail, sender: str, *, accepts: bool
) -> list[Address]:
    """Return the other side where the sender may answer now.

    Errors: Forbidden for an outsider; Conflict when it is over, when the mail answers another than
    the last proposal, or when the other side's answer is due.
    """
    both = participants(conversation)
    if sender not in [one.name for one in both]:
        raise Forbidden("Only the two that negotiate answer here.", code="not_a_participant")
    if conversation.status != ConversationStatus.OPEN:
        raise Conflict("This negotiation is over.", code="conversation_closed")
    proposal = conversation.proposal
    if proposal is None or answered.pk != proposal.pk:
        raise Conflict(
            "Each round answers the last proposal.",
            code="not_the_last",
            message_id=proposal.message_id if proposal is not None else None,
        )
    if not accepts and proposal.sender == sender:
        raise Conflict("The other side answers first.", code="not_your_turn")
    if accepts and sender in conversation.accepted_by:
        raise Conflict("You accepted this proposal already.", code="not_your_turn")
    return [one for one in both if one.name != sender]


def answer_round(work: Work, conversation: Conversation, mail: Mail, *, accepts: bool) -> None:
    """Take one answer: an acceptance, the next proposal, or an objection to the last one allowed.

    Locks: expects the conversation locked, after its task.
    """
    if accepts:
        conversation.accepted_by = [*conversation.accepted_by, mail.sender]
        work.touch(conversation, "accepted_by")
    elif conversation.round < MAX_ROUNDS:
        conversation.round += 1
        conversation.proposal = mail
        conversation.accepted_by = []
        work.touch(conversation, "round", "proposal", "accepted_by")
    mail.round = conversation.round
    work.touch(mail, "round")
    if accepts:
        both = {one.name for one in participants(conversation)}
        if both <= set(conversation.accepted_by) and conversation.proposal is not None:
            _conclude(work, conversation, conversation.proposal.text, why="both accept")
    elif mail.pk != conversation.proposal_id:
        move_conversation(
            work, conversation, ConversationStatus.AWAITING_SIR, why="no agreement in time"
        )
        work.flush()
        ask_about_negotiation(work, conversation)


def _conclude(work: Work, conversation: Conversation, outcome: str, *, why: str) -> None:
    """Close a negotiation; its result is a comment on the task."""
    conversation.outcome = outcome
    work.touch(conversation, "outcome")
    move_conversation(work, conversation, ConversationStatus.CLOSED, why=why)
    task = conversation.task
    if task is None:
        return
    names = " · ".join(one.name.partition(":")[2] for one in participants(conversation))
    body = f"{names}, {conversation.round}/{MAX_ROUNDS}: {why}\n\n{outcome}"
    with work.as_system():
        add_comment(work, task, CommentInput(body=body), author="negotiation", mentions=False)


def ask_about_negotiation(work: Work, conversation: Conversation) -> bool:
    """Open the `clarification` of a negotiation, unless another of the task stands.

    Return whether it was opened.
    """
    task = conversation.task
    if task is None or open_decisions(task=task, kind=DecisionKind.CLARIFICATION):
        return False
    rounds = [
        {
            "round": mail.round,
            "by": mail.sender.partition(":")[2],
            "text": mail.text[:8000],
            "stands": mail.pk == conversation.proposal_id,
        }
        for mail in conversation.mail.order_by("pk")[:50]
    ]
    with work.as_system():
        open_decision(
            work,
            kind=DecisionKind.CLARIFICATION,
            project=task.project,
            task=task,
            title=task.title,
            question=QUESTION,
            content={
                "reason": NEGOTIATION,
                NEGOTIATION: str(conversation.pk),
                "rounds": rounds,
                "description": task.description,
            },
            params={"about": "negotiation"},
        )
    return True


def answer_negotiation(work: Work, decision: Decision, verdict: str) -> None:
    """Let Sir's word end a negotiation: the last proposal, his own text, or no agreement.

    Locks: the conversation, after its task; expects task and decision locked.
    """
    conversation = lock_conversation(int(decision.content[NEGOTIATION]), decision.task)
    proposal = conversation.proposal.text if conversation.proposal is not None else ""
    if verdict == "confirmed":
        outcome, why = proposal, "Sir confirmed the last proposal"
    elif verdict == "rejected":
        outcome, why = decision.reason, "Sir confirmed no proposal"
    else:
        outcome, why = decision.reason, "Sir decided otherwise"
    _conclude(work, conversation, outcome, why=why)
    letter = Letter(
        project=conversation.project,
        task=conversation.task,
        type=MailType.INFORM,
        sender=work.actor.name,
        to=participants(conversation),
        parts=[{"text": f"{why}\n\n{outcome}"}],
        details={"verdict": verdict},
        in_reply_to=conversation.proposal,
    )
    store_mail(work, letter)
