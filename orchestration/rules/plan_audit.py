"""The auditor seat `rules`: five checks of a plan, each with its findings and what they mean.

Three levels of finding.

* `revise` makes the verdict NEEDS_REVISION. It is kept for what is wrong whoever wrote the plan:
  two steps that write one path and may run at once, an irreversible step without a named risk, a
  risky step that nothing can check, a role that does not exist, an impossible time. A destructive
  command without a named risk counts only where an agent wrote the plan.
* `suggest` makes it APPROVED_WITH_SUGGESTIONS, and the check is not ok: the plan works, but could
  be better (a step that declares nothing to check, over-splitting, a tool that is not here).
* `note` is only said, for instance that a command will be asked for. The check stays ok.

So a playbook (its commands are trusted by whoever started it) and a message planned by rules (which
cannot name artifacts) are never sent back for what they cannot have. Source: DESIGN section 7.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise
from typing import Any

from orchestration.contracts.plan import Plan, PlanStep
from orchestration.errors import Invalid
from orchestration.rules.dag import ancestor_sets, successors, topological_order
from orchestration.rules.diffs import parse_diff
from orchestration.rules.plan import PlannedCommand, planned_commands
from orchestration.rules.scope import folded_words
from orchestration.states import AuditVerdict, RiskLevel

MAX_HANDOVERS = 7
MAX_MINUTES = 30 * 24 * 60
NAMED_STEPS = 5
MAX_NAMED = 50
"""Paths, roles and tools named in one audit; a plan can have thousands."""
PLAYBOOK, RULES = "playbook", "rules"
FLAGGED = frozenset({RiskLevel.MEDIUM, RiskLevel.HIGH, RiskLevel.CRITICAL})
RISKY = frozenset({RiskLevel.HIGH, RiskLevel.CRITICAL})
DESTRUCTIVE = re.compile(
    r"^rm (?:.* )?-(?:-recursive|[a-z]*r)|^(?:shred|dropdb|mkfs\S*) "
    r"|^git push\b.* (?:-f\b|--force)|^git reset --hard"
    r"|\b(?:drop (?:table|database|schema)|truncate table|delete from)\b"
    r"|^(?:kubectl|terraform|docker|helm) (?:delete|destroy|rm|uninstall)\b|^dd .*\bof=",
    re.IGNORECASE,
)


class CheckName(StrEnum):
    """The five checks of an audit."""

    COMPLETENESS = "completeness"
    DEPENDENCIES = "dependencies"
    RISK = "risk"
    RESOURCES = "resources"
    TIME = "time"


class Level(StrEnum):
    """What a finding does to the verdict."""

    REVISE = "revise"
    SUGGEST = "suggest"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. Shape: `text` names at most five steps; `steps` has them all."""

    check: CheckName
    level: Level
    code: str
    text: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """What an audit by rules says. `to_document` has the shape of an auditor's result."""

    verdict: AuditVerdict
    findings: tuple[Finding, ...]

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What does not stop the plan; it reaches the executors' prompts and the board."""
        return tuple(one.text for one in self.findings if one.level is not Level.REVISE)

    def to_document(self) -> dict[str, Any]:
        """Give verdict, the five checks and the suggestions as JSON."""
        return {
            "verdict": str(self.verdict),
            "checks": [self._check(name) for name in CheckName],
            "suggestions": list(self.suggestions),
        }

    def _check(self, name: CheckName) -> dict[str, Any]:
        found = [one for one in self.findings if one.check is name]
        said = " ".join(one.text for one in found) or "Nothing found."
        return {
            "name": str(name),
            "ok": all(one.level is Level.NOTE for one in found),
            "finding": said,
        }


def is_allowed(argv: Sequence[str], allow: Iterable[Sequence[str]]) -> bool:
    """Say whether a command starts with an allowed prefix, argument by argument."""
    return any(prefix and list(argv[: len(prefix)]) == list(prefix) for prefix in allow)


def audit_plan(
    plan: Plan,
    *,
    policy_allow: Iterable[Sequence[str]],
    known_roles: Collection[str],
    tools_available: Callable[[str], bool],
    planner: str,
    task_text: str = "",
) -> AuditOutcome:
    """Audit a plan by rules. `planner` is the seat's backend, `playbook` or `workflow`."""
    findings = (
        *_completeness(plan, planner),
        *_dependencies(plan),
        *_whole_task(plan, task_text),
        *_risk(plan, planner),
        *_resources(plan, list(policy_allow), known_roles, tools_available, planner),
        *_time(plan),
    )
    levels = {one.level for one in findings}
    verdict = AuditVerdict.APPROVED_WITH_SUGGESTIONS if findings else AuditVerdict.APPROVED
    if Level.REVISE in levels:
        verdict = AuditVerdict.NEEDS_REVISION
    return AuditOutcome(verdict, findings)


def _found(
    check: CheckName, level: Level, code: str, text: str, steps: Iterable[str]
) -> Iterator[Finding]:
    """Make one finding of many steps, or none of none. `text` has one `{steps}`."""
    named = tuple(dict.fromkeys(steps))
    if named:
        more = len(named) - NAMED_STEPS
        listed = ", ".join(named[:NAMED_STEPS]) + (f" and {more} more" if more > 0 else "")
        noun = "step" if len(named) == 1 else "steps"
        yield Finding(check, level, code, text.replace("{steps}", f"{noun} {listed}"), named)


def _has_check(step: PlanStep) -> bool:
    return bool(step.expected_artifacts or step.verify or step.run)


def _completeness(plan: Plan, planner: str) -> Iterator[Finding]:
    check = CheckName.COMPLETENESS
    unchecked = [step for step in plan.steps if not _has_check(step)]
    risky = [one.id for one in unchecked if one.irreversible or one.risk_level in RISKY]
    yield from _found(
        check,
        Level.REVISE,
        "risky_without_check",
        "Nothing can check {steps}, and the risk is high: name expected artifacts or a verify "
        "command.",
        risky,
    )
    yield from _found(
        check,
        Level.NOTE if planner == RULES else Level.SUGGEST,
        "missing_artifacts",
        "No expected artifact, verify or run command in {steps}: only what is handed in can be "
        "checked.",
        [one.id for one in unchecked if one.id not in set(risky)],
    )
    yield from _found(
        check,
        Level.SUGGEST,
        "unknown_fields",
        "Fields that the plan schema does not know were kept aside in {steps}: "
        f"{_extra_names(plan)}.",
        [one.id for one in plan.steps if one.extra],
    )
    same: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for step in plan.steps:
        if not step.run:
            same[" ".join(step.action.split()).casefold(), step.depends_on].append(step.id)
    doubled = [one for ids in same.values() if len(ids) > 1 for one in ids]
    text = "The same work seems to be planned more than once: {steps}."
    yield from _found(check, Level.SUGGEST, "repeated_step", text, doubled)


def _extra_names(plan: Plan) -> str:
    names = dict.fromkeys(name for step in plan.steps for name in step.extra)
    return ", ".join(list(names)[:NAMED_STEPS])


def _dependencies(plan: Plan) -> Iterator[Finding]:
    check = CheckName.DEPENDENCIES
    for path, steps in islice(_unordered_writers(plan), MAX_NAMED):
        text = f"Nothing orders {{steps}}, and both write {path!r}: add a dependency."
        yield from _found(check, Level.REVISE, "same_path", text, steps)
    yield from _found(
        check,
        Level.SUGGEST,
        "long_chain",
        f"More than {MAX_HANDOVERS} hand-overs in a row without a merge end in {{steps}}; every "
        "hop adds drift, so join neighbouring steps.",
        _ends_of_long_chains(plan),
    )
    if len(plan.steps) == 1 and not plan.steps[0].run:
        text = "The plan has one step, {steps}: the task could be done directly."
        yield from _found(check, Level.SUGGEST, "single_step", text, [plan.steps[0].id])


def _whole_task(plan: Plan, task_text: str) -> Iterator[Finding]:
    """Find steps that say all of their task again and may be planned in their turn."""
    text = folded_words(task_text)
    again = [
        step.id for step in plan.steps
        if text and not step.run and step.delegate and text in folded_words(step.action)
    ]  # fmt: skip
    said = "All that the task says stands in {steps}: a child is smaller than its task."
    yield from _found(CheckName.DEPENDENCIES, Level.SUGGEST, "whole_task", said, again)


def _unordered_writers(plan: Plan) -> Iterator[tuple[str, tuple[str, str]]]:
    """Find paths that two steps write without an order between them. Shape: one pair a path.

    In topological order it is enough to compare neighbours: if each needs the one before, all are
    ordered.
    """
    writers: dict[str, list[str]] = defaultdict(list)
    for key in topological_order(plan.graph):
        for path in plan.by_id[key].written_paths:
            writers[path].append(key)
    shared = {path: steps for path, steps in writers.items() if len(steps) > 1}
    if not shared:
        return
    place, needs = ancestor_sets(plan.graph)
    for path, steps in sorted(shared.items()):
        for before, after in pairwise(steps):
            if not needs[after] >> place[before] & 1:
                yield path, (before, after)
                break


def _ends_of_long_chains(plan: Plan) -> list[str]:
    """Find where chains of agents' steps end that hand over too often. Commands do not drift."""
    handovers: dict[str, int] = {}
    for key in topological_order(plan.graph):
        needed = plan.graph[key]
        before = handovers[needed[0]] if len(needed) == 1 else 0
        is_hop = len(needed) == 1 and not plan.by_id[key].run
        handovers[key] = before + 1 if is_hop else before
    after = successors(plan.graph)
    return [
        key
        for key, count in handovers.items()
        if count > MAX_HANDOVERS and not any(handovers[one] > count for one in after[key])
    ]


def _risk(plan: Plan, planner: str) -> Iterator[Finding]:
    check = CheckName.RISK
    unflagged = [step for step in plan.steps if not step.risks and step.risk_level not in FLAGGED]
    yield from _found(
        check,
        Level.REVISE,
        "irreversible_unflagged",
        "Irreversible, but no risk is named: {steps}. Name the risk and how to limit it.",
        [step.id for step in unflagged if step.irreversible],
    )
    quiet = {step.id for step in unflagged if not step.irreversible}
    destroying = [
        one.step_id
        for one in planned_commands(plan)
        if one.step_id in quiet and DESTRUCTIVE.search(" ".join(one.command.argv))
    ]
    yield from _found(
        check,
        Level.NOTE if planner == PLAYBOOK else Level.REVISE,
        "destructive_unflagged",
        "A command destroys something, but no risk is named: {steps}.",
        destroying,
    )
    yield from _found(
        check,
        Level.SUGGEST,
        "unreadable_patch",
        "The patch of the proposed fix cannot be shown, so nobody can approve it: {steps}.",
        [step.id for step in plan.steps if not _patch_is_readable(step)],
    )


def _patch_is_readable(step: PlanStep) -> bool:
    fix = step.on_failure.fix if step.on_failure is not None else None
    if fix is None or not fix.patch.strip():
        return True
    try:
        parse_diff(fix.patch)
    except Invalid:
        return False
    return True


def _resources(
    plan: Plan,
    allow: list[Sequence[str]],
    known_roles: Collection[str],
    tools_available: Callable[[str], bool],
    planner: str,
) -> Iterator[Finding]:
    check = CheckName.RESOURCES
    roles = sorted({step.role for step in plan.steps if step.role} - set(known_roles))
    for role in roles[:MAX_NAMED]:
        users = [step.id for step in plan.steps if step.role == role]
        text = f"Role {role!r} is unknown: {{steps}}."
        yield from _found(check, Level.REVISE, "unknown_role", text, users)
    commands = list(planned_commands(plan))
    yield from _missing_tools(plan, commands, tools_available)
    if planner != PLAYBOOK:
        outside = [one.step_id for one in commands if not is_allowed(one.command.argv, allow)]
        text = "Commands outside the allow-list will be asked for once, before they run: {steps}."
        yield from _found(check, Level.NOTE, "commands_to_approve", text, outside)


def _missing_tools(
    plan: Plan, commands: list[PlannedCommand], tools_available: Callable[[str], bool]
) -> Iterator[Finding]:
    """Name tools that are not on this machine. An earlier step may bring them: a suggestion."""
    users: dict[str, list[str]] = defaultdict(list)
    for step in plan.steps:
        for resource in step.resources:
            users[resource].append(step.id)
    for one in commands:
        program = one.command.argv[0]
        if "/" not in program:
            users[program].append(one.step_id)
    missing = (tool for tool in sorted(users) if not tools_available(tool))
    for tool in islice(missing, MAX_NAMED):
        text = f"{tool!r} was not found on this machine; it is needed by {{steps}}."
        yield from _found(CheckName.RESOURCES, Level.SUGGEST, "missing_tool", text, users[tool])


def _time(plan: Plan) -> Iterator[Finding]:
    check = CheckName.TIME
    given = {
        step.id: step.estimate_minutes for step in plan.steps if step.estimate_minutes is not None
    }
    yield from _found(
        check,
        Level.REVISE,
        "time_not_positive",
        "The estimate is not more than nothing: {steps}.",
        [key for key, minutes in given.items() if minutes <= 0],
    )
    yield from _found(
        check,
        Level.REVISE,
        "time_too_long",
        "The estimate is over 30 days: {steps}; split the work.",
        [key for key, minutes in given.items() if minutes > MAX_MINUTES],
    )
    if all(0 < minutes <= MAX_MINUTES for minutes in given.values()):
        text = "The longest way through the plan takes over 30 days and ends in {steps}."
        yield from _found(check, Level.REVISE, "plan_too_long", text, _late_end(plan, given))


def _late_end(plan: Plan, given: dict[str, float]) -> list[str]:
    """Find the end of the longest way through the plan, where that takes over 30 days."""
    finished: dict[str, float] = {}
    for key in topological_order(plan.graph):
        start = max((finished[one] for one in plan.graph[key]), default=0.0)
        finished[key] = start + given.get(key, 0.0)
    last = max(finished, key=lambda key: finished[key])
    return [last] if finished[last] > MAX_MINUTES else []
