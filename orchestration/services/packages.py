"""Validation packages: build them by rules from rows, and store them.

Rule order: a planned check that fails is NO-GO; one that could not run because of configuration is
NO-GO with that reason; an environment that is down is INDETERMINATE; all passed is GO. Only what
Sir signed exempts.
Source: FORMATS ("Validation and release evidence package"), DESIGN section 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from orchestration.contracts.loop import FailureClass, Verdict
from orchestration.contracts.validation import FAILED, PASSED, Package
from orchestration.models import Defect, QAReview, Task, ValidationPackage, Verification
from orchestration.models.prepared import Prepared
from orchestration.models.rows import new_row
from orchestration.services.claim_findings import keys_of
from orchestration.services.work import Work
from orchestration.states import (
    DEFECT_UNFINISHED,
    SKIPPED_REASON,
    DefectStatus,
    LayerOutcome,
    Severity,
    TaskStatus,
)

RULES = "rules"
BY_RULES = "verification, QA and the plan's checks, by rules"
SHOWN = 100
TAIL = 2_000
TRANSIENT = frozenset({FailureClass.ENVIRONMENT.value})
"""Classes of a passing cause: it backs off first and burns no attempt until its cap."""


def build_package(root: Task, at: Any) -> Package:
    """Judge a root's finished work by rules. Shape: a few queries, whatever the plan's size."""
    failing = _open_checks(root)
    failed = [row for row in failing if row.outcome == LayerOutcome.FAILED]
    not_run = [row for row in failing if row.outcome == LayerOutcome.NOT_POSSIBLE]
    stuck = [row for row in not_run if not row.finding_key]
    defects = _in_order(_unfinished(root.pk))
    document: dict[str, Any] = {
        "verdict": Verdict.GO.value,
        "at": at.isoformat(),
        "basis": BY_RULES,
        "summary": _summary(root, failing, defects),
        "evidence": _exceptions(root),
    }
    if failed:
        words = f"planned check failed: {_place(failed[0].task)}{failed[0].name}"
        document |= _negative(FailureClass.CHECK_FAILED, words)
        document["failed_cases"] = [
            {"id": f"{_place(row.task)}{row.name}"[:300], "output_tail": row.output_tail[-TAIL:]}
            for row in failed
        ]
    elif defects:
        one = defects[0]
        words = f"open {one.severity} defect: {_place(one.task)}{one.title}"
        document |= _negative(FailureClass.CHECK_FAILED, words)
    elif stuck:
        why = str(stuck[0].findings[0]) if stuck[0].findings else "could not run"
        document |= _negative(
            FailureClass.CONFIG_ERROR, f"planned check {_place(stuck[0].task)}{why}"
        )
    elif not_run:
        words = f"planned check could not run: {_place(not_run[0].task)}{not_run[0].findings[0]}"
        document |= _negative(FailureClass.ENVIRONMENT, words)
    return Package.from_stored(document)


def _negative(failure_class: FailureClass, why: str) -> dict[str, Any]:
    is_unclear = failure_class.value in TRANSIENT
    return {
        "verdict": (Verdict.INDETERMINATE if is_unclear else Verdict.NO_GO).value,
        "failure_class": failure_class.value,
        "root_cause": why[:TAIL],
    }


def _place(task: Task) -> str:
    return f"step {task.step_key}: " if task.step_key else ""


def _tree(root_id: int) -> QuerySet[Task]:
    """The root and every step below it that is done; what was cancelled proves nothing."""
    below = Q(root=root_id, is_superseded=False, status=TaskStatus.DONE.value)
    return Task.objects.filter(Q(pk=root_id) | below)


@Prepared
def _unfinished(root_id: int) -> QuerySet[Any, Any]:
    states = [state.value for state in DEFECT_UNFINISHED]
    rows = Defect.objects.filter(task__in=_tree(root_id), status__in=states)
    return rows.order_by("pk").values_list("pk")[:SHOWN]


@Prepared
def _accepted(root_id: int) -> QuerySet[Any, Any]:
    rows = Defect.objects.filter(task__in=_tree(root_id), status=DefectStatus.ACCEPTED_AS_IS.value)
    return rows.order_by("pk").values_list("pk")[:SHOWN]


def _in_order(found: Sequence[tuple[int]]) -> list[Defect]:
    """Read defects with their tasks; there are none as a rule, and then it asks nothing."""
    ids = [pk for (pk,) in found]
    if not ids:
        return []
    return list(Defect.objects.filter(pk__in=ids).select_related("task").order_by("pk"))


def _open_checks(root: Task) -> list[Verification]:
    """What we ran and did not pass, as it stands: no newer outcome, and not signed by Sir.

    A check that could not run counts only where it was planned. Shape: at most `SHOWN`.
    """
    if not _any_standing(root.pk):
        return []
    signed = _signed(_tree(root.pk))
    unsigned = (
        row for row in _standing_checks(root.pk).iterator(chunk_size=SHOWN)
        if not row.finding_key or row.finding_key not in signed.get(row.task_id, ())
    )  # fmt: skip
    return list(islice(unsigned, SHOWN))


@Prepared
def _any_standing(root_id: int) -> QuerySet[Any, Any]:
    return _standing_checks(root_id).values_list("pk")[:1]


def _standing_checks(root_id: int) -> QuerySet[Verification]:
    newer = Verification.objects.filter(
        task=OuterRef("task"), attempt=OuterRef("attempt"), layer=OuterRef("layer"),
        name=OuterRef("name"), pk__gt=OuterRef("pk"),
    )  # fmt: skip
    looked = Verification.objects.filter(
        task=OuterRef("task"), attempt=OuterRef("attempt"), layer="L5",
        outcome=LayerOutcome.PASSED.value,
    )  # fmt: skip
    is_planned = Q(name="") & ~Q(task__verify=[]) | Q(finding_key__startswith="verify:")
    stuck = Q(outcome=LayerOutcome.NOT_POSSIBLE.value) & is_planned
    failed = Q(outcome=LayerOutcome.FAILED.value)
    rows = Verification.objects.filter(
        failed | stuck & ~Exists(looked),
        task__in=_tree(root_id), layer="L3", attempt=F("task__attempt"),
    )  # fmt: skip
    return rows.exclude(Exists(newer)).select_related("task").order_by("pk")


def _signed(tree: QuerySet[Task]) -> dict[int, set[str]]:
    """Name the findings that Sir accepted as they are, by task: each exempts its own check alone.

    A Low defect is accepted by QA, which signs for nobody.
    """
    rows = Defect.objects.filter(
        task__in=tree, artifact__isnull=True, status=DefectStatus.ACCEPTED_AS_IS.value
    ).exclude(severity=Severity.LOW.value)
    signed: dict[int, set[str]] = {}
    for task_id, key, held in rows.values_list("task_id", "source_key", "evidence"):
        signed.setdefault(task_id, set()).update(keys_of(key, held))
    return signed


@Prepared
def _passed_checks(root_id: int) -> QuerySet[Any, Any]:
    rows = Verification.objects.filter(
        task__in=_tree(root_id), layer="L3", outcome=LayerOutcome.PASSED.value,
        attempt=F("task__attempt"),
    )  # fmt: skip
    return rows.order_by().values_list("layer").annotate(Count("pk"))


@Prepared
def _passed_reviews(root_id: int) -> QuerySet[Any, Any]:
    rows = QAReview.objects.filter(task__in=_tree(root_id), verdict="pass")
    return rows.order_by().values_list("verdict").annotate(Count("pk"))


def _summary(
    root: Task, failing: Sequence[Verification], defects: Sequence[Defect]
) -> list[dict[str, str]]:
    passed = sum(count for _, count in _passed_checks(root.pk))
    reviews = sum(count for _, count in _passed_reviews(root.pk))
    checks = FAILED if failing else PASSED
    return [
        {"category": "planned checks", "status": checks,
         "figure": f"{passed} passed, {len(failing)} open"},
        {"category": "QA", "status": FAILED if defects else PASSED,
         "figure": f"{reviews} reviews passed, {len(defects)} open defects"},
    ]  # fmt: skip


@Prepared
def _skipped(root_id: int) -> QuerySet[Any, Any]:
    rows = Task.objects.filter(root=root_id, is_superseded=False, cancel_reason=SKIPPED_REASON)
    return rows.order_by("pk").values_list("step_key", "verify")[:SHOWN]


def _exceptions(root: Task) -> list[dict[str, Any]]:
    """List what was signed instead of passed: defects accepted as they are, skipped checks."""
    found: list[dict[str, Any]] = [
        {"exception": "accepted_as_is", "step": row.task.step_key, "severity": row.severity,
         "title": row.title}
        for row in _in_order(_accepted(root.pk))
    ]  # fmt: skip
    if not root.is_planned:
        return found
    return found + [
        {"exception": SKIPPED_REASON, "step": step_key, "checks": len(verify)}
        for step_key, verify in _skipped(root.pk)
    ]


def failure_package(root: Task, cause: Mapping[str, Any], at: Any) -> Package:
    """Turn the cause that ended an attempt into its package (rule 3)."""
    known = {one.value for one in FailureClass}
    failure_class = cause.get("class") if cause.get("class") in known else None
    is_unclear = failure_class in TRANSIENT
    words = str(cause.get("root_cause") or "the attempt failed")
    step = str(cause.get("step") or "")
    document: dict[str, Any] = {
        "verdict": (Verdict.INDETERMINATE if is_unclear else Verdict.NO_GO).value,
        "at": at.isoformat(),
        "basis": f"step {step} failed" if step else "the attempt failed",
        "root_cause": words,
        "evidence": [cause["evidence"]] if cause.get("evidence") else [],
    }
    if failure_class is not None:
        document["failure_class"] = failure_class
    if failure_class == FailureClass.CHECK_FAILED.value:
        document["failed_cases"] = [
            {"id": (f"step {step}" if step else str(root)), "output_tail": _tail(cause)}
        ]
    return Package.from_stored(document)


def _tail(cause: Mapping[str, Any]) -> str:
    """The end of what the failing command of a step printed, where it is on record."""
    evidence = cause.get("evidence")
    runs = evidence.get("runs") if isinstance(evidence, Mapping) else None
    last = runs[-1] if isinstance(runs, list) and runs else {}
    return str(last.get("output_tail", ""))[-TAIL:]


def store_package(
    work: Work,
    root: Task,
    package: Package,
    *,
    backend: str = RULES,
    agent_id: int | None = None,
    posted_by: str = "",
    claimed: str = "",
    is_authoritative: bool = False,
    attachments: Mapping[str, Any] | None = None,
    is_concluded: bool = True,
) -> ValidationPackage:
    """Store one package of a root, with its event."""
    row = new_row(
        ValidationPackage,
        project_id=root.project_id,
        task=root,
        attempt=root.attempt,
        verdict=package.verdict.value,
        claimed=claimed,
        failure_class=package.failure_class.value if package.failure_class else "",
        root_cause=package.cause,
        body=package.model_dump(mode="json", exclude_defaults=True),
        attachments=dict(attachments or {}),
        backend=backend,
        agent_id=agent_id,
        posted_by=posted_by[:140],
        is_authoritative=is_authoritative,
        concluded_at=work.now if is_concluded else None,
        created_at=work.now,
    )
    work.insert([row])
    work.record(
        "validation.packaged",
        subject=f"validation:{row.pk}",
        project_id=root.project_id,
        task_id=root.pk,
        after={
            "verdict": row.verdict,
            "claimed": claimed,
            "attempt": root.attempt,
            "class": row.failure_class,
            "backend": backend,
        },
        why=package.cause if package.verdict is not Verdict.GO else "",
    )
    return row


def package_of(row: ValidationPackage) -> Package:
    """Read a stored package."""
    return Package.from_stored(row.body)


def evidence_link(row: ValidationPackage) -> str:
    """Where a package can be read, as Markdown."""
    place = f"/api/projects/{row.project_id}/tasks/{row.task_id}/validation/{row.pk}"
    return f"{place}/validation_package.md"


def failure_entry(row: ValidationPackage) -> dict[str, Any]:
    """Shape a package for the failure context: planner's prompt, and Sir's side by side."""
    package = package_of(row)
    return {
        "attempt": row.attempt,
        "class": row.failure_class or FailureClass.AGENT_FAILED.value,
        "root_cause": package.cause,
        "verdict": row.verdict,
        "failed_cases": [one.to_document() for one in package.failed_cases[:SHOWN]],
        "package": str(row.pk),
        "evidence_link": evidence_link(row),
        "at": row.created_at.isoformat(),
    }
