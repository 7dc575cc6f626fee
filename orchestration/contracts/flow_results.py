"""What the profiles of the workflows hand in as JSON: explorations, test phases, findings, checks.

Source: FORMATS ("Exploration result", "Test workflow", "strict-plan documents"), DESIGN section 11.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from orchestration.contracts.documents import Document, fault, parse_document
from orchestration.contracts.outputs import Words
from orchestration.contracts.paths import WorkspacePath
from orchestration.contracts.plan import Grade
from orchestration.errors import Fault, Invalid

D = TypeVar("D", bound=Document)
SNIPPET_LEAST, SNIPPET_MOST = 5, 20
MAX_ROUNDS = 3
MAX_POINTS = 10
COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].{0,30})?")
FENCE = "```"
THRESHOLDS = {"lines": 80.0, "branches": 75.0, "functions": 90.0}
"""Least coverage in per cent. Source: FORMATS ("Test workflow")."""


def _said(text: str) -> str:
    if not text.strip():
        raise fault("words", "must not be empty")
    return text


Said = Annotated[StrictStr, Field(max_length=20_000), AfterValidator(_said)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Rounds = Annotated[StrictInt, Field(ge=1, le=MAX_ROUNDS)]


class SourceEvidence(Document):
    """Where a finding was read: path, line and snippet, or commit and date."""

    path: WorkspacePath | None = None
    line: Annotated[StrictInt, Field(ge=1)] | None = None
    snippet: StrictStr | None = None
    commit: StrictStr | None = None
    date: StrictStr | None = None

    @model_validator(mode="after")
    def require_place(self) -> Self:
        """Require one whole kind of evidence."""
        if self.commit is not None:
            if COMMIT.fullmatch(self.commit) is None:
                raise fault("commit", "a commit is named by 7 to 64 hexadecimal digits")
            if self.date is None or DAY.fullmatch(self.date) is None:
                raise fault("date", "a commit needs its date, as 2026-11-30")
            return self
        if self.path is None or self.line is None or self.snippet is None:
            raise fault("evidence", "needs path, line and snippet, or commit and date")
        count = len(self.snippet.strip("\n").split("\n"))
        if not SNIPPET_LEAST <= count <= SNIPPET_MOST:
            raise fault("snippet", f"the snippet has {count} lines; 5 to 20 are asked for")
        return self


class ExplorationFinding(Document):
    """One finding with what it rests on."""

    finding: Said
    evidence: Annotated[tuple[SourceEvidence, ...], Field(min_length=1, max_length=50)]


class ExplorationResult(Document):
    """What QuickExplore hands in."""

    findings: Annotated[tuple[ExplorationFinding, ...], Field(min_length=1, max_length=500)]


class Understanding(Document):
    """What StrictPlan understood of a request. `change_id` may name the change anew."""

    summary: Said
    goals: Annotated[tuple[Said, ...], Field(min_length=1, max_length=50)]
    open_points: Annotated[tuple[Said, ...], Field(max_length=50)] = ()


class SecurityFinding(Document):
    """One graded finding of a security review."""

    severity: Grade
    title: Annotated[Said, Field(max_length=300)]
    description: StrictStr = ""
    evidence: Annotated[tuple[SourceEvidence, ...], Field(min_length=1, max_length=50)]
    advice: Said


class SecurityReview(Document):
    """What a security review hands in. No finding is a result too, with what was looked at."""

    reviewed: Annotated[tuple[Said, ...], Field(min_length=1, max_length=500)]
    findings: Annotated[tuple[SecurityFinding, ...], Field(max_length=500)]


class CheckName(StrEnum):
    """The five things that TaskCheck judges before `task.md` is final."""

    FORMAT = "format"
    LOCATION = "location"
    CLARITY = "clarity"
    COVERAGE = "coverage"
    STYLE = "style"


class TaskCheckItem(Document):
    """One judgement of TaskCheck."""

    name: CheckName
    ok: StrictBool
    finding: StrictStr = ""

    @model_validator(mode="after")
    def require_finding(self) -> Self:
        """Require words for a check that fails."""
        if not self.ok and not self.finding.strip():
            raise fault("finding", "a check that fails says why in 'finding'")
        return self


class TaskChecks(Document):
    """The five judgements of TaskCheck. Errors: fails unless each is given exactly once."""

    checks: tuple[TaskCheckItem, ...]

    @model_validator(mode="after")
    def require_all(self) -> Self:
        """Require each of the five once."""
        given = [one.name for one in self.checks]
        missing = [one.value for one in CheckName if given.count(one) != 1]
        if missing:
            raise fault("checks", f"judge each of the five once; look at {', '.join(missing)}")
        return self

    @property
    def failed(self) -> tuple[TaskCheckItem, ...]:
        """The judgements that are negative."""
        return tuple(one for one in self.checks if not one.ok)


class Question(Document):
    """One question to Sir: with two to five options, or to be answered in a short phrase."""

    question: Annotated[Said, Field(max_length=2_000)]
    options: Annotated[tuple[Words, ...], Field(max_length=5)] = ()

    @model_validator(mode="after")
    def require_choice(self) -> Self:
        """Require no options, or at least two."""
        if len(self.options) == 1:
            raise fault("options", "give two to five options, or none for a short phrase")
        return self


class QuestionRound(Document):
    """One round of clarification."""

    questions: Annotated[tuple[Question, ...], Field(min_length=1, max_length=5)]


class RunAndFixResult(Document):
    """What TddRunAndFix hands in: whether the project runs, and how it was made to."""

    runnable: StrictBool
    commands: Annotated[tuple[Said, ...], Field(min_length=1, max_length=50)]
    rounds: Rounds = 1
    fixes: tuple[Said, ...] = ()


class RedPhase(Document):
    """RED: tests that fail because the code is not there yet."""

    phase: Literal["RED"]
    test_files: Annotated[tuple[WorkspacePath, ...], Field(min_length=1, max_length=500)]
    test_points: Annotated[tuple[Said, ...], Field(min_length=1, max_length=MAX_POINTS)]
    expected_failures: tuple[Said, ...]
    run_command: Said
    passed: Annotated[StrictInt, Field(ge=0)] = 0
    rounds: Rounds = 1


class TestResults(Document):
    """Counts of a test run."""

    __test__ = False

    passed: Annotated[StrictInt, Field(ge=0)]
    failed: Annotated[StrictInt, Field(ge=0)]


class Coverage(Document):
    """Coverage in per cent."""

    lines: Percent
    branches: Percent
    functions: Percent


class GreenPhase(Document):
    """GREEN: the code that makes the tests pass."""

    files: Annotated[tuple[WorkspacePath, ...], Field(max_length=500)]
    results: TestResults
    diff: StrictStr = ""


class RefactorPhase(Document):
    """REFACTOR: what was tidied, with the coverage that stands."""

    improvements: tuple[Said, ...]
    coverage: Coverage


class TestAndFixResult(Document):
    """What TddTestAndFix hands in: GREEN, then REFACTOR, then the verdict."""

    __test__ = False

    green: GreenPhase
    refactor: RefactorPhase
    run_command: Said
    verdict: Literal["PASS"]
    rounds: Rounds = 1


def require_red(result: RedPhase) -> None:
    """Raise where a test was green before there was code. Errors: Invalid (TDD_VIOLATION)."""
    if result.passed or not result.expected_failures:
        said = f"{result.passed} tests pass before the code is there"
        message = said if result.passed else "no expected failure is named"
        raise _tdd("TDD_VIOLATION", "expected_failures", message)


def require_green(result: TestAndFixResult) -> None:
    """Raise unless every test passes and the coverage reaches its thresholds.

    Errors: Invalid (IMPLEMENTATION_INCOMPLETE, COVERAGE_BELOW_THRESHOLD).
    """
    counts = result.green.results
    if counts.failed or not counts.passed:
        said = f"{counts.failed} tests fail, {counts.passed} pass"
        raise _tdd("IMPLEMENTATION_INCOMPLETE", "green.results", said)
    coverage = result.refactor.coverage
    low = [
        f"{name} {getattr(coverage, name):g} % of {least:g} %"
        for name, least in THRESHOLDS.items()
        if getattr(coverage, name) < least
    ]
    if low:
        raise _tdd("COVERAGE_BELOW_THRESHOLD", "refactor.coverage", ", ".join(low))


def _tdd(code: str, path: str, message: str) -> Invalid:
    return Invalid(f"{code}: {message}.", code=code, errors=[Fault(path=path, message=message)])


def read_json_result(model: type[D], text: str, *, name: str) -> D:
    """Read a result that was handed in as JSON text, bare or in one code fence.

    Errors: Invalid with the line of what is no JSON, or every fault of the document.
    """
    try:
        value: Any = json.loads(_unfenced(text).lstrip("\ufeff"))
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}: {error.msg}"
        raise Invalid(f"{name} is no JSON.", errors=[Fault(path=name, message=message)]) from None
    except (RecursionError, ValueError):
        faults = [Fault(path=name, message="is nested too deeply or holds an absurd number")]
        raise Invalid(f"{name} is no JSON.", errors=faults) from None
    return parse_document(model, value, detail=f"{name} is not valid.")


def _unfenced(text: str) -> str:
    """Return what one code fence around the whole text holds, else the text; never a pattern."""
    whole = text.strip()
    if not whole.startswith(FENCE) or not whole.endswith(FENCE):
        return text
    head, _, rest = whole.removeprefix(FENCE).partition("\n")
    language = head.rstrip()
    held, line_end, indent = rest[: -len(FENCE)].rpartition("\n")
    is_opened = not language or (language.isascii() and language.isalpha())
    return held if is_opened and line_end and not indent.strip() else text
