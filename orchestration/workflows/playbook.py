"""Playbooks: a YAML file with a title and a plan, run with no model and no agent.

Its commands are trusted only where an operator starts it on the command line; however else one
comes in, commands outside the allow-list wait for Sir. Source: DESIGN sections 7, 8 and 19.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.contracts.plan import (
    MAX_PLAN_BYTES,
    Plan,
    PlanStep,
    VerificationCommand,
    parse_plan,
)
from orchestration.contracts.yaml_text import YamlText, load_yaml
from orchestration.errors import Fault, Invalid, NotFound, PlanInvalid
from orchestration.models import Project, Task
from orchestration.policy import Policy
from orchestration.rules.plan_audit import Level, audit_plan
from orchestration.rules.profiles import known_roles
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import Actor

BACKEND = "playbook"
PLACEHOLDERS = ("{python}", "{playbook_dir}")
"""Words of a command that stand for our own Python, and for the directory of the playbook."""

NO_DIRECTORY = (
    "{playbook_dir} names no directory in an upload. Write the full path on the server, or a path "
    "inside the workspace."
)
BESIDE_IT = (
    "The playbook names files beside it, and an upload brings none. Change the steps below, or run "
    "it on the server: manage.py run_playbook FILE --project SLUG"
)


class PlaybookInvalid(Invalid):
    """A file is no playbook: not a mapping, or without a title."""

    code = "playbook_invalid"


@dataclass(frozen=True, slots=True)
class Playbook:
    """A checked playbook. Shape: `plan` has its placeholders filled in."""

    path: Path
    title: str
    plan: Plan
    source: YamlText


def read_playbook(path: Path) -> Playbook:
    """Read and check a playbook file.

    Errors: NotFound when there is no such file; TooLarge over 8 MB; YamlInvalid and PlanInvalid
    with the line of every fault; PlaybookInvalid when it is no mapping or has no title.
    """
    return playbook_of(load_yaml(path, limit_bytes=MAX_PLAN_BYTES), path)


def playbook_of(source: YamlText, path: Path, *, has_directory: bool = True) -> Playbook:
    """Check the text of a playbook. One that was uploaded has no directory of its own.

    Errors: as `read_playbook`; PlanInvalid for `{playbook_dir}` where there is none.
    """
    if not isinstance(source.value, Mapping):
        raise PlaybookInvalid(f"{path.name} must hold a title and steps, as `title:` and `steps:`")
    try:
        plan = parse_plan(source.value, strict=True)
    except PlanInvalid as error:
        faults = source.with_lines(error.errors)
        raise PlanInvalid(f"{path.name} is not a valid playbook.", errors=faults) from None
    if not plan.title.strip():
        raise PlaybookInvalid(
            f"{path.name} has no title", errors=[Fault(path="title", message="is required")]
        )
    if not has_directory:
        _require_no_directory(plan, source)
    return Playbook(path, plan.title.strip(), _fill_in(plan, path), source)


def _require_no_directory(plan: Plan, source: YamlText) -> None:
    """Refuse steps that name files beside a playbook that came without any. Errors: PlanInvalid."""
    faults = [
        Fault(path=f"steps.{at}", message=NO_DIRECTORY)
        for at, step in enumerate(plan.steps)
        if any(PLACEHOLDERS[1] in word for one in _commands(step) for word in one.argv)
    ]
    if faults:
        raise PlanInvalid(BESIDE_IT, errors=source.with_lines(faults))


def _commands(step: PlanStep) -> Iterator[VerificationCommand]:
    yield from step.run
    yield from step.verify
    if step.on_failure is not None and step.on_failure.fix is not None:
        yield from step.on_failure.fix.commands


def require_audited(playbook: Playbook, policy: Policy) -> None:
    """Raise unless the playbook would pass its audit, so that nobody waits for a revision.

    Errors: PlanInvalid with the line of every finding that asks for a revision.
    """
    outcome = audit_plan(
        playbook.plan,
        policy_allow=policy.commands.allow,
        known_roles=known_roles(),
        # A missing tool is only a suggestion; the auditor seat looks for them and records it.
        tools_available=lambda _tool: True,
        planner=BACKEND,
    )
    places = {step.id: index for index, step in enumerate(playbook.plan.steps)}
    faults = [
        Fault(path=f"steps.{places[one.steps[0]]}" if one.steps else "", message=one.text)
        for one in outcome.findings
        if one.level is Level.REVISE
    ]
    if faults:
        raise PlanInvalid(
            f"{playbook.path.name} would not pass its audit.",
            code="playbook_audit",
            errors=playbook.source.with_lines(faults),
        )


def submit_playbook(
    *,
    project_id: int,
    path: Path,
    actor: Actor,
    is_trusted: bool = False,
    external_key: str = "",
) -> Task:
    """Submit a playbook's plan as a new root task of a project.

    `is_trusted` is for the operator's command line only: then its commands run unasked.
    Errors: as `read_playbook`, `require_audited` and `create_task`.
    """
    return submit_read_playbook(
        read_playbook(path),
        project_id=project_id,
        actor=actor,
        is_trusted=is_trusted,
        external_key=external_key,
    )


def submit_read_playbook(
    playbook: Playbook,
    *,
    project_id: int,
    actor: Actor,
    is_trusted: bool = False,
    external_key: str = "",
) -> Task:
    """Submit a playbook that was read. Errors: as `submit_playbook`, but for reading."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        raise NotFound("There is no such project.")
    require_audited(playbook, project.policy)
    new = NewTask(
        text=playbook.plan.summary.strip() or playbook.title,
        title=playbook.title,
        external_key=external_key,
        plan=playbook.plan.to_document(),
        is_trusted=is_trusted,
        backend=BACKEND,
    )
    return create_task(project_id=project_id, new=new, actor=actor)


def _fill_in(plan: Plan, path: Path) -> Plan:
    """Put real paths in place of the placeholders, after splitting: a space in one stays inside."""
    values = dict(zip(PLACEHOLDERS, (sys.executable, str(path.resolve().parent)), strict=True))
    steps = tuple(_fill_step(step, values) for step in plan.steps)
    return plan.model_copy(update={"steps": steps})


def _fill_step(step: PlanStep, values: Mapping[str, str]) -> PlanStep:
    changed: dict[str, Any] = {
        "run": tuple(_fill_commands(step.run, values)),
        "verify": tuple(_fill_commands(step.verify, values)),
    }
    failure = step.on_failure
    if failure is not None and failure.fix is not None:
        commands = tuple(_fill_commands(failure.fix.commands, values))
        fix = failure.fix.model_copy(update={"commands": commands})
        changed["on_failure"] = failure.model_copy(update={"fix": fix})
    return step.model_copy(update=changed)


def _fill_commands(
    commands: tuple[VerificationCommand, ...], values: Mapping[str, str]
) -> Iterator[VerificationCommand]:
    for command in commands:
        yield command.model_copy(
            update={"argv": tuple(_fill_word(word, values) for word in command.argv)}
        )


def _fill_word(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
