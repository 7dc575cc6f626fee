"""Mail, handshakes, negotiations and shared documents as lines of a page.

Source: UI.md section 5.5 (compact lists), DESIGN section 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.engine_texts import engine_words, who_words
from dashboard.http import DashboardRequest
from dashboard.vocabulary import WAITING, Label, Role
from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.models import Handshake, Mail, Project, SharedDocument, Task
from orchestration.selectors.mail import list_shared_documents, list_task_mail
from orchestration.services.negotiation import MAX_ROUNDS
from orchestration.states import HandshakeStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

H = HandshakeStatus
HANDSHAKE_LABELS: Mapping[HandshakeStatus, Label] = {
    H.AWAITING_SPAWNER: Label("progress", _("Waits for who spawned it"), Role.BLUE),
    H.AWAITING_AUDITOR: Label("progress", _("Waits for the auditor"), Role.BLUE),
    H.AWAITING_SIR: WAITING,
    H.CONFIRMED: Label("circle-check", pgettext_lazy("intent", "Confirmed"), Role.GREEN),
    H.CONFIRMED_WITH_CORRECTION: Label(
        "pencil", pgettext_lazy("intent", "Confirmed with a correction"), Role.INK
    ),
    H.REJECTED: Label("circle-x", pgettext_lazy("intent", "Rejected"), Role.RED),
    H.VOID: Label("ban", pgettext_lazy("intent", "Void"), Role.GREY),
}
TYPE_WORDS: Mapping[MailType, str | StrPromise] = {
    MailType.INFORM: pgettext_lazy("mail", "notice"),
    MailType.REQUEST: pgettext_lazy("mail", "request"),
    MailType.REPLY: pgettext_lazy("mail", "reply"),
    MailType.TASK_REQUEST: pgettext_lazy("mail", "task"),
    MailType.INTENT_CONFIRMATION: pgettext_lazy("mail", "what it understood"),
    MailType.INTENT_ACK: pgettext_lazy("mail", "answer to it"),
    MailType.EXECUTION_START: pgettext_lazy("mail", "starts"),
}
MODE_WORDS: Mapping[ConversationMode, str | StrPromise] = {
    ConversationMode.QUERY: pgettext_lazy("mail", "query"),
    ConversationMode.DELEGATION: pgettext_lazy("mail", "delegation"),
    ConversationMode.CO_CREATION: pgettext_lazy("mail", "co-creation"),
}
FIELD_WORDS: Mapping[str, str | StrPromise] = {
    "scope": pgettext_lazy("intent", "Scope"),
    "approach": pgettext_lazy("intent", "Approach"),
    "output_format": pgettext_lazy("intent", "Output"),
    "assumptions": pgettext_lazy("intent", "Assumptions"),
    "questions": pgettext_lazy("intent", "Questions"),
    "corrections": pgettext_lazy("intent", "Corrections"),
    "expected_output": pgettext_lazy("intent", "Output"),
}
"""Fields of the handshake, in the order in which they are read."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of an intent or its answer. Shape: `texts` has at least one."""

    word: str
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail of a task."""

    id: int
    step_key: str
    sender: str
    to: str
    kind: str
    mode: str
    text: str
    fields: Sequence[FieldLine]
    label: Label | None
    at: datetime


def field_lines(details: Mapping[str, Any]) -> list[FieldLine]:
    """The fields of an intent, an answer or a start that say something."""
    lines = []
    for name, word in FIELD_WORDS.items():
        held = details.get(name) or ()
        texts = [held] if isinstance(held, str) else [str(one) for one in held]
        if texts:
            lines.append(FieldLine(str(word), texts))
    return lines


def person(name: str) -> str:
    """Say who an address is: the name without what kind of actor it is."""
    return who_words(name.partition(":")[2] or name)


def _line(mail: Mail) -> MailLine:
    handshake: Handshake | None = getattr(mail, "handshake", None)
    label = HANDSHAKE_LABELS[H(handshake.status)] if handshake is not None else None
    status = mail.details.get("status")
    if mail.type == MailType.INTENT_ACK and status in tuple(H):
        label = HANDSHAKE_LABELS[H(status)]
    names = [person(one.name) for one in mail.recipients.all()]
    shown = ", ".join(names[:3])
    if len(names) > 3:
        shown = gettext("%(names)s and %(n)s more") % {"names": shown, "n": len(names) - 3}
    return MailLine(
        id=mail.pk,
        step_key=mail.task.step_key if mail.task is not None else "",
        sender=person(mail.sender),
        to=shown,
        kind=str(TYPE_WORDS[MailType(mail.type)]),
        mode=_mode_words(mail),
        text=engine_words(mail.text),
        fields=field_lines(mail.details),
        label=label,
        at=mail.created_at,
    )


def _mode_words(mail: Mail) -> str:
    if mail.conversation.mode == ConversationMode.NEGOTIATION:
        if not mail.round:
            return gettext("negotiation")
        words = {"n": mail.round, "all": MAX_ROUNDS}
        if mail.details.get("accept"):
            return gettext("negotiation, accepts round %(n)s/%(all)s") % words
        return gettext("negotiation, round %(n)s/%(all)s") % words
    return str(MODE_WORDS.get(ConversationMode(mail.conversation.mode), ""))


def mail_part(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    """What the mail part of a task's page shows."""
    rows, total = list_task_mail(found)
    documents: Sequence[SharedDocument] = list_shared_documents(found)
    return {
        "mail_lines": [_line(one) for one in rows],
        "mail_total": total,
        "shared_documents": documents,
    }


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One message of a negotiation on its card."""

    number: int
    by: str
    text: str
    stands: bool


def round_lines(content: Mapping[str, Any]) -> list[RoundLine]:
    """The messages of the negotiation that a decision is about."""
    return [
        RoundLine(
            int(one.get("round", 0)),
            str(one.get("by", "")),
            str(one.get("text", "")),
            bool(one.get("stands")),
        )
        for one in content.get("rounds", ())
        if isinstance(one, Mapping)
    ]


def intent_lines(content: Mapping[str, Any]) -> list[FieldLine]:
    """What the agent understood, and why the question comes to Sir, for the card."""
    if not isinstance(content.get("understanding"), Mapping):
        return []
    lines = field_lines(content["understanding"])
    scope = [str(one) for one in content.get("scope", ())]
    if scope:
        lines.append(FieldLine(gettext("Scope of the task"), scope))
    why = [engine_words(one) for one in str(content.get("detail", "")).split("; ") if one]
    return [*lines, FieldLine(gettext("Why you"), why)] if why else lines
