"""The repository as a whole: its top level, its words, its jobs and its migrations."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command

from config.celery import SCHEDULE, app
from orchestration import enqueue, jobs
from tests.shape.sources import ROOT, TOP_LEVEL, named

# A place on somebody's machine is of no use to anybody else.
MACHINE_PLACE = re.compile(r"(?<![\w.$}/-])/(?:home|root|work|Users|tmp/[a-z]+-\d)/[\w.-]+")
TEXT_ENDINGS = frozenset(
    {".py", ".md", ".html", ".txt", ".toml", ".yaml", ".yml", ".js", ".css", ".sh", ".po", ".json"}
)


def tracked_files() -> list[Path]:
    git = shutil.which("git")
    assert git, "the shape tests list the repository with git"
    listed = subprocess.run(  # noqa: S603  # fixed arguments
        [git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} <= TOP_LEVEL


def test_no_file_names_a_place_on_one_machine() -> None:
    assert not [
        f"{named(path, number)} {found.group()}"
        for path in tracked_files()
        if path.suffix in TEXT_ENDINGS and "vendor" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := MACHINE_PLACE.search(line))
    ]


def test_every_job_that_is_named_is_registered() -> None:
    app.finalize()
    named_jobs = {*enqueue.JOB_NAMES, *(str(entry["task"]) for entry in SCHEDULE.values())}
    registered = {name for name in app.tasks if name.startswith(f"{jobs.__name__}.")}
    assert named_jobs == registered


def test_every_scheduled_wake_up_expires() -> None:
    assert all(entry["options"]["expires"] > entry["schedule"] for entry in SCHEDULE.values())


@pytest.mark.django_db
def test_models_have_their_migrations() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
