"""Submit a text: `manage.py submit SLUG TEXT`. The same door as the API's and the dashboard's."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from config.datadir import holder_of
from orchestration.management.operator import (
    OperatorCommand,
    errors_in_words,
    find_project,
    operator_actor,
    read_text_argument,
)
from orchestration.workflows.dispatch import Dispatched, dispatch_text, list_workflows


class Command(OperatorCommand):
    """Hand a message or a slash command to a project."""

    help = "Submit a message, or a slash command: " + ", ".join(
        f"/{one.name}" for one in list_workflows()
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the project and the text."""
        parser.add_argument("slug", help="the project")
        parser.add_argument("text", help="the text; - reads it from standard input")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Submit it and say what became of it. Errors: CommandError saying what is wrong."""
        with errors_in_words():
            project = find_project(options["slug"])
            text = read_text_argument(options["text"])
            sent = dispatch_text(project_id=project.pk, text=text, actor=operator_actor())
        self.stdout.write(f"{sent.task} {describe_outcome(sent)}")
        if not settings.REDIS_URL and holder_of(settings.COUNTERSIGN_DATA_DIR) is None:
            self.stdout.write("No server is running: the work starts with `make run`.")


def describe_outcome(sent: Dispatched) -> str:
    """Say in words what S0 made of a text."""
    if sent.assessment is None:
        return f"goes the way it named: {sent.task.route}"
    said = sent.assessment
    found = ", ".join(dict.fromkeys(str(one["text"]) for one in said.signals[:5]))
    outcome = "goes direct" if said.outcome == "direct" else "is assessed"
    return f"{outcome} (S0: {said.rule}{f'; {found}' if found else ''})"
