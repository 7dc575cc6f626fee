"""What scripted agents hand in for the stages of the workflows, and how they do a stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from orchestration.contracts.flow_results import Question, QuestionRound
from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.models import Agent, Assignment, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.clarifying import ask_round
from orchestration.services.tasks import add_task_comment, add_task_output
from orchestration.states import CommentType, OutputType, Seat
from tests.factories import (
    actor_of,
    claim,
    decide,
    drive,
    fresh,
    open_decision_of,
    set_status,
    start,
)

SNIPPET = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b"
EXPLORED = {
    "findings": [
        {
            "finding": "There is no calculator yet.",
            "evidence": [
                {"path": "src/numbers.py", "line": 1, "snippet": SNIPPET},
                {"commit": "4f2a9c1", "date": "2026-11-20"},
            ],
        }
    ]
}
UNDERSTOOD = {"summary": "A calculator.", "goals": ["adds", "subtracts"], "open_points": ["limits"]}
PROPOSAL = """# Add a calculator

## Reason

People reckon by hand. That is slow.

## Changes

- A module that adds and subtracts
- **BREAKING** the old script goes

## Impact

- Specs: none
- Code: calc.py
"""


def box(number: str, title: str, needs: str = "none") -> str:
    """One box of task.md."""
    return (
        f"- [ ] {number} {title}\n  - Target object: calc.py\n  - Purpose: {title}\n"
        f"  - Method: new code\n  - Dependencies: {needs}\n  - Content: write {title}\n"
    )


TASK_LIST = "# Tasks\n\n## Implementation\n\n" + "".join(
    [box("1.1", "add"), box("1.2", "subtract"), box("1.3", "join them", "1.1, 1.2")]
)
SPEC = """# Sign-in

## 5W2H

- What: people sign in
- Why: their data is theirs
- Who: customers
- When: on each visit
- Where: on the web
- How: with name and password
- How much: ten thousand people

## Stories

### Story 1 (P1): sign in

- Condition: an account; Action: right password; Expected: signed in
- Condition: an account; Action: wrong password; Expected: refused
- Condition: no account; Action: any password; Expected: refused in the same words
- Failure: the database is down and says so

### Story 2 (P2): lock out

- Condition: five failures; Action: one more; Expected: locked for ten minutes
- Condition: locked; Action: right password; Expected: refused
- Condition: ten minutes later; Action: right password; Expected: signed in
- Failure: the clock jumps

## Requirements

- FR-001 [story 1] The system signs people in by name and password.
- FR-002 [story 1] It gives one refusal for a wrong name and a wrong password.
- FR-003 [story 2] It locks an account for ten minutes after five failures.

## Success criteria

- SC-001: 95 % of sign-ins take under two seconds.

## SMART check list

- [x] Specific
- [x] Measurable
- [x] Achievable
- [x] Relevant
- [x] Time-bound
"""
TECH = """# Design

## C4 levels

Context: browser and service. Container: one web process. Component: the sign-in view.

## Modules

- accounts: who may sign in

## Interfaces

- sign_in(name, password) -> Session

## Data model

- Account: name, digest, failures, locked_until

## ADR

### ADR-001 Keep sessions in the database

- Context: one server
- Options: database, signed cookie
- Choice: database
- Trade-off: one query a request
"""


def plan_md(change: str) -> str:
    """Write plan.md of a change: two boxes that cover the three requirements."""
    where = f".cospec/spec/{change}"
    head = f"  - Change id: {change}\n  - Spec path: {where}/spec.md\n"
    head += f"  - Design path: {where}/tech.md\n"
    return (
        f"- [ ] 1. Sign in\n{head}  - Function: the sign-in form\n"
        "  - Requirement ids: FR-001, FR-002\n  - Demonstration: sign in on the page\n"
        f"- [ ] 2. Lock out\n{head}  - Function: the counter\n"
        "  - Requirement ids: FR-003\n  - Dependencies: 1\n"
    )


class Crew:
    """Scripted agents on one project: one who makes, one who judges."""

    def __init__(self, project: Project, maker: Agent, judge: Agent) -> None:
        self.project, self.maker, self.judge = project, maker, judge
        self.held: Assignment

    def begin(self, task: Task) -> None:
        """Claim a stage and start it."""
        drive(self.project)
        claim(task, self.maker)
        start(task, self.maker)

    def give(self, task: Task, title: str, content: str, kind: str = "document") -> None:
        """Hand in one output."""
        document = OutputInput(title=title, content=content, type=OutputType(kind))
        add_task_output(
            task_id=task.pk, document=document, data=content.encode(),
            agent=self.maker, actor=actor_of(self.maker),
        )  # fmt: skip

    def say(self, task: Task) -> None:
        """Write the hand-off."""
        comment = CommentInput(comment_type=CommentType.HANDOFF, body="done; nothing open")
        add_task_comment(
            task_id=task.pk, document=comment, agent=self.maker, actor=actor_of(self.maker)
        )

    def hand_off(self, task: Task) -> None:
        """Hand off and ask for the review."""
        self.say(task)
        set_status(task, self.maker, "review")
        drive(self.project)

    def do(self, task: Task, *outputs: tuple[str, Any], kind: str = "document") -> Task:
        """Do a whole stage. An output that is no text goes as JSON."""
        self.begin(task)
        for title, content in outputs:
            text = content if isinstance(content, str) else json.dumps(content)
            self.give(task, title, text, "data" if not isinstance(content, str) else kind)
        self.hand_off(task)
        return fresh(task)

    def ask(self, task: Task, *questions: str, options: Sequence[str] = ("yes", "no")) -> None:
        """Put a round of questions to Sir."""
        asked = QuestionRound(
            questions=tuple(Question(question=one, options=tuple(options)) for one in questions)
        )
        ask_round(task_id=task.pk, asked=asked, agent=self.maker, actor=actor_of(self.maker))

    def answer(self, words: str = "1. yes") -> None:
        """Answer as Sir what waits."""
        decide(open_decision_of(self.project, "waiting_human"), "answer", reason=words)

    def judge_it(self, **document: Any) -> Assignment:
        """Claim the seat of QA as the judge and hand a verdict in."""
        held = claim_for_agent(
            agent=self.judge, wish=Wish(seats=[Seat.QA]), actor=actor_of(self.judge)
        )
        assert held is not None
        self.held = held
        return self.retry(**document)

    def retry(self, **document: Any) -> Assignment:
        """Hand another verdict in under the same lease."""
        held = self.held
        hold = Hold(held.pk, self.judge, held.lease_token)
        submit_result(hold=hold, document=document, actor=actor_of(self.judge))
        drive(self.project)
        return held


FIVE_OK = [
    {"name": name, "ok": True} for name in ("format", "location", "clarity", "coverage", "style")
]
