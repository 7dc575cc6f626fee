"""Create an agent: `manage.py create_agent NAME [--scopes a,b] [--project SLUG] [--quiet]`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from orchestration.management.operator import (
    OperatorCommand,
    errors_in_words,
    find_project,
    operator_actor,
)
from orchestration.scopes import DEFAULT_SCOPES, Scope
from orchestration.services.agents import create_agent


class Command(OperatorCommand):
    """Create an agent and print its token, which nobody sees again."""

    help = "Create an agent and print its token once. Scopes: " + ", ".join(Scope)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name, what it may do and where."""
        parser.add_argument("name", help="letters of any script, digits, - _ . @")
        parser.add_argument("--scopes", default=",".join(DEFAULT_SCOPES), help="comma list")
        parser.add_argument(
            "--project", action="append", default=[], help="only this one; may be given again"
        )
        parser.add_argument("--quiet", action="store_true", help="print the token alone")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it. Errors: CommandError for a bad or taken name, scope or project."""
        with errors_in_words():
            agent, token = create_agent(
                name=options["name"],
                actor=operator_actor(),
                scopes=[one.strip() for one in options["scopes"].split(",") if one.strip()],
                projects=[find_project(slug) for slug in options["project"]],
            )
        if options["quiet"]:
            self.stdout.write(token)
            return
        where = ", ".join(options["project"]) or "every project"
        self.stdout.write(f"Created agent {agent.name} ({', '.join(agent.scopes)}) in {where}.")
        self.stdout.write(f"Its token, shown only now: {token}")
