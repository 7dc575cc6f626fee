"""The delivery archive as a document: what was wanted, made, checked, decided and delivered.

Everything in it is a fact of the database. The Markdown is drawn from this document alone.
Source: FORMATS ("Delivery archive").
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

PASSED = "PASSED"
WITH_EXCEPTIONS = "PASSED WITH EXCEPTIONS"


class ArchiveKind(StrEnum):
    """What was written when a root ended well: its delivery, or that Sir waived it."""

    ARCHIVE = "archive"
    WAIVER = "waiver"


class StaleState(StrEnum):
    """What became of a step whose input was replaced by a newer version."""

    STALE = "stale"
    VERIFIED = "verified"
    FAILED = "failed"
    UNCHECKED = "unchecked"


class Part(BaseModel):
    """Base of the parts of an archive."""

    model_config = ConfigDict(frozen=True)


class Head(Part):
    """What was archived, which version of it, and when. Units: ISO 8601, UTC."""

    kind: ArchiveKind
    project: str
    task: str
    task_id: str
    external_key: str
    spec_id: str
    title: str
    version: int
    archived_at: str
    language: str
    route: str
    attempt: int


class Result(Part):
    """What one step came to. Shape: `checks` as `passed/all` of the commands run for it."""

    step: str
    title: str
    outcome: str
    artifacts: int
    checks: str


class Problem(Part):
    """Section 1: what was wanted, how it was solved, and what came of it."""

    text: str
    specification: str
    solution: str
    assumptions: tuple[str, ...]
    results: tuple[Result, ...]


class Component(Part):
    """One step as a part of what was built."""

    step: str
    title: str
    role: str
    phase: int
    made_by: str
    artifacts: tuple[str, ...]


class Flow(Part):
    """What went from one step to another: the artifacts that were read."""

    source: str
    target: str
    artifacts: tuple[str, ...]


class Implementation(Part):
    """Section 2: the parts, their graph as Mermaid text, and what flowed between them."""

    components: tuple[Component, ...]
    diagram: str
    flows: tuple[Flow, ...]


class FileRow(Part):
    """One delivered file: what it is for, and what its step stood on."""

    path: str
    role: str
    depends_on: tuple[str, ...]


class Setting(Part):
    """One setting that the work was done under."""

    name: str
    value: str


class CommandRow(Part):
    """One command of a step: `run` makes, `verify` checks. `result` is its newest run's."""

    step: str
    use: str
    command: str
    result: str


class Use(Part):
    """Section 3: the files, the configuration, how to run it and how to check it."""

    files: tuple[FileRow, ...]
    configuration: tuple[Setting, ...]
    commands: tuple[CommandRow, ...]


class AuditRow(Part):
    """One line of the audit table."""

    category: str
    status: str
    figure: str


class Finding(Part):
    """One defect. Shape: `status` OPEN or FIXED; `outcome` is the defect's own state."""

    id: str
    step: str
    severity: str
    category: str
    title: str
    status: str
    outcome: str


class DecisionRow(Part):
    """One decision: what was asked, what was said, by whom and why."""

    kind: str
    question: str
    verdict: str
    by: str
    why: str
    at: str


class Departure(Part):
    """One deviation from the locked blueprint."""

    change: str
    step: str
    by: str
    why: str


class Lesson(Part):
    """What was learned: a failed attempt and its cause, or what a hand-off says."""

    source: str
    text: str


class Compliance(Part):
    """Section 4: the final state with what it excepts, checks, findings, decisions, lessons."""

    state: str
    exceptions: tuple[str, ...]
    checks: tuple[AuditRow, ...]
    findings: tuple[Finding, ...]
    decisions: tuple[DecisionRow, ...]
    deviations: tuple[Departure, ...]
    lessons: tuple[Lesson, ...]


class Impact(Part):
    """An artifact that others outside this task have read."""

    path: str
    version: int
    readers: tuple[str, ...]


class Delivery(Part):
    """One locked artifact version of the delivery list."""

    path: str
    version: int
    step: str
    size_bytes: int
    sha256: str
    artifact: str


class ArchiveDocument(Part):
    """The whole archive. Shape: sections 5 and 6 may be empty, 1 to 4 never are."""

    head: Head
    problem: Problem
    implementation: Implementation
    use: Use
    audit: Compliance
    impact: tuple[Impact, ...]
    deliveries: tuple[Delivery, ...]
