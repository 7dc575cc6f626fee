"""Read what a prompt says, in a fixed number of queries whatever the task depends on.

Source: DESIGN section 12 (layers), section 7 (the planner's input).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet

from orchestration.models import (
    Agent,
    Assignment,
    AuditEvent,
    Blueprint,
    Defect,
    Output,
    Task,
    Verification,
    WikiPage,
)
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_rows
from orchestration.rules.flow_stages import judge_of
from orchestration.rules.prompt_facts import (
    CheckFacts,
    DefectFacts,
    Knowledge,
    Mailbox,
    OutputFacts,
    ProjectFacts,
    PromptFacts,
    Said,
    TaskFacts,
)
from orchestration.rules.scoring import verification_layers
from orchestration.selectors.knowledge import related_experiences, related_pages
from orchestration.selectors.predecessors import read_predecessors
from orchestration.selectors.prompt_said import (
    SYSTEM,
    evidence_text,
    json_text,
    read_answers,
    read_comments,
    read_corrections,
    read_failures,
    read_intent,
    read_mailbox,
)
from orchestration.states import (
    DEFECT_UNFINISHED,
    MASTER_VIEW,
    Complexity,
    KnowledgeStatus,
    RiskLevel,
    Seat,
    TaskKind,
    TaskStatus,
)

SHOWN_ROOTS, SHOWN_OUTPUTS, SHOWN_CHECKS, SHOWN_CHILDREN = 20, 10, 40, 60
READS_CHILDREN = frozenset({Seat.VALIDATOR, Seat.PLANNER})
ASKED = {
    Seat.PLANNER: (
        "assessment", "profiles", "outputs", "artifacts", "previous_plan", "findings", "guidance",
    ),
    Seat.QA: ("findings", "refusal", "fix_round", "profile", "checks"),
    Seat.FIXER: ("mode", "guidance", "fix_round", "defects"),
}  # fmt: skip
"""What of an assignment's input the prompt of a seat tells, beside what stands elsewhere in it."""


def read_prompt_facts(
    task: Task, seat: Seat, assignment: Assignment | None, *, base_url: str, agent: Agent | None
) -> PromptFacts:
    """Read the facts of a seat's prompt. The task comes with its project.

    Shape: without an assignment those of whoever would fill the seat now.
    """
    is_light = seat is Seat.SCORER
    title, text = task.title, task.description
    origin = _origin(task)
    return PromptFacts(
        seat=seat,
        base_url=base_url,
        assignment_id=str(assignment.pk) if assignment is not None else "",
        project=_project(task, is_light=is_light),
        task=_task(task, origin, _specification(task, origin)),
        corrections=read_corrections(task),
        answers=[] if is_light else read_answers(task),
        failures=[] if is_light else read_failures(task),
        outputs=[] if is_light else _outputs(task),
        checks=[] if is_light else _checks(task),
        defects=[] if is_light else _defects(task),
        comments=[] if is_light else read_comments(task),
        children=_children(task) if seat in READS_CHILDREN else [],
        plan=_plan(assignment) if seat is Seat.AUDITOR else None,
        intent=read_intent(assignment) if seat is Seat.AUDITOR else None,
        asked=_asked(assignment, seat),
        predecessors=[] if is_light else read_predecessors(task),
        experiences=[] if is_light else _experiences(task, title, text),
        pages=[] if is_light else _pages(task, title, text, but=task.spec_id),
        mailbox=Mailbox(0, []) if is_light else read_mailbox(agent, task),
    )


def _project(task: Task, *, is_light: bool) -> ProjectFacts:
    project, policy = task.project, task.project.policy
    roots: list[tuple[str, str, str]] = []
    total = 0
    if not is_light:
        total = sum(count for (count,) in _roots_total(project.pk))
        roots = [
            (f"{project.key_prefix}-{number}", title, MASTER_VIEW[TaskStatus(status)])
            for number, title, status in _first_roots(project.pk)
        ]
    return ProjectFacts(
        slug=project.slug,
        name=project.name,
        language=project.language,
        description=project.description,
        workspace=project.workspace,
        allowed=[" ".join(prefix) for prefix in policy.commands.allow],
        roots=roots,
        roots_total=total,
        guardrails=[rule.words(project.language) for rule in policy.guardrails.rules],
        lease_minutes=max(1, policy.limits.lease_seconds // 60),
        fix_rounds=policy.thresholds.fix_rounds,
        max_depth=policy.limits.depth,
    )


def _roots_of(project_id: int) -> QuerySet[Task]:
    return Task.objects.filter(project=project_id, parent__isnull=True, kind=TaskKind.TASK.value)


@Prepared
def _roots_total(project_id: int) -> QuerySet[Any, Any]:
    counted = _roots_of(project_id).order_by().values("project_id").annotate(total=Count("pk"))
    return counted.values_list("total")


@Prepared
def _first_roots(project_id: int) -> QuerySet[Any, Any]:
    rows = _roots_of(project_id).order_by("rank", "pk")
    return rows.values_list("number", "title", "status")[:SHOWN_ROOTS]


def _task(task: Task, origin: _Origin, spec: Said | None) -> TaskFacts:
    policy = task.project.policy
    attempts = policy.thresholds.max_retries if task.is_root else policy.thresholds.step_attempts
    complexity = Complexity(task.complexity) if task.complexity else Complexity.LOW
    risk = RiskLevel(task.risk_level) if task.risk_level else RiskLevel.LOW
    expected = [
        one if isinstance(one, dict) else {"path": str(one)} for one in task.expected_artifacts
    ]
    return TaskFacts(
        key=str(task),
        title=task.title,
        description=task.description,
        by=origin.by,
        specification=spec,
        spec_id=task.spec_id,
        route=task.route,
        complexity=task.complexity,
        risk_level=task.risk_level,
        role=task.role,
        phase=task.phase,
        depth=task.depth,
        attempt=task.attempt,
        attempts=attempts,
        is_irreversible=task.is_irreversible,
        layers=verification_layers(complexity, risk),
        facts=_texts(task.facts),
        constraints=_texts(task.constraints),
        scope=_texts(task.scope),
        expected=[_artifact(one) for one in expected],
        expected_kinds=[str(one.get("type", "")) for one in expected],
        verify=_texts(task.verify),
        run=_texts(task.run),
        writes=_texts(task.writes),
        risks=_texts(task.risks),
        resources=_texts(task.resources),
        suggestions=_texts(origin.suggestions),
        judge=judge_of(task.role, task.step_key),
    )


def _artifact(one: Mapping[str, Any]) -> str:
    name, kind = one.get("path") or one.get("name") or "", one.get("type")
    return f"{name} ({kind})" if kind else str(name)


def _texts(values: Sequence[Any]) -> list[str]:
    """Write stored values in one line each: commands as they are typed, the rest as JSON."""
    texts = []
    for value in values:
        if isinstance(value, Mapping):
            argv = value.get("argv")
            text = " ".join(map(str, argv)) if argv else str(value.get("cmd") or "")
            texts.append(text or json.dumps(value, ensure_ascii=False, sort_keys=True))
        else:
            texts.append(str(value))
    return texts


@dataclass(frozen=True, slots=True)
class _Origin:
    """Whose words a task's text is, and what the audit advised about its plan."""

    by: str
    suggestions: Sequence[Any] = ()


def _origin(task: Task) -> _Origin:
    """The plan's author for a step, else who handed the task in."""
    if task.blueprint_id is not None:
        [(suggestions, backend, agent)] = _blueprint(task.blueprint_id)
        return _Origin(f"agent:{agent}" if agent else backend, suggestions)
    actors = AuditEvent.objects.filter(task=task).order_by("pk").values_list("actor", flat=True)
    return _Origin(actors.first() or SYSTEM)


@Prepared
def _blueprint(blueprint_id: int) -> QuerySet[Any, Any]:
    rows = Blueprint.objects.filter(pk=blueprint_id)
    return rows.values_list("suggestions", "plan__backend", "plan__agent__name")


def _specification(task: Task, origin: _Origin) -> Said | None:
    """The specification a task starts from: its own, else the wiki page named by its `spec_id`."""
    if task.specification:
        return Said(task.specification, origin.by)
    if not task.spec_id:
        return None
    page = WikiPage.objects.filter(project=task.project_id, name=task.spec_id).first()
    if page is None or page.status == KnowledgeStatus.REJECTED:
        return None
    return Said(page.body, page.author, note=f"{page.name} v{page.version}")


def _outputs(task: Task) -> list[OutputFacts]:
    """The newest version of what was handed in for this task, and what came late."""
    where = "task_id = %s ORDER BY id DESC LIMIT %s"
    newest: dict[tuple[str, bool], Output] = {}
    for row in fetch_rows(Output, where, [task.pk, SHOWN_OUTPUTS]):
        newest.setdefault((row.path or row.title, row.is_orphan), row)
    authors = _authors([row.assignment_id for row in newest.values()])
    return [
        OutputFacts(
            title=row.title,
            type=row.type,
            version=row.version,
            path=row.path,
            by=authors.get(row.assignment_id, SYSTEM),
            summary=row.summary if row.summary != row.title else "",
            content=row.content,
            claims=_claims(row.assertions),
            marks=[str(one.get("text") or one.get("kind", "")) for one in row.marks],
            is_late=row.is_orphan,
        )
        for row in reversed(newest.values())
    ]


def _authors(assignment_ids: Sequence[int | None]) -> dict[int | None, str]:
    """Whose words the outputs of some assignments are: the agent's, else the backend's."""
    ids = [pk for pk in assignment_ids if pk is not None]
    if not ids:
        return {}
    rows = Assignment.objects.filter(pk__in=ids).values_list("pk", "agent__name", "backend")
    return {pk: f"agent:{agent}" if agent else backend for pk, agent, backend in rows}


def _claims(assertions: Sequence[object]) -> str:
    return json_text(assertions) if assertions else ""


def _checks(task: Task) -> list[CheckFacts]:
    where = "task_id = %s AND attempt = %s ORDER BY id DESC LIMIT %s"
    rows = fetch_rows(Verification, where, [task.pk, task.attempt, SHOWN_CHECKS])
    return [
        CheckFacts(
            layer=row.layer,
            name=row.name,
            outcome=row.outcome,
            findings=[str(one) for one in row.findings],
            tail=row.output_tail,
        )
        for row in reversed(rows)
    ]


def _defects(task: Task) -> list[DefectFacts]:
    states = sorted(state.value for state in DEFECT_UNFINISHED)
    where = f"task_id = %s AND status IN ({', '.join(['%s'] * len(states))}) ORDER BY id LIMIT %s"
    rows = fetch_rows(Defect, where, [task.pk, *states, SHOWN_CHECKS])
    return [
        DefectFacts(
            severity=row.severity,
            category=row.category,
            status=row.status,
            title=row.title,
            by=row.raised_by,
            text=row.description + evidence_text(row.evidence) + evidence_text(row.proposed_fix),
        )
        for row in rows
    ]


def _children(task: Task) -> list[tuple[str, str, str]]:
    prefix = task.project.key_prefix
    rows = task.children.filter(is_superseded=False).order_by("phase", "pk")
    found = rows.values_list("number", "title", "status")[:SHOWN_CHILDREN]
    return [(f"{prefix}-{number}", title, status) for number, title, status in found]


def _plan(assignment: Assignment | None) -> Said | None:
    plan = assignment.plan if assignment is not None else None
    if plan is None:
        return None
    by = f"agent:{plan.agent.name}" if plan.agent is not None else plan.backend
    return Said(json_text(plan.body), by)


def _asked(assignment: Assignment | None, seat: Seat) -> str:
    """What the seat was handed, as JSON, without what stands elsewhere in the prompt."""
    if assignment is None:
        return ""
    asked = {key: assignment.input[key] for key in ASKED.get(seat, ()) if assignment.input.get(key)}
    return json_text(asked) if asked else ""


def _experiences(task: Task, title: str, text: str) -> list[Knowledge]:
    return [
        Knowledge(
            id=str(row.pk),
            title=row.title,
            by=row.author,
            text=row.body or row.title,
            is_unreviewed=row.status == KnowledgeStatus.UNREVIEWED,
            address=f"experiences/{row.pk}",
        )
        for row in related_experiences(task.project_id, title, text)
    ]


def _pages(task: Task, title: str, text: str, *, but: str) -> list[Knowledge]:
    return [
        Knowledge(
            id=row.name,
            title=row.title,
            by=row.author,
            text=row.summary or row.title,
            is_unreviewed=row.status == KnowledgeStatus.UNREVIEWED,
            address=f"wiki/{row.pk}",
        )
        for row in related_pages(task.project_id, title, text, but=but)
    ]
