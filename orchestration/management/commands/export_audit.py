"""Export the audit trail: `manage.py export_audit [--format jsonl|csv] [--output FILE]`."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from orchestration.management.operator import OperatorCommand, errors_in_words, find_project
from orchestration.services.audit import export_events
from orchestration.services.audit_export import csv_lines, json_lines

WRITERS = {"jsonl": json_lines, "csv": csv_lines}


class Command(OperatorCommand):
    """Write the sealed events, oldest first."""

    help = "Export the audit trail of one project or of all, as JSON Lines or CSV."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the project, the form and where to write."""
        parser.add_argument("--project", help="only the events of this project")
        parser.add_argument("--format", choices=sorted(WRITERS), default="jsonl")
        parser.add_argument("--after", type=int, default=0, help="only positions after this one")
        parser.add_argument("--output", help="a new file; standard output when left out")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Export. Errors: CommandError for an unknown project or a file that cannot be made."""
        with errors_in_words():
            slug = options["project"]
            project_id = find_project(slug).pk if slug else None
        events = export_events(project_id=project_id, after=options["after"])
        lines = WRITERS[options["format"]](events)
        if not options["output"]:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        count = 0
        try:
            # 0600: it holds every text of every task.
            handle = os.open(options["output"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise CommandError(f"cannot create {options['output']}: {error.strerror}") from None
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            for line in lines:
                stream.write(line)
                count += 1
        rows = count - (options["format"] == "csv")
        self.stdout.write(f"Wrote {rows} events to {Path(options['output']).name}")
