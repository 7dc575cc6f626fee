"""Playbooks on the engine: trust, what leaves the workspace, steps that flood or never end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration.errors import Conflict, PlanInvalid, WorkspaceError
from orchestration.models import Artifact, Assignment, LogChunk, Project, Task
from orchestration.selectors.tasks import not_ready_reason
from orchestration.services.projects import ProjectChange, create_project, update_project
from orchestration.services.working import work_until_idle
from orchestration.states import (
    DecisionKind,
    NotReadyReason,
    ProjectStatus,
    Seat,
    TaskStatus,
)
from orchestration.workflows.playbook import submit_playbook
from tests.commands.conftest import DEMO, OPERATOR, project_in, run_file
from tests.factories import SLOT, child, decide, drive, execute, fresh, new_agent, open_decision_of

pytestmark = pytest.mark.django_db
PRINT_FOR_EVER = "import sys\nwhile True: sys.stdout.write('x' * 999 + '\\n')"
SLEEP_FOR_EVER = "import time\nwhile True: time.sleep(60)"


def book(tmp_path: Path, *steps: dict[str, object]) -> Path:
    path = tmp_path / "book.yaml"
    path.write_text(json.dumps({"title": "Book", "steps": list(steps)}), encoding="utf-8")
    return path


def one_step(tmp_path: Path, *argv: str, **rest: object) -> Path:
    return book(tmp_path, {"id": "a", "action": "Do it", "run": [{"argv": list(argv)}], **rest})


def workspace_of(project: Project) -> Path:
    return Path(project.workspace)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "space"
    folder.mkdir()
    return project_in(folder)


def limit(project: Project, **limits: object) -> None:
    thresholds = {"step_attempts": 1, "max_retries": 1}
    change = ProjectChange(policy={"limits": limits, "thresholds": thresholds})
    update_project(project_id=project.pk, change=change, actor=OPERATOR)


def last_run(root: Task, key: str = "a") -> dict[str, object]:
    done = Assignment.objects.filter(task__root=root, task__step_key=key, seat=Seat.EXECUTOR.value)
    result = done.order_by("pk").last()
    assert result is not None
    assert result.result is not None
    record: dict[str, object] = result.result["runs"][-1]
    return record


def test_an_untrusted_playbook_asks_once_for_its_commands_and_runs_none(
    project: Project, tmp_path: Path
) -> None:
    path = book(
        tmp_path,
        {"id": "a", "action": "Make a", "run": ["touch made-a"]},
        {"id": "b", "action": "Make b", "run": ["touch made-b"], "verify": ["ls made-b"]},
    )
    root = run_file(project, path, is_trusted=False)

    asked = open_decision_of(project)
    assert asked.kind == DecisionKind.COMMAND_APPROVAL
    assert [one["argv"] for one in asked.content["commands"]] == [
        ["touch", "made-a"], ["touch", "made-b"], ["ls", "made-b"],
    ]  # fmt: skip
    step = fresh(child(root, "a"))
    assert not_ready_reason(step) is NotReadyReason.AWAITING_COMMAND_APPROVAL
    assert list(workspace_of(project).iterdir()) == []


def test_approved_commands_of_an_untrusted_playbook_run(project: Project, tmp_path: Path) -> None:
    root = run_file(project, one_step(tmp_path, "touch", "made-a"), is_trusted=False)
    decide(open_decision_of(project), "approve")
    drive(project)

    assert fresh(root).status == TaskStatus.DONE
    assert (workspace_of(project) / "made-a").exists()


def test_allowed_commands_of_an_untrusted_playbook_run_unasked(
    project: Project, tmp_path: Path
) -> None:
    change = ProjectChange(policy={"commands": {"allow": ["touch made-a"]}})
    update_project(project_id=project.pk, change=change, actor=OPERATOR)
    root = run_file(project, one_step(tmp_path, "touch", "made-a"), is_trusted=False)

    assert root.status == TaskStatus.DONE


def test_refused_commands_never_run(project: Project, tmp_path: Path) -> None:
    root = run_file(project, one_step(tmp_path, "touch", "made-a"), is_trusted=False)
    decide(open_decision_of(project), "reject", reason="not on this machine")
    drive(project)

    assert fresh(root).status != TaskStatus.DONE
    assert not (workspace_of(project) / "made-a").exists()


def test_a_playbook_that_fails_its_audit_creates_nothing(project: Project, tmp_path: Path) -> None:
    path = book(
        tmp_path,
        {"id": "a", "action": "Write it", "run": ["touch x"], "writes": ["x"]},
        {"id": "b", "action": "Write it too", "run": ["touch x"], "writes": ["x"]},
    )
    with pytest.raises(PlanInvalid, match="would not pass its audit"):
        submit_playbook(project_id=project.pk, path=path, actor=OPERATOR, is_trusted=True)

    assert not Task.objects.exists()


def test_the_same_outside_key_is_taken_once(project: Project) -> None:
    submit_playbook(project_id=project.pk, path=DEMO, actor=OPERATOR, external_key="demo")
    with pytest.raises(Conflict, match="taken"):
        submit_playbook(project_id=project.pk, path=DEMO, actor=OPERATOR, external_key="demo")

    assert Task.objects.filter(parent__isnull=True).count() == 1


@pytest.mark.parametrize("name", ["/etc", "..", "x/../../..", "~"])
def test_a_workspace_outside_the_allowed_roots_is_refused(name: str) -> None:
    with pytest.raises(WorkspaceError):
        create_project(slug="away", workspace=name, actor=OPERATOR)

    assert not Project.objects.filter(slug="away").exists()


def test_a_workspace_that_is_a_symlink_out_of_the_roots_is_refused(
    tmp_path: Path, workspaces: Path
) -> None:
    workspaces.mkdir()
    (workspaces / "link").symlink_to(tmp_path)

    with pytest.raises(WorkspaceError, match="not inside an allowed directory"):
        create_project(slug="away", workspace=str(workspaces / "link"), actor=OPERATOR)


def test_an_artifact_that_is_a_symlink_out_of_the_workspace_is_not_locked(
    project: Project, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    (workspace_of(project) / "out").symlink_to(secret)
    limit(project)
    root = run_file(project, one_step(tmp_path, "true", expected_artifacts=["out"]))

    assert root.status == TaskStatus.FATAL
    assert "out" in root.failure_context[0]["root_cause"]
    assert not Artifact.objects.filter(name="out").exists()
    assert not Artifact.objects.filter(content__data=b"secret").exists()


def test_a_directory_that_is_a_symlink_out_of_the_workspace_runs_nothing(
    project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace_of(project) / "out").symlink_to(outside)
    limit(project)
    path = book(
        tmp_path,
        {"id": "a", "action": "Go out", "run": [{"argv": ["touch", "made"], "cwd": "out"}]},
    )
    root = run_file(project, path)

    assert root.status == TaskStatus.FATAL
    assert last_run(root)["outcome"] == "refused"
    assert list(outside.iterdir()) == []


def test_a_program_that_does_not_exist_fails_with_its_name(
    project: Project, tmp_path: Path
) -> None:
    limit(project)
    root = run_file(project, one_step(tmp_path, "no-such-program"))

    assert root.status == TaskStatus.FATAL
    assert "no-such-program" in root.failure_context[0]["root_cause"]


def test_a_step_that_prints_without_end_is_stopped_at_its_limit(
    project: Project, tmp_path: Path
) -> None:
    limit(project, command_output_bytes=300_000)
    root = run_file(project, one_step(tmp_path, "{python}", "-c", PRINT_FOR_EVER))

    record = last_run(root)
    logged = sum(len(one) for one in LogChunk.objects.values_list("text", flat=True))
    assert record["ok"] is False
    assert record["outcome"] == "output_limit"
    assert len(str(record["output_tail"])) < 100_000
    assert 100_000 < logged < 400_000
    assert root.status == TaskStatus.FATAL


def test_a_hundred_megabytes_of_output_are_cut_at_the_default_limit(
    project: Project, tmp_path: Path
) -> None:
    limit(project)
    program = "import sys\nfor _ in range(100): sys.stdout.write(('x' * 999 + '\\n') * 1000)"
    root = run_file(project, one_step(tmp_path, "{python}", "-c", program))

    logged = sum(len(one) for one in LogChunk.objects.values_list("text", flat=True))
    assert last_run(root)["outcome"] == "output_limit"
    assert logged < 11_000_000
    assert root.status == TaskStatus.FATAL


def test_a_step_that_never_ends_is_stopped_at_its_time(project: Project, tmp_path: Path) -> None:
    limit(project, command_timeout_seconds=1)
    root = run_file(project, one_step(tmp_path, "{python}", "-c", SLEEP_FOR_EVER))

    assert last_run(root)["outcome"] == "timed_out"
    assert root.failure_context[0]["class"] == "timeout"
    assert root.status == TaskStatus.FATAL
    assert root.project.status == ProjectStatus.SUSPENDED


def test_a_failing_step_without_a_fix_is_tried_twice_and_planned_three_times(
    project: Project, tmp_path: Path
) -> None:
    root = run_file(project, one_step(tmp_path, "false"))

    assert root.status == TaskStatus.FATAL
    runs = Assignment.objects.filter(task__root=root, seat=Seat.EXECUTOR.value)
    assert runs.count() == 3 * 2
    assert open_decision_of(project).kind == DecisionKind.MAX_RETRIES


def test_a_trusted_playbook_stays_trusted_when_it_is_planned_again(
    project: Project, tmp_path: Path
) -> None:
    root = run_file(project, one_step(tmp_path, "false"))

    assert {one.is_trusted for one in root.plans.all()} == {True}
    assert root.plans.count() == 3


def test_a_failing_run_counts_although_an_agent_handed_something_in_meanwhile(
    project: Project, tmp_path: Path
) -> None:
    path = book(
        tmp_path,
        {"id": "a", "action": "Fail", "run": ["false"], "on_failure": {"severity": "medium"}},
        {"id": "b", "action": "Think"},
    )
    root = submit_playbook(project_id=project.pk, path=path, actor=OPERATOR, is_trusted=True)
    judging = Assignment.objects.filter(task__step_key="a", seat=Seat.QA.value, status="queued")
    while not judging.exists():
        assert work_until_idle(SLOT, slice_seconds=0)
    execute(child(root, "b"), new_agent())
    drive(project)

    assert child(root, "a").status == TaskStatus.REVIEW
    assert open_decision_of(project).kind == DecisionKind.MEDIUM_DEFECT
