"""The sections of a task's page that grow with its attempts: the newest open, earlier ones folded.

Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.http import HttpRequest

from dashboard.costs import cost_words
from dashboard.failure_words import class_word
from dashboard.task_pages import check_views, output_cards, plan_words, revision_lines
from dashboard.work_lines import assignment_lines, prompt_line
from orchestration.models import Project, Task
from orchestration.selectors.attempts import attempt_of_blueprints, failure_classes
from orchestration.selectors.overview import cost_of
from orchestration.selectors.task_page import (
    assignments_of,
    list_assignments,
    list_checks,
    list_outputs,
    list_revisions,
    newest_prompt,
)

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """One folded attempt. Shape: `word` is empty where nothing recorded why it ended."""

    number: int
    word: str
    lines: list[Any]


class Attempts:
    """Sorts what a task's page lists into its attempts."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._of_blueprint: Mapping[int, int] = {}
        self._classes: Mapping[int, str] = {}
        if task.attempt > 1:
            self._classes = failure_classes(task)
            self._of_blueprint = attempt_of_blueprints(task) if task.is_planned else {}

    def of(self, task: Task, attempt: int) -> int:
        """The attempt of this page's task that a row of it or of one of its steps is part of."""
        if task.pk == self._task.pk:
            return attempt
        return self._of_blueprint.get(task.blueprint_id or 0, self._task.attempt)

    def fold(
        self, rows: Iterable[Row], number_of: Callable[[Row], int]
    ) -> tuple[list[Row], list[tuple[int, str, list[Row]]]]:
        """Split rows into the newest attempt's and each earlier one's, the newest of them first."""
        held: dict[int, list[Row]] = {}
        for row in rows:
            held.setdefault(number_of(row), []).append(row)
        if not held:
            return [], []
        newest = max(held)
        earlier = [
            (number, class_word(self._classes.get(number, "")), held[number])
            for number in sorted(held, reverse=True)
            if number != newest
        ]
        return held[newest], earlier


def plan_part(request: HttpRequest, project: Project, found: Task) -> dict[str, Any]:
    """What the plan section shows."""
    revisions = list_revisions(found)
    open_rows, earlier = Attempts(found).fold(revisions, lambda one: one.plan.attempt)
    return {
        "revisions": revision_lines(open_rows),
        "earlier_plans": [
            EarlierAttempt(number, word, revision_lines(rows)) for number, word, rows in earlier
        ],
        "plan_words": plan_words(revisions),
        "plan_count": len(revisions),
    }


def outputs_part(request: HttpRequest, project: Project, found: Task) -> dict[str, Any]:
    """What the outputs section shows."""
    attempts = Attempts(found)
    items, total = list_outputs(found, every=request.GET.get("outputs") == "all")
    open_rows, earlier = attempts.fold(
        items, lambda item: attempts.of(item.output.task, item.output.attempt)
    )
    return {
        "outputs": output_cards(open_rows),
        "earlier_outputs": [
            EarlierAttempt(number, word, output_cards(rows)) for number, word, rows in earlier
        ],
        "output_shown": len(items),
        "output_total": total,
        "checks": check_views(list_checks(found)),
    }


def assignments_part(request: HttpRequest, project: Project, found: Task) -> dict[str, Any]:
    """What the section of assignments and cost shows."""
    attempts = Attempts(found)
    rows, total = list_assignments(found)
    open_rows, earlier = attempts.fold(rows, lambda row: attempts.of(row.task, row.attempt))
    return {
        "assignments": assignment_lines(open_rows, project),
        "earlier_assignments": [
            EarlierAttempt(number, word, assignment_lines(held, project))
            for number, word, held in earlier
        ],
        "assignment_shown": len(rows),
        "assignment_total": total,
        "cost": cost_words(cost_of(assignments_of(found))),
        "sent": prompt_line(newest_prompt(found), project),
    }
