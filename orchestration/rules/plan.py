"""Read a parsed plan: coverage of a specification, commands, risk, what a re-plan keeps.

The schema and the graph are checked by `contracts.plan.parse_plan`.
Source: DESIGN sections 4 (rules 1 and 4) and 7, FORMATS ("Plan").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestration.contracts.plan import Plan, PlanStep, VerificationCommand
from orchestration.errors import Fault, PlanInvalid
from orchestration.states import RiskLevel

CRITERION = re.compile(r"\bAC-\d{1,4}\b")
CONSTRAINT = re.compile(r"\bPC-\d{1,4}\b")
RISK_ORDER = (RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH, RiskLevel.CRITICAL)

MAX_TITLE = 300

CommandKind = Literal["run", "verify", "fix"]


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """One command of a plan, and where it stands."""

    step_id: str
    kind: CommandKind
    command: VerificationCommand


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """What a new plan does to the steps of an old one. Shape: keys in plan order."""

    kept: tuple[str, ...]
    changed: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]


def step_words(step: PlanStep) -> tuple[str, str]:
    """The title and the text that a step has as a task; the text only where it says more."""
    has_more = bool(step.title) or len(step.action) > MAX_TITLE
    return step.title or step.action[:MAX_TITLE], step.action if has_more else ""


def compare_plans(old: Mapping[str, str], new: Mapping[str, str]) -> PlanComparison:
    """Compare two plans by step key and definition hash. Kept means same key and same hash."""
    common = [key for key in new if key in old]
    return PlanComparison(
        kept=tuple(key for key in common if old[key] == new[key]),
        changed=tuple(key for key in common if old[key] != new[key]),
        added=tuple(key for key in new if key not in old),
        dropped=tuple(key for key in old if key not in new),
    )


def planned_commands(plan: Plan) -> Iterator[PlannedCommand]:
    """Walk over every command of a plan, step by step: run, verify, then those of the fix."""
    for step in plan.steps:
        for command in step.run:
            yield PlannedCommand(step.id, "run", command)
        for command in step.verify:
            yield PlannedCommand(step.id, "verify", command)
        fix = step.on_failure.fix if step.on_failure is not None else None
        for command in fix.commands if fix is not None else ():
            yield PlannedCommand(step.id, "fix", command)


def highest_risk(plan: Plan) -> RiskLevel:
    """Give the highest risk level that a step declares, else low."""
    declared = (step.risk_level for step in plan.steps if step.risk_level is not None)
    return max(declared, key=RISK_ORDER.index, default=RiskLevel.LOW)


def criteria_in(text: str) -> list[str]:
    """Find the acceptance criteria that a specification names (`AC-01`), each once, in order."""
    return list(dict.fromkeys(CRITERION.findall(text)))


def constraints_in(text: str) -> list[str]:
    """Find the performance constraints that a specification names (`PC-01`), each once."""
    return list(dict.fromkeys(CONSTRAINT.findall(text)))


def require_coverage(
    plan: Plan, *, criteria: Sequence[str], performance_constraints: Sequence[str] = ()
) -> None:
    """Require a check for each acceptance criterion and a metric for each performance constraint.

    A criterion is covered by a test case that names it, or by a step that names it and has a verify
    command; a constraint by a metric of its name, or one that names it. Errors: PlanInvalid
    listing every one that is not covered.
    """
    tested = {one for case in plan.test_cases for one in case.covers}
    tested.update(*(_criteria_of_verified_steps(plan)))
    said = [text for metric in plan.metrics for text in (metric.name, metric.constraint)]
    measured = {*said, *(one for text in said for one in constraints_in(text))}
    faults = [
        Fault(path="test_cases", message=f"{one} has no test case and no verify command")
        for one in criteria
        if one not in tested
    ]
    faults += [
        Fault(path="metrics", message=f"the performance constraint {one!r} has no metric")
        for one in performance_constraints
        if one not in measured
    ]
    if faults:
        raise PlanInvalid("The plan does not cover its specification.", errors=faults)


def _criteria_of_verified_steps(plan: Plan) -> Iterator[list[str]]:
    for step in plan.steps:
        if step.verify:
            covers = step.extra.get("covers", [])
            named = covers if isinstance(covers, list) else [covers]
            yield criteria_in(" ".join([step.action, *map(str, named)]))
