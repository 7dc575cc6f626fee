"""What people and agents said about a task, as its prompt tells it: each with whose words it is.

Source: DESIGN section 12 (L2c), FORMATS ("prompt caps").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from orchestration.models import Agent, Assignment, Comment, Decision, Handshake, Mail, Task
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_rows
from orchestration.rules.prompt_facts import Mailbox, Said
from orchestration.selectors.predecessors import comment_author
from orchestration.states import DecisionStatus, HandshakeStatus

SHOWN_COMMENTS, SHOWN_ANSWERS, SHOWN_CORRECTIONS, SHOWN_MAIL = 30, 10, 10, 5
SYSTEM = "system"


def json_text(value: object) -> str:
    """Write JSON as a person reads it; keys in one order, since PostgreSQL keeps none."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


def evidence_text(value: object) -> str:
    """Write evidence below what it belongs to; nothing where there is none."""
    return f"\n{json_text(value)}" if value else ""


def read_corrections(task: Task) -> list[Said]:
    """Corrections of what an executor of this task understood; the next one is told them too."""
    found = _corrections(task.pk)
    return [Said(str(one), by) for corrections, by in reversed(found) for one in corrections]


@Prepared
def _corrections(task_id: int) -> QuerySet[Any, Any]:
    rows = Handshake.objects.filter(
        task=task_id, status=HandshakeStatus.CONFIRMED_WITH_CORRECTION.value
    ).order_by("-pk")
    return rows.values_list("corrections", "answered_by")[:SHOWN_CORRECTIONS]


def read_answers(task: Task) -> list[Said]:
    """What Sir decided about this task, oldest first."""
    return [
        Said(reason or verdict, f"human:{by}" if by else policy, note=question, kind=verdict)
        for reason, verdict, question, by, policy in reversed(_answers(task.pk))
    ]


@Prepared
def _answers(task_id: int) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(task=task_id, status=DecisionStatus.DECIDED.value)
    return rows.order_by("-pk").values_list(
        "reason", "verdict", "question", "decided_by__username", "decided_by_policy"
    )[:SHOWN_ANSWERS]


def read_failures(task: Task) -> list[Said]:
    """Why earlier attempts failed, with their evidence, oldest first."""
    return [
        Said(
            str(one.get("root_cause", ""))
            + evidence_text(one.get("failed_cases"))
            + evidence_text(one.get("evidence")),
            SYSTEM,
            note=str(one.get("attempt", "")),
            kind=str(one.get("class", "")),
        )
        for one in task.failure_context
        if isinstance(one, Mapping)
    ]


def read_comments(task: Task) -> list[Said]:
    """Comments and observations on a task, newest first."""
    where = "task_id = %s ORDER BY id DESC LIMIT %s"
    rows = fetch_rows(Comment, where, [task.pk, SHOWN_COMMENTS])
    return [
        Said(row.body, comment_author(row.author, row.agent_id), kind=row.comment_type)
        for row in rows
    ]


def read_mailbox(agent: Agent | None, task: Task) -> Mailbox:
    """Read the mail to whoever reads the prompt: about this task, or unanswered in its project."""
    if agent is None:
        return Mailbox(0, [])
    unanswered = Q(expects_reply=True, replies__isnull=True)
    rows = Mail.objects.filter(unanswered | Q(task=task), recipients__agent=agent)
    rows = rows.filter(project=task.project_id).distinct()
    newest = [
        Said(_mail_text(row), row.sender, kind=row.type)
        for row in rows.order_by("-pk")[:SHOWN_MAIL]
    ]
    return Mailbox(rows.count() if newest else 0, newest)


def _mail_text(mail: Mail) -> str:
    """Everything a mail says: an understanding or an ack is in its fields, not in its text.

    What waits for a reply begins with its `message_id`. It stands here and not in the label, which
    changes and cuts what it shows.
    """
    said = {key: value for key, value in mail.details.items() if value}
    head = f"message_id: {mail.message_id}" if mail.expects_reply else ""
    return "\n".join(filter(None, (head, mail.text, json_text(said) if said else "")))


def read_intent(assignment: Assignment | None) -> Said | None:
    """What an executor understood, where an auditor is asked about that and not about a plan."""
    if assignment is None or "handshake" not in assignment.input:
        return None
    row = Mail.objects.get(handshake=int(assignment.input["handshake"]))
    return Said(_mail_text(row), row.sender)
