"""Check the state of projects: `manage.py check_integrity [SLUG …]`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from orchestration.management.operator import (
    OperatorCommand,
    errors_in_words,
    find_project,
    operator_actor,
)
from orchestration.models import Project
from orchestration.services.integrity import Checked, check_project
from orchestration.states import ProjectStatus


class Command(OperatorCommand):
    """Look for state that cannot be, and stop the projects that have any."""

    help = (
        "Check projects for dangling or cyclic dependencies, illegal states, rows that their "
        "history does not explain, broken seals and changed artifacts. A project with any is put "
        "in safe stop and Sir is asked. Exit code 1 when something is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the projects to check."""
        parser.add_argument("slugs", nargs="*", metavar="SLUG", help="all projects when left out")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check. Errors: CommandError naming how many faults there are."""
        with errors_in_words():
            rows = [find_project(slug) for slug in options["slugs"]] or list(
                Project.objects.exclude(status=ProjectStatus.ARCHIVED.value).order_by("slug")
            )
        broken = [found for found in map(self._check, rows) if found.faults]
        if broken:
            count = sum(len(found.faults) for found in broken)
            raise CommandError(f"{count} faults in {len(broken)} of {len(rows)} projects.")
        self.stdout.write(f"Nothing is wrong in {len(rows)} projects.")

    def _check(self, project: Project) -> Checked:
        found = check_project(project_id=project.pk, actor=operator_actor(), source="command")
        for fault in found.faults:
            self.stdout.write(f"{project.slug}: {fault.kind}: {fault.detail}")
        if found.faults:
            stands = "in safe stop" if found.is_stopped else found.project.status
            self.stdout.write(f"{project.slug} stands {stands}.")
        return found
