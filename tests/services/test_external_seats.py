"""Agents in the executor, QA and fixer seats: what they hand in is judged, never trusted."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import Invalid, LeaseLost, MissingHandoff, MissingOutput
from orchestration.models import Agent, Project, Task
from orchestration.services.assignments import lease
from orchestration.services.lookups import lock_for_result
from orchestration.services.progress import Progress, report_progress
from orchestration.services.results import record_agent_result
from orchestration.services.tasks import heartbeat_task, release_task
from orchestration.services.work import unit_of_work
from orchestration.states import TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    fresh,
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project(policy={"seats": {"qa": ["external"]}})


def answer(task: Task, seat: str, agent: Agent, document: dict[str, Any]) -> None:
    """Answer the queued assignment of a seat as an agent."""
    with unit_of_work(actor_of(agent)) as work:
        queued = task.assignments.select_related("task__project").get(seat=seat, status="queued")
        queued = lock_for_result(queued)
        lease(work, queued, queued.project.policy, worker=agent.name, agent=agent)
        record_agent_result(work, queued, queued.task.parent, document)


def test_review_needs_an_output_and_a_hand_off() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    with pytest.raises(MissingOutput):
        set_status(task, agent, "review")
    with pytest.raises(Invalid, match="detail"):
        set_status(task, agent, "failed")
    assert child(root, "1").status == TaskStatus.WORKING
    with pytest.raises(LeaseLost):
        set_status(task, new_agent(), "review")


def test_an_output_alone_is_not_enough() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    answer_missing = {"status": "review", "output": {"title": "x", "content": "y"}}
    with pytest.raises(MissingHandoff):
        answer(task, "executor", agent, answer_missing)


def test_external_qa_passes_and_locks(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    execute(child(root, "1"), new_agent("maker"))
    assert child(root, "1").status == TaskStatus.REVIEW
    answer(child(root, "1"), "qa", new_agent("judge"), {"verdict": "pass"})
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "1").artifacts.get().name == "work"


def test_external_qa_finds_a_medium_defect_and_the_fixer_hands_in(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    execute(child(root, "1"), new_agent("maker"))
    defect = {"severity": "medium", "title": "wrong figure", "description": "chapter 4"}
    answer(child(root, "1"), "qa", new_agent("judge"), {"verdict": "fail", "defects": [defect]})
    decide(open_decision_of(project), "approve")
    fixed = {
        "status": "review",
        "output": {"title": "work", "content": "the right figure"},
        "comment": "figure corrected",
        "change_note": "chapter 4 recomputed",
    }
    answer(child(root, "1"), "fixer", new_agent("mender"), fixed)
    answer(child(root, "1"), "qa", new_agent("judge2"), {"verdict": "pass"})
    done = child(root, "1")
    assert done.status == TaskStatus.DONE
    assert done.defects.get().status == "verified"
    assert [(one.name, one.version) for one in done.artifacts.all()] == [("work", 1)]
    assert done.outputs.latest("pk").version == 2
    assert done.outputs.latest("pk").change_note == "chapter 4 recomputed"


def test_a_pass_beside_a_medium_defect_is_refused(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    execute(child(root, "1"), new_agent())
    bad = {"verdict": "pass", "defects": [{"severity": "medium", "title": "x"}]}
    with pytest.raises(Invalid):
        answer(child(root, "1"), "qa", new_agent(), bad)
    with pytest.raises(Invalid):
        answer(child(root, "1"), "qa", new_agent(), {"verdict": "fail", "defects": []})


def test_request_changes_brings_another_proposal_as_a_new_item() -> None:
    project = new_project()
    fix = {"description": "first idea", "commands": ["touch a"]}
    root = submit_plan(
        project, step("1", run=["ls b"], on_failure={"severity": "medium", "fix": fix})
    )
    drive(project)
    first = open_decision_of(project)
    decide(first, "request_changes", reason="make b, not a")
    proposal = {
        "status": "review",
        "proposed_fix": {"description": "second idea", "commands": ["touch b"]},
    }
    answer(child(root, "1"), "fixer", new_agent("mender"), proposal)
    second = open_decision_of(project)
    assert second.pk != first.pk
    assert second.content["fix"]["description"] == "second idea"
    assert child(root, "1").fix_round == 1


def test_a_verify_command_on_agents_work_is_not_possible_without_a_sandbox(settings: Any) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    project = new_project(policy={"commands": {"allow": ["true"]}})
    root = submit_plan(project, agent_step("1", verify=["true"]))
    drive(project)
    execute(child(root, "1"), new_agent())
    drive(project)
    layers = child(root, "1").verifications.filter(layer="L3")
    assert [one.outcome for one in layers] == ["not_possible"]
    assert "no sandbox" in layers.get().findings[0]
    assert child(root, "1").status == TaskStatus.DONE


def test_release_counts_nothing_and_heartbeat_extends() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent()
    held = claim(child(root, "1"), agent)
    beat = heartbeat_task(task_id=held.task_id, agent=agent, actor=actor_of(agent))
    assert held.lease_expires_at is not None
    assert beat.lease_expires_at is not None
    assert beat.lease_expires_at >= held.lease_expires_at
    release_task(task_id=held.task_id, agent=agent, actor=actor_of(agent))
    task = child(root, "1")
    assert (task.status, task.tries) == (TaskStatus.PENDING, 0)
    claim(task, new_agent())


def test_three_questions_in_a_row_each_resume_the_task() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    for question in ("which year?", "which month?", "which day?"):
        set_status(task, agent, "waiting_human", detail=question)
        assert child(root, "1").status == TaskStatus.WAITING_HUMAN
        assert task.assignments.get().is_clock_stopped
        decide(open_decision_of(project), "answer", reason=f"answer to {question}")
        assert child(root, "1").status == TaskStatus.WORKING
    hand_in(task, agent)
    set_status(task, agent, "review")
    assert child(root, "1").status == TaskStatus.DONE
    bodies = list(task.comments.filter(comment_type="general").values_list("body", flat=True))
    assert bodies == [f"answer to which {unit}?" for unit in ("year", "month", "day")]


def test_progress_beyond_twice_the_estimate_rescores() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working", light_plan=("a", "b"))
    for number in range(1, 6):
        report_progress(
            task_id=task.pk, progress=Progress(step=number), agent=agent, actor=actor_of(agent)
        )
    task = fresh(task)
    assert task.estimated_steps == 2
    assert task.actual_steps == 5
    assert task.assessments.filter(stage="S1", trigger__contains="steps").exists()


def test_a_proposal_that_sir_signed_is_applied_and_checked_by_us() -> None:
    project = new_project()
    fix = {"description": "first idea", "commands": ["touch a"]}
    root = submit_plan(
        project,
        step("1", run=["ls b"], on_failure={"severity": "medium", "fix": fix}),
        step("2", after=["1"]),
    )
    drive(project)
    decide(open_decision_of(project), "request_changes", reason="make b, not a")
    patch = "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+made\n"
    proposal = {"description": "second idea", "patch": patch}
    answer(
        child(root, "1"),
        "fixer",
        new_agent("mender"),
        {"status": "review", "proposed_fix": proposal},
    )
    decide(open_decision_of(project), "approve")
    drive(project)
    assert child(root, "1").defects.get().status == "verified"
    assert fresh(root).status == TaskStatus.DONE


def test_an_agents_own_fix_that_cannot_be_run_again_is_not_called_verified(settings: Any) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    project = new_project()
    root = submit_plan(project, step("1", run=["ls b"], on_failure={"severity": "medium"}))
    drive(project)
    decide(open_decision_of(project), "approve")
    fixed = {
        "status": "review",
        "output": {"title": "work", "content": "b is there now"},
        "comment": "made b",
        "change_note": "made b",
    }
    answer(child(root, "1"), "fixer", new_agent("mender"), fixed)
    drive(project)
    assert child(root, "1").defects.get().status == "awaiting_sir"
    evidence = open_decision_of(project, "medium_defect").content["evidence"]
    assert evidence["outcome"] == "not_possible"
    assert "no sandbox" in evidence["output_tail"]


def test_who_hands_in_is_not_recorded_as_its_judge() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent("maker")
    execute(child(root, "1"), agent)
    done = child(root, "1")
    assert done.status == TaskStatus.DONE
    actors = {event.kind: event.actor for event in done.events.all()}
    assert actors["task.working"] == actors["task.review"] == "agent:maker"
    for kind in ("review.pass", "artifact.locked", "task.done"):
        assert actors[kind] == "system"
