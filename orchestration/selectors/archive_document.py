"""Make the archive's document of one root from its facts.

Source: FORMATS ("Delivery archive"), DESIGN section 10 (what only Sir's word exempts).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestration.contracts.archive import (
    PASSED,
    WITH_EXCEPTIONS,
    ArchiveDocument,
    ArchiveKind,
    AuditRow,
    CommandRow,
    Compliance,
    Component,
    DecisionRow,
    Delivery,
    Departure,
    FileRow,
    Finding,
    Flow,
    Head,
    Impact,
    Implementation,
    Lesson,
    Problem,
    Result,
    Setting,
    Use,
)
from orchestration.models import Decision, Task
from orchestration.rules.archive_text import mermaid
from orchestration.rules.archive_words import words_of
from orchestration.selectors.archive_facts import MOST_LESSONS, ArchiveFacts, StepRow
from orchestration.states import (
    SKIPPED_REASON,
    DecisionKind,
    DefectStatus,
    LayerOutcome,
    TaskStatus,
)

Words = Mapping[str, str]
_TEXT = 20_000
FINDING_STATES = {DefectStatus.VERIFIED.value: "FIXED", DefectStatus.VOID.value: "FIXED"}
"""What an archive calls a defect; every other state is OPEN.

What was redone afresh is void: it stands in nothing that is delivered. Its outcome says so.
"""


def read_archive(root: Task, *, number: int, at: datetime) -> ArchiveDocument:
    """Read one root's archive as it is now. Shape: `number` is the version it gets."""
    facts = ArchiveFacts(root)
    words = words_of(root.project.language)
    return ArchiveDocument(
        head=_head(facts, number, at),
        problem=_problem(facts, words),
        implementation=_implementation(facts, words),
        use=_use(facts),
        audit=_audit(facts, words),
        impact=_impact(facts),
        deliveries=tuple(
            Delivery(
                path=row["name"],
                version=row["version"],
                step=facts.labels.get(row["task_id"], ""),
                size_bytes=row["size_bytes"],
                sha256=row["content_id"],
                artifact=str(row["pk"]),
            )
            for row in facts.artifacts
        ),
    )


def _head(facts: ArchiveFacts, number: int, at: datetime) -> Head:
    root = facts.root
    return Head(
        kind=ArchiveKind.WAIVER if facts.waiver is not None else ArchiveKind.ARCHIVE,
        project=root.project.slug,
        task=facts.key,
        task_id=str(root.pk),
        external_key=root.external_key,
        spec_id=root.spec_id,
        title=root.title,
        version=number,
        archived_at=at.isoformat(timespec="seconds"),
        language=root.project.language,
        route=root.route or "",
        attempt=root.attempt,
    )


def _problem(facts: ArchiveFacts, words: Words) -> Problem:
    root = facts.root
    done = sum(_outcome(facts, row) == TaskStatus.DONE for row in facts.steps)
    body: Mapping[str, Any] = facts.plan.body if facts.plan is not None else {}
    solved = words["solved"].format(done=done, all=len(facts.steps))
    summary = str(body.get("summary") or "").strip() or words["unplanned"]
    assumed = body.get("assumptions")
    return Problem(
        text=(root.description or root.title)[:_TEXT],
        specification=root.specification[:_TEXT],
        solution=f"{summary[:_TEXT]} — {solved}",
        assumptions=tuple(str(one) for one in assumed) if isinstance(assumed, list) else (),
        results=tuple(_result(facts, row) for row in facts.steps),
    )


def _result(facts: ArchiveFacts, row: StepRow) -> Result:
    runs = facts.runs.get(row.pk, {})
    passed = sum(outcome == LayerOutcome.PASSED for outcome, _ in runs.values())
    return Result(
        step=row.label,
        title=row.title,
        outcome=_outcome(facts, row),
        artifacts=len(facts.made.get(row.pk, ())),
        checks=f"{passed}/{len(runs)}" if runs else "",
    )


def _outcome(facts: ArchiveFacts, row: StepRow) -> str:
    """A step's state in one word. The root itself is about to be done, or is waived."""
    if row.pk == facts.root.pk:
        return TaskStatus.DONE.value if facts.waiver is None else "waived"
    return row.cancel_reason or row.status


def _implementation(facts: ArchiveFacts, words: Words) -> Implementation:
    flows: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    for source, target, name, _ in facts.reads:
        if source in facts.labels and target in facts.labels:
            flows[source, target][name] = None
    nodes = [(row.label, row.title, row.phase) for row in facts.steps]
    edges = [(facts.labels[one], facts.labels[two]) for one, two in facts.edges]
    return Implementation(
        components=tuple(
            Component(
                step=row.label,
                title=row.title,
                role=row.role,
                phase=row.phase,
                made_by=facts.makers.get(row.pk, ""),
                artifacts=tuple(facts.made.get(row.pk, ())),
            )
            for row in facts.steps
        ),
        diagram=mermaid(nodes, edges),
        flows=tuple(
            Flow(source=facts.labels[one], target=facts.labels[two], artifacts=tuple(sorted(names)))
            for (one, two), names in flows.items()
        ),
    )


def _use(facts: ArchiveFacts) -> Use:
    needed: dict[int, list[str]] = defaultdict(list)
    for source, target in facts.edges:
        needed[target] += facts.made.get(source, ())
    titles = {row.pk: row.title for row in facts.steps} | {facts.root.pk: facts.root.title}
    files = tuple(
        FileRow(
            path=row["name"],
            role=f"{row['type']}: {titles.get(row['task_id'], '')}",
            depends_on=tuple(dict.fromkeys(needed.get(row["task_id"], ()))),
        )
        for row in facts.artifacts
    )
    commands = [
        CommandRow(step=row.label, use=use, command=line, result=_run_result(facts, row.pk, line))
        for row in facts.steps
        for use, planned in (("run", row.run), ("verify", row.verify))
        for line in (" ".join(map(str, one.get("argv", ()))) for one in planned)
    ]
    return Use(files=files, configuration=_settings(facts), commands=tuple(commands))


def _run_result(facts: ArchiveFacts, step_id: int, line: str) -> str:
    outcome, code = facts.runs.get(step_id, {}).get(line, ("", None))
    return f"{outcome} ({code})" if code is not None else outcome


def _settings(facts: ArchiveFacts) -> tuple[Setting, ...]:
    project = facts.root.project
    policy = project.policy
    found = {
        "policy_version": str(project.policy_version),
        **{f"thresholds.{name}": str(value)
           for name, value in policy.thresholds.model_dump(mode="json").items()},
        "commands.allow": ", ".join(" ".join(one) for one in policy.commands.allow),
        "resources": ", ".join(sorted({str(one) for row in facts.steps for one in row.resources})),
    }  # fmt: skip
    return tuple(Setting(name=name, value=value) for name, value in found.items() if value)


def _audit(facts: ArchiveFacts, words: Words) -> Compliance:
    exceptions = _exceptions(facts, words)
    labels = facts.labels
    return Compliance(
        state=WITH_EXCEPTIONS if exceptions else PASSED,
        exceptions=tuple(exceptions),
        checks=tuple(_checks(facts, words)),
        findings=tuple(
            Finding(
                id=str(row.pk),
                step=labels.get(row.task_id, ""),
                severity=row.severity,
                category=row.category,
                title=row.title,
                status=FINDING_STATES.get(row.status, "OPEN"),
                outcome=row.status,
            )
            for row in facts.defects
        ),
        decisions=tuple(
            DecisionRow(
                kind=row.kind,
                question=row.question,
                verdict=row.verdict or row.status,
                by=decided_by(row),
                why=row.reason,
                at=row.decided_at.isoformat(timespec="seconds") if row.decided_at else "",
            )
            for row in facts.decisions
        ),
        deviations=tuple(
            Departure(change=row.change, step=row.step_key, by=row.actor, why=row.reason)
            for row in facts.deviations
        ),
        lessons=tuple(_lessons(facts, words)[:MOST_LESSONS]),
    )


def decided_by(decision: Decision) -> str:
    """Who gave a verdict: a person by name, or a policy by its id."""
    if decision.decided_by is not None:
        return f"human:{decision.decided_by.get_username()}"
    return f"policy:{decision.decided_by_policy}" if decision.decided_by_policy else ""


def _exceptions(facts: ArchiveFacts, words: Words) -> list[str]:
    """Name everything that was let pass, by whom and why."""
    found: list[str] = []
    if facts.waiver is not None:
        why = facts.waiver.reason or words["no_reason"]
        found.append(words["ex_waived"].format(by=decided_by(facts.waiver), why=why))
    said = {row.defect_id: row for row in facts.decisions if row.verdict == "accept_as_is"}
    for row in facts.defects:
        if row.status == DefectStatus.ACCEPTED_AS_IS:
            verdict = said.get(row.pk)
            by = decided_by(verdict) if verdict is not None else words["by_rule"]
            why = verdict.reason if verdict is not None else words["no_reason"]
            found.append(
                words["ex_defect"].format(severity=row.severity, title=row.title, by=by, why=why)
            )
    skips = {row.step_key: row for row in facts.deviations if row.change != "added"}
    for step in facts.steps:
        if step.cancel_reason == SKIPPED_REASON:
            skip = skips.get(step.label.rpartition("/")[2])
            by, why = (skip.actor, skip.reason) if skip is not None else ("", words["no_reason"])
            found.append(words["ex_skipped"].format(step=step.label, by=by, why=why))
    if facts.plan is not None and facts.plan.is_override:
        found.append(words["ex_override"].format(**_override(facts, words)))
    return found


def _override(facts: ArchiveFacts, words: Words) -> dict[str, str]:
    for row in reversed(facts.decisions):
        if row.kind == DecisionKind.PLAN_REJECTED and row.verdict == "accept":
            return {"by": decided_by(row), "why": row.reason or words["no_reason"]}
    return {"by": "", "why": words["no_reason"]}


def _checks(facts: ArchiveFacts, words: Words) -> list[AuditRow]:
    rows: list[AuditRow] = []
    audit = facts.plan_audit
    if audit is not None:
        rows.append(AuditRow(category=words["c_plan"], status=audit.verdict, figure=audit.backend))
    if facts.blueprint is not None:
        digest = facts.blueprint.sha256
        rows.append(
            AuditRow(
                category=words["c_blueprint"],
                status=f"v{facts.blueprint.number}",
                figure=f"sha256 {digest}",
            )
        )
    for layer, counts in facts.layers.items():
        figure = words["f_layer"].format(
            passed=counts[LayerOutcome.PASSED],
            failed=counts[LayerOutcome.FAILED],
            impossible=counts[LayerOutcome.NOT_POSSIBLE],
        )
        rows.append(_row(words["c_layer"].format(layer=layer), figure, counts["failed"]))
    rows.append(
        _row(
            words["c_review"],
            words["f_review"].format(passed=facts.reviews["pass"], failed=facts.reviews["fail"]),
            facts.reviews["fail"],
        )
    )
    return [*rows, *_run_checks(facts, words)]


def _run_checks(facts: ArchiveFacts, words: Words) -> list[AuditRow]:
    outcomes = [outcome for runs in facts.runs.values() for outcome, _ in runs.values()]
    passed = sum(one == LayerOutcome.PASSED for one in outcomes)
    states = [FINDING_STATES.get(row.status, "OPEN") for row in facts.defects]
    fixed, left = states.count("FIXED"), states.count("OPEN")
    return [
        _row(
            words["c_commands"],
            words["f_commands"].format(passed=passed, all=len(outcomes)),
            len(outcomes) - passed,
        ),
        _row(words["c_defects"], words["f_defects"].format(fixed=fixed, open=left), left),
    ]


def _row(category: str, figure: str, bad: int) -> AuditRow:
    """Judge a line of the audit table: what once failed and was fixed since is a warning."""
    return AuditRow(category=category, status="WARN" if bad else "PASSED", figure=figure)


def _lessons(facts: ArchiveFacts, words: Words) -> list[Lesson]:
    """Earlier failures with their causes, then what agents advise in their hand-offs."""
    failures: list[tuple[str, Mapping[str, Any]]] = [
        (facts.key, one) for one in facts.root.failure_context
    ]
    for row in facts.steps:
        if row.pk != facts.root.pk:
            failures += [(row.label, one) for one in row.failures]
    found = [
        Lesson(
            source=f"{name}: "
            + words["failed_attempt"].format(
                attempt=one.get("attempt", ""), kind=one.get("class", "")
            ),
            text=str(one.get("root_cause", "")),
        )
        for name, one in failures
    ]
    for task_id, body in facts.handoffs:
        source = words["handoff_of"].format(step=facts.labels.get(task_id, ""))
        found += [Lesson(source=source, text=text) for text in advice_of(body)]
    return found


def advice_of(handoff: str) -> Sequence[str]:
    """What a JSON hand-off says to whoever comes next: problems with their solution, and advice."""
    try:
        said = json.loads(handoff)
    except ValueError:
        return ()
    if not isinstance(said, dict):
        return ()
    problems = [
        f"{one.get('what', '')}: {one.get('how_solved', '')}"
        for one in said.get("problems") or ()
        if isinstance(one, dict)
    ]
    return [*problems, *(str(one) for one in said.get("advice") or () if isinstance(one, str))]


def _impact(facts: ArchiveFacts) -> tuple[Impact, ...]:
    """Who outside this task has read what it delivered."""
    readers: dict[tuple[str, int], set[int]] = defaultdict(set)
    for _, reader, name, version in facts.reads:
        if reader not in facts.labels:
            readers[name, version].add(reader)
    keys = facts.outside_keys({pk for ids in readers.values() for pk in ids})
    return tuple(
        Impact(path=name, version=version, readers=tuple(sorted(keys[pk] for pk in ids)))
        for (name, version), ids in sorted(readers.items())
    )
