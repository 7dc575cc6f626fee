"""The demo end to end on the real engine and real files: each of Sir's verdicts, and a bad fix."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.core.management import call_command

from orchestration.models import (
    Artifact,
    Assignment,
    Defect,
    LogChunk,
    Output,
    Project,
    Task,
    Verification,
)
from orchestration.services.assignments import lease
from orchestration.services.audit import seal_events, verify_chain
from orchestration.services.lookups import lock_for_result
from orchestration.services.loop import replan_due_roots
from orchestration.services.results import record_agent_result
from orchestration.services.work import unit_of_work
from orchestration.states import (
    MAX_RETRIES_REASON,
    AssignmentStatus,
    DecisionKind,
    DefectStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
)
from tests.commands.conftest import DEMO, project_in, run_file
from tests.factories import (
    actor_of,
    child,
    decide,
    drive,
    fresh,
    new_agent,
    open_decision_of,
)

WHEEL = "dist/tidytext-0.3.0-py3-none-any.whl"
FIXED_LINE = "room = limit - len(ELLIPSIS)"
MEDIUM = DecisionKind.MEDIUM_DEFECT.value


def excerpts(package: Path) -> str:
    return (package / "tidytext" / "excerpts.py").read_text(encoding="utf-8")


def defects_of(root: Task) -> list[Defect]:
    return list(Defect.objects.filter(task__root=root).order_by("pk"))


def test_the_bug_becomes_a_medium_decision_that_shows_the_diff(demo: Task, package: Path) -> None:
    decision = open_decision_of(demo.project)

    assert decision.kind == MEDIUM
    assert decision.content["severity"] == "medium"
    patch = decision.content["fix"]["patch"]
    assert "-    room = limit\n" in patch
    assert f"+    {FIXED_LINE}\n" in patch
    assert decision.content["evidence"]["exit_code"] == 1
    assert "FAILED (failures=1)" in decision.content["evidence"]["output_tail"]
    assert [one["verdict"] for one in decision.options] == [
        "approve", "request_changes", "accept_as_is", "reject",
    ]  # fmt: skip
    assert FIXED_LINE not in excerpts(package)
    assert not (package / WHEEL).exists()


def test_steps_that_do_not_need_the_fix_are_done_and_the_others_wait(demo: Task) -> None:
    states = {one.step_key: TaskStatus(one.status) for one in demo.children.all()}

    assert states == {
        "inventory": TaskStatus.DONE,
        "compile": TaskStatus.DONE,
        "tests": TaskStatus.REVIEW,
        "wheel": TaskStatus.PENDING,
        "report": TaskStatus.PENDING,
    }
    assert demo.status == TaskStatus.WORKING


def test_approve_applies_the_patch_tests_again_locks_and_finishes(
    demo: Task, package: Path
) -> None:
    first_report = (package / "reports" / "tests.json").read_bytes()
    decide(open_decision_of(demo.project), "approve")
    drive(demo.project)

    root = fresh(demo)
    assert root.status == TaskStatus.DONE
    assert root.project.status == ProjectStatus.COMPLETED
    assert FIXED_LINE in excerpts(package)
    assert [one.status for one in defects_of(root)] == [DefectStatus.VERIFIED]
    second_report = (package / "reports" / "tests.json").read_bytes()
    assert b'"status": "failed"' in first_report
    assert b'"status": "passed"' in second_report
    locked = Artifact.objects.get(task__step_key="tests", name="reports/tests.json")
    assert locked.content_id == hashlib.sha256(second_report).hexdigest()
    assert (package / WHEEL).stat().st_size > 1000
    assert "tidytext" in (package / "reports" / "report.md").read_text(encoding="utf-8")


def test_after_the_fix_the_tests_really_ran_a_second_time(demo: Task) -> None:
    step = child(demo, "tests")
    decide(open_decision_of(demo.project), "approve")
    drive(demo.project)

    log = "".join(LogChunk.objects.filter(task=step).values_list("text", flat=True))
    assert log.count("\nRan 21 tests in") == 2
    assert log.index("FAILED (failures=1)") < log.index("patched tidytext/excerpts.py")
    assert "FAILED" not in log[log.index("patched tidytext/excerpts.py") :]
    versions = Output.objects.filter(task=step, path="reports/tests.json").order_by("pk")
    assert [one.version for one in versions] == [1, 2]
    rounds = Verification.objects.filter(task=step, layer="L3").order_by("pk")
    assert {one.fix_round for one in rounds} == {0, 1}


def test_every_artifact_of_a_done_step_is_locked_once_with_its_content(
    demo: Task, package: Path
) -> None:
    decide(open_decision_of(demo.project), "approve")
    drive(demo.project)

    files = {
        "inventory": "reports/inventory.json",
        "compile": "reports/compile.json",
        "tests": "reports/tests.json",
        "wheel": WHEEL,
        "report": "reports/report.md",
    }
    for key, path in files.items():
        artifact = Artifact.objects.get(task__parent=demo, task__step_key=key, name=path)
        assert bytes(artifact.content.data) == (package / path).read_bytes()


def test_the_audit_trail_of_the_whole_demo_verifies(
    demo: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    decide(open_decision_of(demo.project), "approve", reason="")
    drive(demo.project)
    seal_events()

    count, fault = verify_chain()
    call_command("verify_audit")
    assert fault is None
    assert f"{count} events verified" in capsys.readouterr().out
    kinds = set(demo.project.events.values_list("kind", flat=True))
    assert {"decision.decided", "defect.verified", "artifact.locked", "task.done"} <= kinds


def test_accept_as_is_locks_with_a_named_exception_and_changes_nothing(
    demo: Task, package: Path
) -> None:
    before = excerpts(package)
    decide(open_decision_of(demo.project), "accept_as_is", reason="shipping it knowingly")
    drive(demo.project)

    root = fresh(demo)
    assert root.status == TaskStatus.DONE
    assert excerpts(package) == before
    assert [one.status for one in defects_of(root)] == [DefectStatus.ACCEPTED_AS_IS]
    artifact = Artifact.objects.get(task__step_key="tests", name="reports/tests.json")
    assert "medium" in artifact.exception_note
    assert Artifact.objects.get(name=WHEEL).exception_note == ""


def test_request_changes_asks_the_fixer_for_another_fix_and_applies_nothing(
    demo: Task, package: Path
) -> None:
    decide(open_decision_of(demo.project), "request_changes", reason="keep the comment too")
    drive(demo.project)

    asked = Assignment.objects.get(task__root=demo, seat=Seat.FIXER.value)
    assert asked.backend == "external"
    assert asked.status == AssignmentStatus.QUEUED
    assert asked.input["mode"] == "propose"
    assert asked.input["guidance"] == "keep the comment too"
    assert [one.status for one in defects_of(demo)] == [DefectStatus.REPROPOSING]
    assert child(demo, "tests").fix_round == 1
    assert FIXED_LINE not in excerpts(package)


def propose(demo: Task, line: str) -> None:
    """Ask for changes, have an agent propose a patch with another line, and approve that."""
    decision = open_decision_of(demo.project)
    patch = decision.content["fix"]["patch"].replace(FIXED_LINE, line)
    decide(decision, "request_changes", reason="another way")
    drive(demo.project)
    proposal = {"description": "another way", "patch": patch}
    agent = new_agent()
    with unit_of_work(actor_of(agent)) as work:
        held = lock_for_result(child(demo, "tests").assignments.get(seat=Seat.FIXER.value))
        lease(work, held, held.project.policy, worker=agent.name, agent=agent)
        document = {"status": "review", "proposed_fix": proposal}
        record_agent_result(work, held, held.task.parent, document)
    decide(open_decision_of(demo.project), "approve")
    drive(demo.project)


def test_a_signed_proposal_is_run_again_and_fails_honestly(demo: Task, package: Path) -> None:
    propose(demo, "room = limit  # nothing is fixed by this")

    assert "nothing is fixed by this" in excerpts(package)
    assert child(demo, "tests").status == TaskStatus.REVIEW
    assert [one.status for one in defects_of(demo)] == [DefectStatus.AWAITING_SIR]
    asked = open_decision_of(demo.project)
    assert asked.content["evidence"]["outcome"] == "failed"
    assert asked.content["round"] == 3


def test_a_signed_proposal_that_helps_is_verified(demo: Task, package: Path) -> None:
    propose(demo, "room = limit - 1")

    assert fresh(demo).status == TaskStatus.DONE
    assert [one.status for one in defects_of(demo)] == [DefectStatus.VERIFIED]
    assert child(demo, "tests").fix_round == 2


def test_reject_fails_the_step_and_the_root_is_planned_again(demo: Task, package: Path) -> None:
    decide(open_decision_of(demo.project), "reject", reason="not this way")
    assert replan_due_roots(demo.project_id) == 1

    root = fresh(demo)
    assert root.attempt == 2
    assert root.failure_count == 1
    assert root.failure_context[-1]["class"] == "rejected_by_sir"
    assert "not this way" in root.failure_context[-1]["root_cause"]
    assert [one.status for one in defects_of(demo)] == [DefectStatus.REJECTED]
    assert FIXED_LINE not in excerpts(package)


def test_a_rejected_fix_is_refused_when_proposed_again_until_the_third_failure_is_fatal(
    demo: Task, package: Path
) -> None:
    decide(open_decision_of(demo.project), "reject", reason="not this way")
    drive(demo.project)

    root = fresh(demo)
    assert root.status == TaskStatus.FATAL
    assert root.status_detail == MAX_RETRIES_REASON
    assert root.failure_count == 3
    assert root.project.status == ProjectStatus.SUSPENDED
    asked = open_decision_of(demo.project)
    assert asked.kind == DecisionKind.MAX_RETRIES
    assert asked.is_p0
    assert len(asked.content["failures"]) == 3
    assert "rejected before" in asked.content["failures"][-1]["root_cause"]
    assert FIXED_LINE not in excerpts(package)
    assert not (package / WHEEL).exists()


def test_steps_done_before_the_failure_are_kept_and_not_run_again(demo: Task) -> None:
    done = child(demo, "inventory").pk
    decide(open_decision_of(demo.project), "reject", reason="not this way")
    drive(demo.project)

    assert child(demo, "inventory").pk == done
    runs = Assignment.objects.filter(task_id=done, seat=Seat.EXECUTOR.value)
    assert runs.count() == 1


@pytest.fixture
def broken_demo(tmp_path: Path) -> Path:
    """The demo with a patch that does not fix the bug: it applies, and the test still fails."""
    text = DEMO.read_text(encoding="utf-8")
    assert text.count(FIXED_LINE) == 1
    tools = f"{DEMO.parent}/tools"
    broken = text.replace(FIXED_LINE, "room = limit + 0  # still wrong").replace(
        "{playbook_dir}/tools", tools
    )
    path = tmp_path / "broken.yaml"
    path.write_text(broken, encoding="utf-8")
    return path


@pytest.mark.django_db
def test_a_fix_that_does_not_help_comes_back_and_ends_in_an_honest_failure(
    broken_demo: Path, package: Path
) -> None:
    project = project_in(package)
    root = run_file(project, broken_demo)
    for number in (1, 2, 3):
        decision = open_decision_of(project, MEDIUM)
        assert decision.content["round"] == number
        decide(decision, "approve")
        drive(project)

    step = Task.objects.filter(parent=root, step_key="tests").order_by("pk")[0]
    assert step.fix_round == 3
    assert step.status in (TaskStatus.FAILED, TaskStatus.CANCELLED)
    assert fresh(root).failure_count >= 1
    assert fresh(root).status != TaskStatus.DONE
    assert "did not clear" in fresh(root).failure_context[0]["root_cause"]
    assert not Artifact.objects.filter(name="reports/tests.json").exists()
    assert not (package / WHEEL).exists()


@pytest.mark.django_db
def test_a_patch_that_does_not_apply_changes_nothing_and_says_so(
    broken_demo: Path, package: Path, project: Project
) -> None:
    text = broken_demo.read_text(encoding="utf-8")
    broken_demo.write_text(text.replace("-    room = limit\n", "-    room = other\n"))
    before = excerpts(package)
    run_file(project, broken_demo)
    decide(open_decision_of(project), "approve")
    drive(project)

    assert excerpts(package) == before
    again = open_decision_of(project, MEDIUM)
    assert again.content["round"] == 2
    rounds = defects_of(again.task.root)[0].rounds  # type: ignore[union-attr, arg-type]
    assert rounds[0]["outcome"] == "not_applied"
    assert "does not apply" in rounds[0]["detail"]
