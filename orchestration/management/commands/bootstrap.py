"""Make a fresh installation usable: the roles, Sir's account, the demo project.

`manage.py serve` calls it at each start; where everything is there already it changes nothing.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orchestration.errors import Conflict
from orchestration.management.operator import errors_in_words
from orchestration.models import Project, Task
from orchestration.services.accounts import ensure_sir
from orchestration.services.projects import create_project
from orchestration.services.work import SYSTEM
from orchestration.workflows.playbook import submit_playbook

DEMO_SLUG = "demo"
DEMO_KEY = "demo"
SAMPLE: Path = settings.BASE_DIR / "examples" / "sample_package"
DEMO_PLAYBOOK: Path = settings.BASE_DIR / "examples" / "playbooks" / "demo.yaml"


class Command(BaseCommand):
    """Make what is missing and say how to sign in."""

    help = "Make the roles, Sir's account and the demo project where they are missing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take whether the demo is wanted."""
        parser.add_argument(
            "--no-demo",
            action="store_true",
            default=not settings.COUNTERSIGN_DEMO,
            help="leave the demo project out; COUNTERSIGN_DEMO=0 does the same",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make what is missing. Errors: CommandError for a bad SIR_USERNAME or a broken demo."""
        with errors_in_words():
            self._ensure_account()
            if not options["no_demo"] and ensure_demo():
                self.stdout.write(
                    "What to do first: open the address below and sign in. In a few seconds the "
                    "demo asks you one question; “Decide it now” on the first page opens it."
                )

    def _ensure_account(self) -> None:
        name = settings.SIR_USERNAME
        made = ensure_sir(username=name, password=settings.SIR_PASSWORD, actor=SYSTEM)
        if made is None:
            self.stdout.write(f"Sign in as {name}.")
        elif made.generated_password:
            self.stdout.write(f"Sign in as {name} with the password {made.generated_password}")
            self.stdout.write(
                f"It is shown only now; `manage.py changepassword {name}` sets another."
            )
        else:
            self.stdout.write(f"Sign in as {name} with the password you chose.")


def ensure_demo() -> bool:
    """Make the demo project, its workspace and its task where they are missing.

    Return whether the task was made. Errors: those of `create_project` and `submit_playbook`.
    """
    project = Project.objects.filter(slug=DEMO_SLUG).first() or _create_demo_project()
    tasks = Task.objects.filter(project=project, parent__isnull=True)
    if tasks.filter(external_key=DEMO_KEY).exists():
        return False
    fill_workspace(SAMPLE, Path(project.workspace))
    try:
        submit_playbook(
            project_id=project.pk,
            path=DEMO_PLAYBOOK,
            actor=SYSTEM,
            is_trusted=True,
            external_key=DEMO_KEY,
        )
    except Conflict:
        # Another web process of the same installation was first.
        return False
    return True


def _create_demo_project() -> Project:
    try:
        return create_project(
            slug=DEMO_SLUG,
            name="Demo",
            description="A small real package with a real bug, checked and released.",
            actor=SYSTEM,
        )
    except Conflict:
        return Project.objects.get(slug=DEMO_SLUG)


def fill_workspace(source: Path, workspace: Path) -> bool:
    """Copy a directory into an empty workspace, all or nothing. Return whether it was copied."""
    workspace.mkdir(parents=True, exist_ok=True)
    if any(workspace.iterdir()):
        return False
    staged = Path(tempfile.mkdtemp(prefix=f".{workspace.name}-", dir=workspace.parent))
    try:
        shutil.copytree(
            source, staged, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        staged.chmod(workspace.stat().st_mode & 0o777)
        try:
            staged.replace(workspace)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return True
