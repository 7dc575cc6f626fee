"""The `rules` backend: deterministic, offline answers for scorer, planner, auditor and QA.

Source: DESIGN sections 6, 7 and 8.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from orchestration.contracts.plan import Plan as PlanDocument
from orchestration.errors import CountersignError
from orchestration.models import Assignment, Output, Plan, Task
from orchestration.models.rows import fetch_rows
from orchestration.rules.early_layers import format_findings, logic_findings
from orchestration.rules.listed_steps import plan_from_message
from orchestration.rules.plan_audit import audit_plan
from orchestration.rules.profiles import known_roles
from orchestration.runner.workspace import artifact_exists, read_inside
from orchestration.seats.authority import refusal_of
from orchestration.seats.base import MAX_ARTIFACT_BYTES, Document, SeatJob, SeatLink
from orchestration.seats.claim_checks import check_claims
from orchestration.seats.commands import (
    is_misconfigured,
    outage_words,
    refused_by_environment,
    require_environment,
    run_all,
)
from orchestration.seats.earlier_runs import runs_with_fewer_tests
from orchestration.seats.independent import check_spoken, spoken_claims_of
from orchestration.seats.staged_tests import judge_staged_tests
from orchestration.states import Seat

PLAYBOOK, WORKFLOW = "playbook", "workflow"
FIXED_PLANS = ("rules", PLAYBOOK, WORKFLOW)
"""Who made a plan that is the same when it is made again."""
DENIED = "the record of its tool calls denied what is claimed when it was handed in"


class RulesSeat:
    """Fill scorer, planner, auditor and QA by rules."""

    name = "rules"
    is_system = True

    def can_fill(self, job: SeatJob) -> bool:
        """Every rules seat, but a plan only where the text lists its own steps, and no revision."""
        if job.seat is Seat.PLANNER:
            return not job.input.get("findings") and _plan_of(job.task) is not None
        return job.seat in (Seat.SCORER, Seat.AUDITOR, Seat.QA)

    def is_instant(self, job: SeatJob) -> bool:
        """Everything but QA's gathering of evidence is instant."""
        return job.seat is not Seat.QA

    def perform(self, job: SeatJob, link: SeatLink) -> Document:
        """Answer for the seat; for QA, gather the evidence that it judges."""
        if job.seat is Seat.PLANNER:
            return _plan_of(job.task) or {}
        if job.seat is Seat.AUDITOR:
            return _audit(job)
        return gather_evidence(job, link)


def _plan_of(task: Task) -> Document | None:
    """The plan this backend would hand in: the last one of its own, else the steps listed.

    A playbook is planned again as it is: its unchanged, finished steps are kept.
    """
    last = task.plans.filter(is_light=False).exclude(body={}).last()
    if last is not None and last.backend in FIXED_PLANS:
        body: Document = last.body
        return body
    if last is not None:
        return None
    return plan_from_message(task.description or task.title)


def _audited_plan(assignment: Assignment) -> Plan | None:
    rows = fetch_rows(Plan, "id = %s", [assignment.plan_id]) if assignment.plan_id else []
    return rows[0] if rows else None


def _audit(job: SeatJob) -> Document:
    plan = _audited_plan(job.assignment) if job.assignment is not None else None
    body = plan.body if plan is not None else {}
    result = audit_plan(
        PlanDocument.from_stored(body),
        policy_allow=job.task.project.policy.commands.allow,
        known_roles=known_roles(),
        tools_available=lambda program: _has_tool(job.task, program),
        planner=plan.backend if plan is not None else "",
        task_text=job.task.description or job.task.title,
    )
    return result.to_document()


def _has_tool(task: Task, program: str) -> bool:
    """Whether a program can be found: on the PATH, or as a file in the workspace."""
    if shutil.which(program) is not None:
        return True
    try:
        workspace = task.project.workspace
        return bool(workspace) and artifact_exists(Path(workspace), program) is not None
    except CountersignError:
        return False


def gather_evidence(job: SeatJob, link: SeatLink) -> Document:
    """Gather what the layers judge, each only after the one before it. Shape: see `Evidence`."""
    task = job.task
    evidence: Document = {"runs": [], "verifies": [], "claims": [], "refusal": ""}
    if job.input.get("stage") != "verification":
        return evidence | _files_now(task, may_differ=False)
    may_differ = task.fix_round > 0
    again = task.run if task.fix_round else []
    if task.run and not task.fix_round:
        # What ran is on record; whether it may run now does not change what came of it.
        evidence["runs"] = _last_runs(task)
    if again or task.verify:
        evidence["refusal"] = refusal_of(task, [*again, *task.verify])
    if again and not evidence["refusal"]:
        evidence["runs"] = run_all(task, again, link)
        require_environment(job.assignment, evidence["runs"])
    evidence |= _files_now(task, may_differ=may_differ)
    evidence["held_back"] = _early_findings(task, evidence)
    if not evidence["held_back"] and job.input.get("is_contradicted"):
        evidence["held_back"] = [DENIED]
    if evidence["held_back"]:
        return evidence
    _run_anchors(job, evidence, link)
    # A check may have changed what was handed in.
    return evidence | _files_now(task, may_differ=may_differ)


def _early_findings(task: Task, evidence: Document) -> list[str]:
    """What L1 or L2 finds, the first layer that finds anything."""
    outputs = _newest(task)
    return format_findings(outputs, evidence["missing"]) or logic_findings(
        outputs,
        changed=evidence["changed"],
        runs=evidence["runs"],
        is_failure_planned=task.on_failure is not None,
    )


def _run_anchors(job: SeatJob, evidence: Document, link: SeatLink) -> None:
    """Run what L3 judges: planned checks, claims' own commands, and what was said as done."""
    task = job.task
    if not evidence["refusal"]:
        verified = run_all(task, task.verify, link, keep_going=True)
        require_environment(job.assignment, verified)
        evidence["not_run"] = _not_run(verified)
        indexes = [one["index"] for one in evidence["not_run"]]
        judged = [one for one in verified if one["index"] not in indexes]
        evidence["verifies"] = judge_staged_tests(task, judged)
    evidence["claims"] = check_claims(task, link)
    evidence["spoken"] = check_spoken(task, spoken_claims_of(task, _newest(task)), link)
    evidence["fewer"] = runs_with_fewer_tests(task, [*evidence["verifies"], *evidence["spoken"]])


def _files_now(task: Task, *, may_differ: bool) -> Document:
    files, missing, changed = _read_files(task, may_differ=may_differ)
    return {"files": files, "missing": missing, "changed": changed}


def _not_run(verified: list[Document]) -> list[Document]:
    """The checks that say nothing of the work: they met an outage, or may not run as written."""
    down = refused_by_environment(verified)
    return [
        one | {"is_outage": one in down, "why": outage_words(one)}
        for one in verified
        if one in down or is_misconfigured(one)
    ]


def _newest(task: Task) -> list[Output]:
    """The newest version of each output of this attempt."""
    rows = task.outputs.filter(attempt=task.attempt, is_orphan=False).select_related("assignment")
    return list({one.title: one for one in rows.order_by("pk")}.values())


def _last_runs(task: Task) -> list[Document]:
    """The records of the run that was handed in, as we observed it; only its newest counts."""
    done = task.assignments.filter(
        seat=Seat.EXECUTOR.value, attempt=task.attempt, result__isnull=False
    ).last()
    runs: list[Document] = list(done.result.get("runs", ())) if done and done.result else []
    return runs


def _read_files(task: Task, *, may_differ: bool) -> tuple[dict[str, bytes], list[str], list[str]]:
    """Read every expected artifact and output that is a path, as it is now.

    Shape: bytes by path; what is missing, with the reason; paths that are not as they were handed
    in or, at the lock, as they were reviewed. After a fix the verification takes them as they are.
    """
    files: dict[str, bytes] = {}
    missing: list[str] = []
    changed: list[str] = []
    ours = task.outputs.filter(attempt=task.attempt, is_orphan=False)
    handed_in = {one.path: one.sha256 for one in ours.order_by("pk") if one.path}
    titles = set(ours.values_list("title", flat=True))
    expected = [one.get("path") for one in task.expected_artifacts if one.get("path")]
    for path in dict.fromkeys([*expected, *handed_in]):
        data, why = _read(task, path)
        if not data:
            missing.append(f"{path} ({why})" if why else path)
            continue
        files[path] = data
        known = handed_in.get(path)
        if known and not may_differ and known != hashlib.sha256(data).hexdigest():
            changed.append(path)
    names = [one["name"] for one in task.expected_artifacts if one.get("name")]
    missing += [name for name in names if name not in titles]
    return files, missing, changed


def _read(task: Task, path: str) -> tuple[bytes, str]:
    """Read one file of the workspace. Shape: its bytes, and why it could not be read."""
    if not task.project.workspace:
        return b"", "this project has no workspace"
    try:
        return read_inside(Path(task.project.workspace), path, MAX_ARTIFACT_BYTES), ""
    except CountersignError as error:
        return b"", "" if error.code == "workspace_missing" else error.detail
