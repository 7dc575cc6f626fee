"""What a prompt is made of: plain values about one task and one seat, without a database.

`selectors/prompt_facts.py` reads them, `prompt_layers.py` writes them out. `by` says whose words
something is, as the audit trail names its actors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestration.states import Seat


@dataclass(frozen=True, slots=True)
class Said:
    """Words of somebody. `note` is ours: what they are about, or where all of it is."""

    text: str
    by: str
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """The project as the prompt tells it. Shape: `roots` are (key, title, master status)."""

    slug: str
    name: str
    language: str
    description: str
    workspace: str
    allowed: Sequence[str]
    roots: Sequence[tuple[str, str, str]]
    roots_total: int
    guardrails: Sequence[str]
    lease_minutes: int
    fix_rounds: int
    max_depth: int


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The task's own fields, as its creator or its plan wrote them."""

    key: str
    title: str
    description: str
    by: str
    specification: Said | None
    spec_id: str
    route: str
    complexity: str
    risk_level: str
    role: str
    phase: int
    depth: int
    attempt: int
    attempts: int
    is_irreversible: bool
    layers: Sequence[str]
    facts: Sequence[str]
    constraints: Sequence[str]
    scope: Sequence[str]
    expected: Sequence[str]
    expected_kinds: Sequence[str]
    verify: Sequence[str]
    run: Sequence[str]
    writes: Sequence[str]
    risks: Sequence[str]
    resources: Sequence[str]
    suggestions: Sequence[str]
    judge: str = ""


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """One output. Shape: `claims` is JSON text, empty without assertions."""

    title: str
    type: str
    version: int
    path: str
    by: str
    summary: str
    content: str
    claims: str
    marks: Sequence[str]
    is_late: bool


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """One verification layer or command of ours."""

    layer: str
    name: str
    outcome: str
    findings: Sequence[str]
    tail: str


@dataclass(frozen=True, slots=True)
class DefectFacts:
    """One defect. `text` holds description, evidence and the proposed fix."""

    severity: str
    category: str
    status: str
    title: str
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A task that this one waits for, with what it left behind.

    Shape: `artifacts` are (name with version, path of its bytes).
    """

    key: str
    title: str
    status: str
    summaries: Sequence[Said]
    handoff: Said | None
    artifacts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """An experience or a wiki page that resembles the task."""

    id: str
    title: str
    by: str
    text: str
    is_unreviewed: bool
    address: str


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Mail to the reader about the task or unanswered. Shape: the newest few, and the count."""

    waiting: int
    newest: Sequence[Said]


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """Everything one prompt says. `base_url` has no slash at its end.

    Shape: `intent` is what an executor understood; only an auditor that is asked about one has it.
    """

    seat: Seat
    base_url: str
    assignment_id: str
    project: ProjectFacts
    task: TaskFacts
    corrections: Sequence[Said]
    answers: Sequence[Said]
    failures: Sequence[Said]
    outputs: Sequence[OutputFacts]
    checks: Sequence[CheckFacts]
    defects: Sequence[DefectFacts]
    comments: Sequence[Said]
    children: Sequence[tuple[str, str, str]]
    plan: Said | None
    intent: Said | None
    asked: str
    predecessors: Sequence[Predecessor]
    experiences: Sequence[Knowledge]
    pages: Sequence[Knowledge]
    mailbox: Mailbox
