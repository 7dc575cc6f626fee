"""Rounds of clarification: questions with options that an agent puts to Sir, within their limits.

At most three rounds a stage of a workflow, one to five questions each, fifteen in all.
Source: FORMATS ("strict-spec documents"), DESIGN section 11.
"""

from __future__ import annotations

from orchestration.contracts.flow_results import QuestionRound
from orchestration.errors import Conflict, IllegalTransition
from orchestration.models import Agent, Decision, Task
from orchestration.services.answers import ROUND, about_of, question_content
from orchestration.services.clocks import stop_clock
from orchestration.services.inbox import open_decision
from orchestration.services.moves import move_task
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import held_lease, lock_with_parent
from orchestration.services.work import Actor, unit_of_work
from orchestration.states import DecisionKind, TaskStatus

MAX_ROUNDS, MAX_QUESTIONS = 3, 15


@retry_on_deadlock
def ask_round(
    *, task_id: int, asked: QuestionRound, agent: Agent, actor: Actor, lease_token: str = ""
) -> Decision:
    """Put one round of questions to Sir; the task waits for his answer.

    Errors: LeaseLost; IllegalTransition unless the task is working; Conflict beyond three rounds or
    fifteen questions.
    Locks: parent, task, assignment.
    """
    with unit_of_work(actor) as work:
        task = lock_with_parent(task_id)
        held = held_lease(task, agent, lease_token)
        if task.status != TaskStatus.WORKING:
            raise IllegalTransition(
                f"only a working task asks; this one is {task.status}",
                allowed=[TaskStatus.WORKING.value] if task.status == TaskStatus.CLAIMED else [],
                current=task.status,
            )
        number = _require_room(task, asked)
        task.asked_from = TaskStatus.WORKING.value
        work.touch(task, "asked_from")
        move_task(work, task, TaskStatus.WAITING_HUMAN, detail=f"questions, round {number}")
        stop_clock(work, held)
        question = _written(asked)
        content = question_content(work, held, task, question, reason=ROUND) | {
            "round": number,
            "questions": [one.to_document() for one in asked.questions],
        }
        return open_decision(
            work,
            kind=DecisionKind.WAITING_HUMAN,
            project=task.project,
            task=task,
            title=task.title,
            question=question,
            content=content,
            params=about_of(content),
        )


def _require_room(task: Task, asked: QuestionRound) -> int:
    """Count the rounds of this stage, in its earlier attempts too. Return the number of this one.

    Errors: Conflict beyond three rounds or fifteen questions.
    """
    rows = Decision.objects.filter(
        task__root_id=task.lineage_root_id, task__step_key=task.step_key,
        kind=DecisionKind.WAITING_HUMAN.value, content__reason=ROUND,
    )  # fmt: skip
    counts = [len(content["questions"]) for content in rows.values_list("content", flat=True)]
    if len(counts) >= MAX_ROUNDS:
        raise Conflict(
            f"{MAX_ROUNDS} rounds were asked; go on with what you know and say what you assume",
            code="clarification_rounds",
        )
    total = sum(counts) + len(asked.questions)
    if total > MAX_QUESTIONS:
        raise Conflict(
            f"that makes {total} questions; at most {MAX_QUESTIONS} are asked",
            code="clarification_questions",
        )
    return len(counts) + 1


def _written(asked: QuestionRound) -> str:
    """Write the questions of a round, numbered, each with its options."""
    lines = []
    for number, one in enumerate(asked.questions, start=1):
        choices = " / ".join(
            f"{chr(ord('a') + place)}) {said}" for place, said in enumerate(one.options)
        )
        lines.append(f"{number}. {one.question}{f' [{choices}]' if choices else ''}")
    return "\n".join(lines)
