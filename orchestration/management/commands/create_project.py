"""Create a project: `manage.py create_project SLUG [--workspace DIR] [--policy FILE]`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.contracts.documents import require_json
from orchestration.contracts.yaml_text import load_yaml
from orchestration.errors import PolicyInvalid
from orchestration.management.operator import (
    OperatorCommand,
    errors_in_words,
    operator_actor,
    operator_workspace,
)
from orchestration.policy import Policy
from orchestration.services.projects import create_project

MAX_POLICY_BYTES = 1024 * 1024


class Command(OperatorCommand):
    """Create a project with its workspace and its policy."""

    help = "Create a project. The policy file is YAML or JSON and names only what it changes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the slug and what is not the default."""
        parser.add_argument("slug", help="1 to 60 of a-z, 0-9 and -")
        parser.add_argument("--name", default="", help="the name shown; the slug when left out")
        parser.add_argument("--workspace", help="a directory; made when missing")
        parser.add_argument("--policy", help="a YAML or JSON file")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it. Errors: CommandError saying what is wrong."""
        with errors_in_words():
            policy = _read_policy(options["policy"]) if options["policy"] else {}
            workspace: Path | None = None
            if options["workspace"]:
                workspace = operator_workspace(options["workspace"], must_exist=False)
            project = create_project(
                slug=options["slug"],
                name=options["name"],
                workspace=str(workspace) if workspace else None,
                policy=policy,
                extra_roots=(workspace,) if workspace else (),
                actor=operator_actor(),
            )
        self.stdout.write(f"Created {project.slug}; its workspace is {project.workspace}")


def _read_policy(name: str) -> Mapping[str, Any]:
    """Read a policy file. Errors: PolicyInvalid with the line of every fault; see `load_yaml`."""
    source = load_yaml(Path(name).expanduser(), limit_bytes=MAX_POLICY_BYTES)
    if source.value is None:
        return {}
    if not isinstance(source.value, Mapping):
        raise PolicyInvalid(f"{name} must hold an object with the parts of a policy")
    document = dict(source.value)
    try:
        require_json(document, detail=f"{name} is not valid.", error=PolicyInvalid)
        Policy.parse(document)
    except PolicyInvalid as error:
        faults = source.with_lines(error.errors)
        raise PolicyInvalid(f"{name} is not a valid policy.", errors=faults) from None
    return document
