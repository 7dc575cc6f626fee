"""The plan of S2 as typed data: what planners, playbooks and workflows hand in, and what is locked.

Source: DESIGN section 7 and FORMATS ("Plan", "Verification command").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from orchestration.contracts.commands import VerificationCommand, split_command
from orchestration.contracts.documents import (
    Document,
    fault,
    faults_of,
    field_names,
    require_json,
)
from orchestration.contracts.graph import find_cycles, phases_of
from orchestration.contracts.paths import WorkspacePath
from orchestration.errors import Fault, PlanInvalid
from orchestration.states import RiskLevel, Severity

__all__ = [
    "MAX_PLAN_BYTES",
    "MAX_STEPS",
    "ExpectedArtifact",
    "OnFailure",
    "Plan",
    "PlanStep",
    "ProposedFix",
    "TestCase",
    "VerificationCommand",
    "parse_plan",
    "split_command",
]

MAX_STEPS = 10_000
MAX_PLAN_BYTES = 8 * 1024 * 1024
MAX_PHASE = MAX_STEPS
STEP_ID_MAX_CHARACTERS = 64
ROLE_MAX_CHARACTERS = 100
MAIN_TEXT_KEYS = ("text", "risk", "assumption", "description", "title", "name")


def _step_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise fault("step_id", "must be text or a whole number")
    text = str(value).strip()
    if not text or len(text) > STEP_ID_MAX_CHARACTERS or not text.isprintable():
        raise fault("step_id", f"must be 1 to {STEP_ID_MAX_CHARACTERS} printable characters")
    return text


def _list_or_nothing(value: Any) -> Any:
    return () if value is None else value


def _some_steps(value: Any) -> Any:
    """Count before the steps are read: pydantic counts only the entries that are valid."""
    if isinstance(value, list | tuple) and not 1 <= len(value) <= MAX_STEPS:
        raise fault("steps", f"has {len(value)} steps; a plan has 1 to {MAX_STEPS}")
    return value


def _as_text(value: Any) -> Any:
    """Agents write risks as text or as small objects; both are kept as one line of text."""
    if not isinstance(value, Mapping):
        return value
    main = next((value[key] for key in MAIN_TEXT_KEYS if isinstance(value.get(key), str)), None)
    rest = [f"{key}: {held}" for key, held in value.items() if held is not main]
    return "; ".join([main, *rest] if main is not None else rest)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


StepId = Annotated[str, BeforeValidator(_step_id)]
Text = Annotated[StrictStr, BeforeValidator(_as_text), Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_list_or_nothing)]
Names = Annotated[
    tuple[Annotated[StrictStr, Field(min_length=1)], ...], BeforeValidator(_list_or_nothing)
]
StepIds = Annotated[tuple[StepId, ...], BeforeValidator(_list_or_nothing)]
Commands = Annotated[tuple[VerificationCommand, ...], BeforeValidator(_list_or_nothing)]
Paths = Annotated[tuple[WorkspacePath, ...], BeforeValidator(_list_or_nothing)]
Grade = Annotated[Severity, BeforeValidator(_lower)]
Risk = Annotated[RiskLevel, BeforeValidator(_lower)]


class ExpectedArtifact(Document):
    """Something a step must leave behind: a file in the workspace, or a named output."""

    path: WorkspacePath | None = None
    name: Annotated[StrictStr, Field(min_length=1, max_length=300)] | None = None
    type: Annotated[StrictStr, Field(max_length=40)] | None = None

    @model_validator(mode="before")
    @classmethod
    def accept_text(cls, value: Any) -> Any:
        """Take a plain string as the path."""
        if isinstance(value, str):
            return {"path": value}
        if not isinstance(value, Mapping):
            raise fault("artifact", "must be a path or an object with 'path' or 'name'")
        if value.get("path") is None and value.get("name") is None:
            raise fault("artifact", "needs 'path' or 'name'")
        return value

    @property
    def label(self) -> str:
        """The path, else the name."""
        return self.path or self.name or ""


class ProposedFix(Document):
    """A fix as somebody proposes it: words, a unified diff, commands, or any of them."""

    description: StrictStr = ""
    patch: StrictStr = ""
    commands: Commands = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be applied."""
        return not self.patch.strip() and not self.commands


class OnFailure(Document):
    """What a failing `run` of a step means: a defect of this severity, with this fix."""

    severity: Grade = Severity.HIGH
    fix: ProposedFix | None = None


class PlanStep(Document):
    """One step of a plan; it becomes a child task when the blueprint is locked."""

    id: StepId
    action: Annotated[StrictStr, Field(min_length=1)]
    title: Annotated[StrictStr, Field(max_length=300)] = ""
    depends_on: StepIds = ()
    phase: Annotated[StrictInt, Field(ge=1, le=MAX_PHASE)] | None = None
    expected_artifacts: Annotated[
        tuple[ExpectedArtifact, ...], BeforeValidator(_list_or_nothing)
    ] = ()
    verify: Commands = ()
    run: Commands = ()
    on_failure: OnFailure | None = None
    scope: Names = ()
    writes: Paths = ()
    risks: Texts = ()
    risk_level: Risk | None = None
    irreversible: StrictBool = False
    resources: Names = ()
    role: Annotated[StrictStr, Field(min_length=1, max_length=ROLE_MAX_CHARACTERS)] | None = None
    estimate_minutes: Annotated[StrictFloat, Field(allow_inf_nan=False)] | None = None
    delegate: StrictBool = True

    @field_validator("action")
    @classmethod
    def require_words(cls, action: str) -> str:
        """Require an action that says something."""
        if not action.strip():
            raise fault("action", "must not be empty")
        return action

    @field_validator("depends_on")
    @classmethod
    def name_each_once(cls, depends_on: tuple[str, ...]) -> tuple[str, ...]:
        """Keep each dependency once, in the order given."""
        return tuple(dict.fromkeys(depends_on))

    @property
    def commands(self) -> tuple[VerificationCommand, ...]:
        """Everything that this step may run: `run`, `verify`, then the commands of its fix."""
        fix = self.on_failure.fix if self.on_failure is not None else None
        return (*self.run, *self.verify, *(fix.commands if fix is not None else ()))

    @property
    def written_paths(self) -> tuple[str, ...]:
        """What the step declares to write: `writes` and the paths of its expected artifacts."""
        made = (one.path for one in self.expected_artifacts if one.path is not None)
        return tuple(dict.fromkeys((*self.writes, *made)))


class TestCase(Document):
    """A planned test case and the acceptance criteria that it covers."""

    __test__ = False

    id: StepId
    covers: Names = ()
    title: StrictStr = ""


class Metric(Document):
    """A figure to watch, and the performance constraint that it measures."""

    name: Annotated[StrictStr, Field(min_length=1)]
    constraint: StrictStr = ""
    target: StrictStr = ""


class Plan(Document):
    """A whole plan. Shape: `steps` in the author's order, ids unique, edges a DAG."""

    title: StrictStr = ""
    summary: StrictStr = ""
    assumptions: Texts = ()
    steps: Annotated[tuple[PlanStep, ...], BeforeValidator(_some_steps)]
    test_cases: Annotated[tuple[TestCase, ...], BeforeValidator(_list_or_nothing)] = ()
    rollback: Texts = ()
    metrics: Annotated[tuple[Metric, ...], BeforeValidator(_list_or_nothing)] = ()

    @cached_property
    def by_id(self) -> Mapping[str, PlanStep]:
        """The steps by their id."""
        return {step.id: step for step in self.steps}

    @cached_property
    def graph(self) -> Mapping[str, tuple[str, ...]]:
        """What each step depends on, by id."""
        return {step.id: step.depends_on for step in self.steps}


NESTED_MODELS: Mapping[str, type[Document]] = {
    "expected_artifacts": ExpectedArtifact,
    "verify": VerificationCommand,
    "run": VerificationCommand,
    "commands": VerificationCommand,
    "on_failure": OnFailure,
    "fix": ProposedFix,
    "steps": PlanStep,
    "test_cases": TestCase,
    "metrics": Metric,
}


def parse_plan(document: object, *, strict: bool = False) -> Plan:
    """Read a plan and check its graph.

    With `strict` (playbooks) an unknown key is a fault; else it is kept in `extra`.
    Errors: PlanInvalid listing every fault: wrong types, duplicate ids, unknown or own
    dependencies, each cycle, a dependency on a later phase, no step, too many, more than 8 MB.
    """
    detail = "The plan is not valid."
    size = len(require_json(document, detail=detail, error=PlanInvalid))
    if size > MAX_PLAN_BYTES:
        message = f"has {size} bytes; at most {MAX_PLAN_BYTES} are allowed"
        raise PlanInvalid(detail, errors=[Fault(path="", message=message)])
    faults: list[Fault] = []
    plan: Plan | None = None
    try:
        plan = Plan.model_validate(document)
    except ValidationError as failure:
        faults += faults_of(failure)
    entries = _entries(document) if plan is None else _entries_of(plan)
    faults += _graph_faults(list(entries))
    if strict:
        faults += _unknown_keys("", document, Plan)
    if plan is None or faults:
        raise PlanInvalid(detail, errors=faults)
    return plan


Entry = tuple[int, str, list[tuple[int, str]], int | None]
"""A step as the graph sees it: index, id, its dependencies with their indexes, own phase."""


def _entries_of(plan: Plan) -> Iterator[Entry]:
    for index, step in enumerate(plan.steps):
        yield index, step.id, list(enumerate(step.depends_on)), step.phase


def _entries(document: object) -> Iterator[Entry]:
    """Give the well-formed part of each step, so that a fault in one does not hide the others'."""
    steps = document.get("steps") if isinstance(document, Mapping) else None
    if not isinstance(steps, list | tuple):
        return
    for index, step in enumerate(steps):
        key = _known_id(step.get("id")) if isinstance(step, Mapping) else None
        if key is None:
            continue
        needed = step.get("depends_on")
        listed = needed if isinstance(needed, list | tuple) else ()
        edges = [(at, one) for at, one in enumerate(map(_known_id, listed)) if one is not None]
        phase = step.get("phase")
        yield index, key, edges, phase if type(phase) is int and phase >= 1 else None


def _known_id(value: object) -> str | None:
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip() or None if is_id else None


def _graph_faults(entries: list[Entry]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, key, _, _ in entries:
        if key in first:
            message = f"step {key!r} is already defined as steps.{first[key]}"
            yield Fault(path=f"steps.{index}.id", message=message)
        else:
            first[key] = index
    edges = [(index, key, at, one) for index, key, needed, _ in entries for at, one in needed]
    for index, key, at, one in edges:
        if one not in first:
            message = f"step {key!r} depends on {one!r}, which is no step of this plan"
            yield Fault(path=f"steps.{index}.depends_on.{at}", message=message)
        elif one == key:
            message = f"step {key!r} depends on itself"
            yield Fault(path=f"steps.{index}.depends_on.{at}", message=message)
    yield from _order_faults(entries, first)


def _order_faults(entries: list[Entry], first: Mapping[str, int]) -> Iterator[Fault]:
    graph: dict[str, list[str]] = {key: [] for key in first}
    for _, key, needed, _ in entries:
        graph[key] += [one for _, one in needed if one != key]
    for cycle in find_cycles(graph):
        named = " → ".join([*cycle, cycle[0]])
        yield Fault(
            path=f"steps.{first[cycle[0]]}.depends_on",
            message=f"the steps depend on each other in a cycle: {named}",
        )
    phases = phases_of(graph, {key: phase for _, key, _, phase in entries})
    for index, key, needed, phase in entries:
        later = [one for _, one in needed if phase and one != key and phases.get(one, 0) > phase]
        for one in later:
            message = (
                f"step {key!r} of phase {phase} depends on {one!r} of the later phase {phases[one]}"
            )
            yield Fault(path=f"steps.{index}.depends_on", message=message)


def _unknown_keys(path: str, value: object, model: type[Document]) -> Iterator[Fault]:
    """Find keys that no model knows. The nesting of the models bounds the depth."""
    if isinstance(value, list | tuple):
        for at, entry in enumerate(value):
            yield from _unknown_keys(f"{path}.{at}", entry, model)
    if not isinstance(value, Mapping):
        return
    known = (field_names(model) - {"extra"}) | ({"cmd"} if model is VerificationCommand else set())
    for key, held in value.items():
        where = f"{path}.{key}" if path else key
        if key not in known:
            yield Fault(path=where, message=f"unknown key {key!r}")
        elif key in NESTED_MODELS:
            yield from _unknown_keys(where, held, NESTED_MODELS[key])
