"""The facts beside a decision: what waits behind it, where it stands, who works on it.

Source: UI.md section 5.2 (rail).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard.assessments import backend_word
from dashboard.charts import Impact
from dashboard.clock import clock_text, long_age
from dashboard.costs import cost_words
from dashboard.places import address, task_key, task_url
from orchestration.models import Decision, Task
from orchestration.selectors.overview import cost_of
from orchestration.states import DecisionStatus, Seat

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the rail: a word and its value, with an address where it leads somewhere."""

    word: str | StrPromise
    text: str
    url: str = ""
    is_strong: bool = False
    key: str = ""
    note: str = ""


def waits_of(decision: Decision, blocks: int, impact: Impact | None) -> list[Fact]:
    """What waits while the item is open, else how long it waited."""
    if decision.status != DecisionStatus.OPEN:
        return _waited(decision)
    words = ngettext("%(n)s task", "%(n)s tasks", blocks) % {"n": blocks}
    if impact is not None and impact.phases > 1:
        words = gettext("%(tasks)s in %(n)s phases") % {"tasks": words, "n": impact.phases}
    facts = [Fact(_("Blocks"), words if blocks else gettext("nothing"), is_strong=bool(blocks))]
    age = (timezone.now() - decision.created_at).total_seconds()
    facts.append(Fact(_("Waiting"), long_age(age)))
    facts.append(Fact(_("Deadline"), _deadline_words(decision.deadline)))
    rule = decision.on_expiry or {}
    if rule.get("policy_id"):
        facts.append(Fact(_("Then"), f"{rule['policy_id']}: {rule.get('outcome', '')}"))
    if decision.remind_at is not None:
        facts.append(Fact(_("Next reminder"), clock_text(decision.remind_at)))
    return facts


def _waited(decision: Decision) -> list[Fact]:
    """How long a closed item had waited, and since when it is closed."""
    if decision.decided_at is None:
        return []
    age = (decision.decided_at - decision.created_at).total_seconds()
    closed = clock_text(decision.decided_at, seconds=True)
    return [Fact(_("Waited"), long_age(age)), Fact(_("Closed"), closed)]


def _deadline_words(deadline: datetime | None) -> str:
    return clock_text(deadline) if deadline is not None else gettext("none, keeps waiting")


def about_of(decision: Decision) -> list[Fact]:
    """Where the item stands, who raised it, who works on it, and what that cost."""
    task, project = decision.task, decision.project
    facts = [Fact(_("Project"), project.name, address("board", project.slug))]
    if task is not None:
        root = task.root if task.root is not None else task
        key = task_key(task, project)
        facts.append(Fact(_("Task"), root.title, task_url(root, project), key=key))
        if task.parent_id is not None:
            url = task_url(task, project)
            facts.append(Fact(_("Step"), task.title, url, key=task.step_key))
    if decision.defect is not None:
        by = decision.defect.raised_by
        facts.append(Fact(_("Raised by"), gettext("rules") if by == "rules" else by))
    if decision.content.get("asked_by"):
        facts.append(Fact(_("Asked by"), str(decision.content["asked_by"])))
    return facts + (_work_facts(task) if task is not None else [])


def _work_facts(task: Task) -> list[Fact]:
    """Who fixes, what was handed in, and what it cost so far."""
    facts = []
    fixer = task.assignments.filter(seat=Seat.FIXER.value).select_related("agent").last()
    if fixer is not None:
        name = fixer.agent.name if fixer.agent is not None else backend_word(fixer.backend)
        facts.append(Fact(_("Fixer"), name))
    output = task.outputs.filter(is_orphan=False).exclude(path="").last()
    if output is not None:
        name = output.path.rpartition("/")[2]
        facts.append(Fact(_("Artifact"), "", key=f"{name} v{output.version}"))
    cost = cost_words(cost_of(task.assignments.all()))
    return [*facts, Fact(_("Cost so far"), cost)] if cost else facts
