"""The demo as a test sees it: a copied package, its playbook, and the way to its decision."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from orchestration.models import Project, Task
from orchestration.services.projects import create_project
from orchestration.services.work import Actor
from orchestration.workflows.playbook import submit_playbook
from tests.factories import drive, fresh

EXAMPLES = settings.BASE_DIR / "examples"
DEMO = EXAMPLES / "playbooks" / "demo.yaml"
OPERATOR = Actor("operator:test")


def copy_package(target: Path) -> Path:
    """Copy the sample package as it is in the repository."""
    leave_out = shutil.ignore_patterns("__pycache__", "reports", "dist")
    return Path(shutil.copytree(EXAMPLES / "sample_package", target, ignore=leave_out))


def project_in(directory: Path, slug: str = "book") -> Project:
    """Create a project that works in a directory outside the allowed roots, as an operator may."""
    return create_project(
        slug=slug, workspace=str(directory), extra_roots=(directory,), actor=OPERATOR
    )


def run_file(project: Project, path: Path, *, is_trusted: bool = True) -> Task:
    """Submit a playbook and work until nothing can go on by itself."""
    task = submit_playbook(project_id=project.pk, path=path, actor=OPERATOR, is_trusted=is_trusted)
    drive(project)
    return fresh(task)


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Any) -> Path:
    """Workspaces of this test's own: what one leaves behind must not meet the next."""
    root = tmp_path / "workspaces"
    settings.COUNTERSIGN_WORKSPACE_ROOTS = (root,)
    return root


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The sample package in a directory of its own."""
    return copy_package(tmp_path / "package")


@pytest.fixture
def project(db: None, package: Path) -> Project:
    """A project that works in the sample package."""
    return project_in(package)


@pytest.fixture
def demo(project: Project) -> Task:
    """The demo, run until it waits for Sir."""
    return run_file(project, DEMO)
