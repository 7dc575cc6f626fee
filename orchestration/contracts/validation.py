"""The validation and release evidence package: what the master loop decides on.

JSON, or Markdown as `contracts.validation_text` reads it. JUnit reports that come with it are
summarised into its table and its failed cases.
Source: FORMATS ("Validation and release evidence package"), DESIGN section 10.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, StrictStr, field_validator, model_validator

from orchestration.contracts.documents import Document, fault, parse_document
from orchestration.contracts.junit import Report, read_junit
from orchestration.contracts.loop import FailureClass, Verdict
from orchestration.contracts.outputs import Evidence, Words
from orchestration.contracts.plan import Grade
from orchestration.errors import Fault, Invalid

DETAIL = "The validation package is not valid."
MAX_CASES = 1_000
MAX_ROWS = 200
MAX_REPORTS = 20
NAMED_CASES = 5
"""Failed cases that a one-line reason names; more are counted."""
PASSED, WARN, FAILED = "PASSED", "WARN", "FAILED"

CaseId = Annotated[StrictStr, Field(min_length=1, max_length=300)]
Short = Annotated[StrictStr, Field(max_length=1_000)]

CATEGORIES: Mapping[str, str] = {
    "unit": "Unit test",
    "integration": "Integration test",
    "static security": "Static security check",
    "convention": "Convention check",
}
"""How a failing category of the summary is named in a root cause."""
_OTHER_NAMES: Mapping[str, str] = {
    "单元": "unit",
    "单元测试": "unit",
    "unit tests": "unit",
    "unit test": "unit",
    "集成": "integration",
    "集成测试": "integration",
    "integration tests": "integration",
    "integration test": "integration",
    "静态安全": "static security",
    "静态安全扫描": "static security",
    "安全": "static security",
    "security": "static security",
    "规范": "convention",
    "规范检查": "convention",
    "conventions": "convention",
}


class FailedCase(Document):
    """One failed test case; plain text is its id."""

    id: CaseId
    ac: Short = ""
    output_tail: Evidence = ""

    @model_validator(mode="before")
    @classmethod
    def accept_text(cls, value: Any) -> Any:
        """Take plain text as the id."""
        return {"id": value} if isinstance(value, str) else value


class SummaryRow(Document):
    """One line of the summary table. Known categories are stored by their English names."""

    category: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    status: Literal["PASSED", "WARN", "FAILED"]
    figure: Short = ""
    report: Short = ""

    @field_validator("category")
    @classmethod
    def name_category(cls, category: str) -> str:
        """Give a known category its one name."""
        plain = category.strip().lower()
        plain = _OTHER_NAMES.get(plain, plain)
        return plain if plain in CATEGORIES else category.strip()


class Finding(Document):
    """One finding of the details."""

    severity: Grade
    title: Words
    confidence: StrictStr | float = ""
    scope: Evidence = ""
    root_cause: Evidence = ""
    advice: Evidence = ""


class Release(Document):
    """What was released, or rolled back."""

    type: Short = ""
    at: AwareDatetime | None = None
    changeset: Short = ""
    state: Literal["SUCCEEDED", "ROLLED_BACK"]
    reason: Evidence = ""


class Package(Document):
    """A validation package. Shape: `junit` holds reports as XML text until they are summarised."""

    verdict: Verdict
    at: AwareDatetime | None = None
    basis: Evidence = ""
    failure_class: FailureClass | None = None
    root_cause: Evidence = ""
    failed_cases: Annotated[tuple[FailedCase, ...], Field(max_length=MAX_CASES)] = ()
    summary: Annotated[tuple[SummaryRow, ...], Field(max_length=MAX_ROWS)] = ()
    findings: Annotated[tuple[Finding, ...], Field(max_length=MAX_CASES)] = ()
    release: Release | None = None
    evidence: Annotated[tuple[Any, ...], Field(max_length=MAX_CASES)] = ()
    junit: Annotated[tuple[StrictStr, ...], Field(max_length=MAX_REPORTS)] = ()

    @field_validator("verdict", mode="before")
    @classmethod
    def accept_spelling(cls, verdict: Any) -> Any:
        """Take `no_go`, `NO GO` and `NOGO` for NO-GO."""
        if not isinstance(verdict, str):
            return verdict
        plain = re.sub(r"[\s_-]+", "", verdict).upper()
        return {"NOGO": "NO-GO", "GO": "GO", "INDETERMINATE": "INDETERMINATE"}.get(plain, verdict)

    @model_validator(mode="after")
    def require_consistency(self) -> Self:
        """Require grounds of a negative verdict, and nothing that failed beside a GO."""
        if self.verdict is Verdict.GO:
            failed = [one.category for one in self.summary if one.status == FAILED]
            if self.failed_cases or failed:
                names = ", ".join([*(one.id for one in self.failed_cases), *failed][:NAMED_CASES])
                raise fault("verdict", f"a GO cannot stand beside what failed: {names}")
        elif not (self.root_cause.strip() or self.failed_cases or self.basis.strip()):
            raise fault("verdict", f"a {self.verdict} names its root_cause or its failed_cases")
        return self

    @property
    def cause(self) -> str:
        """The root cause in one line: as it was given, else from what failed."""
        if self.root_cause.strip():
            return self.root_cause.strip()
        if not self.failed_cases:
            return self.basis.strip()
        named = [CATEGORIES[one.category] for one in self.summary
                 if one.status == FAILED and one.category in CATEGORIES]  # fmt: skip
        cases = _named(self.failed_cases)
        return f"{named[0]} failed: {cases}" if named else f"{cases} failed"

    @property
    def reason(self) -> str:
        """What the master list says of the failure: the cases, else the root cause."""
        return f"{_named(self.failed_cases)} failed" if self.failed_cases else self.cause


def _named(cases: Sequence[FailedCase]) -> str:
    more = len(cases) - NAMED_CASES
    named = ", ".join(one.id for one in cases[:NAMED_CASES])
    return f"{named} and {more} more" if more > 0 else named


def parse_package(document: object) -> Package:
    """Read a package from its JSON form; JUnit reports are summarised into it.

    Errors: Invalid (`package_invalid`) listing every fault, those of the reports too.
    """
    held = document
    faults: list[Fault] = []
    if isinstance(document, Mapping):
        held, faults = _with_reports(document)
    try:
        package = parse_document(Package, held, detail=DETAIL)
    except Invalid as error:
        raise _invalid([*faults, *error.errors]) from None
    if faults:
        raise _invalid(faults)
    return package


def _with_reports(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Add what the JUnit reports say; the reports themselves stay as evidence."""
    held = dict(document)
    reports = held.get("junit", ())
    if isinstance(reports, str):
        held["junit"] = reports = [reports]
    if not isinstance(reports, list | tuple):
        return held, []
    faults: list[Fault] = []
    for at, text in enumerate(reports):
        if not isinstance(text, str):
            continue
        try:
            report = read_junit(text)
        except ValueError as error:
            faults.append(Fault(path=f"junit.{at}", message=str(error)))
            continue
        _add_report(held, report)
    return held, faults


def _add_report(held: dict[str, Any], report: Report) -> None:
    summary, cases = held.get("summary", ()), held.get("failed_cases", ())
    status = FAILED if report.failed else PASSED
    row = {"category": report.name, "status": status, "figure": report.figure}
    if isinstance(summary, list | tuple):
        held["summary"] = [*summary, row]
    if isinstance(cases, list | tuple):
        known = {one.get("id") if isinstance(one, Mapping) else one for one in cases}
        fresh = [{"id": case.id, "output_tail": case.output_tail}
                 for case in report.failed if case.id not in known]  # fmt: skip
        held["failed_cases"] = [*cases, *fresh][: MAX_CASES + 1]


def _invalid(faults: Sequence[Fault]) -> Invalid:
    return Invalid(DETAIL, code="package_invalid", errors=list(faults))
