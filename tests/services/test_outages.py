"""A planned command that meets a network that is not there waits; one without its program fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from orchestration.models import Assignment, Defect, Project, Task, ValidationPackage, Verification
from orchestration.services.sweeping import sweep
from tests.factories import child, drive, fresh, new_project, step, submit_plan

pytestmark = pytest.mark.django_db(transaction=True)
NO_NETWORK = "sh -c 'test -f up || { echo curl: Could not resolve host: example.org; exit 6; }'"
DOWN = [NO_NETWORK, "sh -c 'echo go: dial tcp: lookup proxy; exit 1'"]


def project_with(*, retries: int, **thresholds: int) -> Project:
    """A project that lets passing causes back off so often."""
    return new_project(
        "demo", policy={"limits": {"transient_retries": retries}, "thresholds": thresholds}
    )


def wait_over(project: Project) -> int:
    """Let the wait of whatever backs off be over. Return how many there were."""
    rows = Assignment.objects.filter(project=project, status="queued", not_before__isnull=False)
    count = rows.update(not_before=timezone.now())
    Task.objects.filter(project=project, replan_at__isnull=False).update(replan_at=timezone.now())
    return count


def packages(project: Project) -> list[tuple[str, str]]:
    """Verdict and class of each package."""
    rows = ValidationPackage.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("verdict", "failure_class"))


@pytest.mark.parametrize("command", DOWN)
def test_a_step_whose_command_meets_an_outage_backs_off_and_burns_no_attempt(command: str) -> None:
    project = project_with(retries=2, step_attempts=1)
    root = submit_plan(project, step("1", run=[command]))
    drive(project)
    held = Assignment.objects.get(task=child(root, "1"), seat="executor")
    assert (held.status, held.transient_count, child(root, "1").tries) == ("queued", 1, 0)
    assert [wait_over(project), drive(project) > 0] == [1, True]
    assert packages(project) == []
    wait_over(project)
    drive(project)
    assert packages(project) == [("INDETERMINATE", "environment")]
    assert fresh(root).failure_count == 1
    assert command.split()[0] in ValidationPackage.objects.get().root_cause


@pytest.mark.parametrize("command", DOWN)
def test_a_check_that_meets_an_outage_backs_off_and_is_no_defect(command: str) -> None:
    project = project_with(retries=1)
    root = submit_plan(project, step("1", verify=[command]))
    drive(project)
    held = Assignment.objects.get(task=child(root, "1"), seat="qa")
    assert (held.status, held.transient_count) == ("queued", 1)
    assert child(root, "1").status == "review"
    wait_over(project)
    drive(project)
    row = Verification.objects.get(task=child(root, "1"), layer="L3")
    assert (row.outcome, row.finding_key) == ("not_possible", "verify:0")
    assert not Defect.objects.exists()
    assert packages(project) == [("INDETERMINATE", "environment")]
    root = fresh(root)
    assert (root.status, root.failure_count, root.transient_failures) == ("failed", 0, 1)
    assert root.replan_at is not None


def test_the_step_is_checked_again_once_the_outage_is_over() -> None:
    project = project_with(retries=1)
    root = submit_plan(project, step("1", verify=[NO_NETWORK]), step("2"))
    drive(project)
    wait_over(project)
    drive(project)
    assert packages(project) == [("INDETERMINATE", "environment")]
    first, other = child(root, "1"), child(root, "2")
    (Path(project.workspace) / "up").touch()
    wait_over(project)
    sweep()
    drive(project)
    assert (fresh(root).status, fresh(root).failure_count) == ("done", 0)
    assert packages(project)[-1] == ("GO", "")
    assert child(root, "1").pk != first.pk
    assert child(root, "2").pk == other.pk


def test_a_check_that_fails_beside_an_outage_is_an_answer_at_once() -> None:
    project = project_with(retries=5)
    submit_plan(project, step("1", verify=[NO_NETWORK, "false"]))
    drive(project)
    assert Defect.objects.get().evidence["command"] == "false"


@pytest.mark.parametrize("where", ["run", "verify"])
def test_a_command_that_may_not_run_as_it_is_written_is_a_fault_of_configuration(
    where: str,
) -> None:
    project = project_with(retries=5, step_attempts=1, max_retries=1)
    rest: dict[str, Any] = {where: [{"cmd": "true", "cwd": "nowhere"}]}
    submit_plan(project, step("1", **rest))
    drive(project)
    assert packages(project) == [("NO-GO", "config_error")]
    assert not Defect.objects.exists()


def test_a_file_of_the_work_that_is_missing_is_a_failed_check() -> None:
    project = project_with(retries=5)
    submit_plan(project, step("1", verify=["./check.sh"]))
    drive(project)
    assert Defect.objects.get().evidence["command"] == "./check.sh"
