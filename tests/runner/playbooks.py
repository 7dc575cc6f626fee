"""Read a shipped playbook and run its commands, the way the engine does, without the engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from orchestration.contracts.plan import Plan, PlanStep, parse_plan
from orchestration.runner.command import (
    CommandResult,
    CommandSpec,
    check_expectations,
    run_command,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLAYBOOKS = EXAMPLES / "playbooks"
TOOLS = PLAYBOOKS / "tools"


def load_playbook(name: str) -> Plan:
    """Read a playbook and fill in its two placeholders."""
    document = yaml.safe_load((PLAYBOOKS / name).read_text(encoding="utf-8"))
    return parse_plan(fill_in(document), strict=True)


def fill_in(value: Any) -> Any:
    """Replace the placeholders in every text of a document."""
    if isinstance(value, str):
        return value.replace("{python}", sys.executable).replace("{playbook_dir}", str(PLAYBOOKS))
    if isinstance(value, Mapping):
        return {key: fill_in(held) for key, held in value.items()}
    return [fill_in(held) for held in value] if isinstance(value, list) else value


def run_argv(workspace: Path, *argv: str, **options: Any) -> tuple[CommandResult, str]:
    """Run one command. Shape: its result and all it printed."""
    pieces: list[str] = []
    result = run_command(
        CommandSpec(argv=argv, workspace=workspace, **options),
        on_output=pieces.append,
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    return result, "".join(pieces)


def run_tool(workspace: Path, tool: str, *arguments: str) -> tuple[CommandResult, str]:
    """Run one of the playbooks' tools."""
    return run_argv(workspace, sys.executable, str(TOOLS / tool), *arguments)


def run_step(workspace: Path, step: PlanStep) -> CommandResult:
    """Run a step's command and return how it ended."""
    (command,) = step.run
    result, _ = run_argv(workspace, *command.argv, timeout_seconds=command.timeout_seconds or 600.0)
    return result


def verify_step(workspace: Path, step: PlanStep) -> tuple[str, ...]:
    """Run a step's checks. Shape: one sentence a fault, missing artifacts included."""
    faults = [
        f"{artifact.path} is missing or empty"
        for artifact in step.expected_artifacts
        if not (workspace / artifact.label).is_file()
        or not (workspace / artifact.label).stat().st_size
    ]
    for command in step.verify:
        expectations: dict[str, Any] = {
            "expect_exit_code": command.expect_exit_code,
            "expect_stdout_contains": command.expect_stdout_contains,
        }
        result, _ = run_argv(workspace, *command.argv, **expectations)
        spec = CommandSpec(argv=command.argv, workspace=workspace, **expectations)
        faults += check_expectations(spec, result)
    return tuple(faults)
