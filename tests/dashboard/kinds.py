"""One open decision of each kind, about steps that an agent would do."""

from __future__ import annotations

from orchestration.models import Decision, Project, Task
from orchestration.services.inbox import open_decision
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import DecisionKind
from tests.factories import child

CONTENT: dict[DecisionKind, dict[str, object]] = {
    DecisionKind.MEDIUM_DEFECT: {"severity": "medium", "round": 1, "rounds": 3},
    DecisionKind.COMMAND_APPROVAL: {
        "commands": [{"step": "1", "action": "look", "argv": ["nc", "h"], "digest": "d" * 64}],
        "steps": ["1"],
    },
    DecisionKind.PLAN_REJECTED: {
        "plan": {"steps": [{"id": "1", "action": "one"}, {"id": "2", "action": "two"}]},
        "findings": ["no rollback for 2d"], "revision": 3, "faults": [],
    },
    DecisionKind.WAITING_HUMAN: {"reason": "question", "asked_by": "coder-03"},
    DecisionKind.CLARIFICATION: {"reason": "blocked", "detail": "waits for a key"},
    DecisionKind.HIGH_NOTICE: {"severity": "high", "fix": {"description": "fixed"}},
    DecisionKind.FINAL_REVIEW: {},
    DecisionKind.MAX_RETRIES: {},
    DecisionKind.BUDGET_EXCEEDED: {},
    DecisionKind.SAFE_STOP: {},
}  # fmt: skip


def ask(kind: DecisionKind, project: Project, task: Task, **rest: object) -> Decision:
    """Open one decision of a kind about a task."""
    content = {**CONTENT[kind], **rest}
    with unit_of_work(SYSTEM) as work:
        return open_decision(
            work, kind=kind, project=project, task=task, title=f"about {kind}",
            question=f"What about {kind}?", content=content,
        )  # fmt: skip


def ask_each(project: Project, root: Task) -> None:
    """Open a decision of every kind, each about a step of its own."""
    for number, kind in enumerate(CONTENT, start=1):
        ask(kind, project, child(root, str(number)))


def ask_each_in(slug: str) -> None:
    """The same in an installation that runs: a command of its own calls it."""
    project = Project.objects.get(slug=slug)
    ask_each(project, Task.objects.get(project=project, parent=None))
