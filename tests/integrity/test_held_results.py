"""What a project in safe stop takes, what it refuses, and what becomes of results meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from orchestration.errors import Conflict
from orchestration.models import Assignment, AuditEvent, Conversation, HeldResult, Project, Task
from orchestration.services.integrity import stop_safely
from orchestration.services.integrity_looks import FaultKind, IntegrityFault
from orchestration.services.lookups import lock_project
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.sweeping import sweep
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.services.working import Shift, claim_one, perform_and_record
from tests.api.callers import Caller, agent_client, human_client, problem
from tests.factories import (
    SLOT,
    agent_step,
    child,
    claim,
    decide,
    drive,
    fresh,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
RESULT = {
    "status": "review",
    "output": {"type": "document", "title": "work", "content": "all of it"},
    "comment": {"comment_type": "handoff", "body": "done; nothing open"},
}
FIX = {"description": "make the file", "commands": ["touch missing.txt"]}
FAULT = IntegrityFault(FaultKind.ARTIFACT, "artifact:1", "planted")


@pytest.fixture
def project() -> Project:
    return new_project("demo")


@pytest.fixture
def agent(project: Project) -> Caller:
    return agent_client(project)


def stop(project: Project) -> None:
    """Put a project in safe stop."""
    with unit_of_work(SYSTEM) as work:
        stop_safely(work, lock_project(project.pk), [FAULT], source="test")


@pytest.fixture
def held(project: Project, agent: Caller) -> Assignment:
    """A step that an agent holds while its project stops."""
    root = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    assert agent.agent is not None
    row = claim(child(root, "1"), agent.agent)
    set_status(child(root, "1"), agent.agent, "working")
    stop(project)
    return row


def hand_in(agent: Caller, row: Assignment, **changed: Any) -> Any:
    body = {**RESULT, **changed, "lease_token": row.lease_token}
    return agent.send(f"/api/assignments/{row.pk}/result", body)


def test_a_result_is_held_and_applied_after_resume(
    project: Project, agent: Caller, held: Assignment
) -> None:
    assert hand_in(agent, held).status_code == 200
    assert fresh(held.task).status == "working"
    assert not held.task.outputs.exists()
    assert hand_in(agent, held).status_code == 200
    other = hand_in(agent, held, status="failed", detail="no")
    problem(other, 409, "already_reported")
    sweep()
    assert HeldResult.objects.count() == 1
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    drive(project)
    assert fresh(held.task).status == "done"
    assert held.task.outputs.get(title="work").content == "all of it"
    assert not HeldResult.objects.exists()
    assert hand_in(agent, held).status_code == 200


def test_a_held_result_that_is_refused_gives_the_work_back(
    project: Project, agent: Caller, held: Assignment
) -> None:
    lost = {"type": "document", "title": "work", "path": "nowhere.txt"}
    assert hand_in(agent, held, output=lost).status_code == 200
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    held.refresh_from_db()
    assert held.status == "queued"
    assert not HeldResult.objects.exists()


def test_only_heartbeat_result_and_its_own_item_are_taken(
    project: Project, agent: Caller, held: Assignment
) -> None:
    task = f"/api/projects/demo/tasks/{held.task_id}"
    lease = {"lease_token": held.lease_token}
    assert agent.send(f"{task}/heartbeat").status_code == 200
    assert agent.send(f"/api/assignments/{held.pk}/heartbeat", lease).status_code == 200
    sir = human_client()
    refused = [
        agent.send(f"{task}/comments", {"comment_type": "general", "body": "x"}),
        agent.send(f"{task}/status", {"status": "failed", "detail": "x"}),
        agent.send(f"/api/assignments/{held.pk}/release", lease),
        agent.send(f"/api/assignments/{held.pk}/log", {**lease, "text": "x"}),
        agent.send(
            f"/api/assignments/{held.pk}/tool-calls",
            {**lease, "calls": [{"tool": "Bash", "command": "ls", "outcome": "ok"}]},
        ),
        agent.send("/api/projects/demo/messages", {"text": "hello"}),
        sir.send(f"{task}/cancel", {"reason": "x"}),
        sir.send("/api/projects/demo/resume", {}),
    ]
    for answer in refused:
        problem(answer, 409, "project_safe_stop")
    claimed = agent.send("/api/assignments/claim", {"wait": 0})
    assert claimed.status_code == 204


def test_another_decision_waits_until_the_project_goes_on(project: Project, agent: Caller) -> None:
    root = submit_plan(project, step("1", run=["ls no.txt"], on_failure={"severity": "medium"}))
    drive(project)
    item = open_decision_of(project, "medium_defect")
    stop(project)
    with pytest.raises(Exception, match="safe stop") as refused:
        decide(item, "accept_as_is", reason="fine")
    assert getattr(refused.value, "code", "") == "project_safe_stop"
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    decide(item, "accept_as_is", reason="fine")
    drive(project)
    assert fresh(root).status == "done"


def test_what_our_own_worker_did_is_held_and_never_done_twice(project: Project) -> None:
    root = submit_plan(project, step("1", run=["sh -c 'echo x >> count.txt'"]))
    held = claim_one(SLOT, project_id=project.pk)
    while held is not None and held.seat != "executor":
        held = perform_and_record(held, Shift(SLOT, float("inf")))
    assert held is not None
    stop(project)
    assert perform_and_record(held, Shift(SLOT, float("inf"))) is None
    row = HeldResult.objects.get()
    assert (row.assignment_id, row.is_workers) == (held.pk, True)
    sweep()
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    drive(project)
    assert fresh(root).status == "done"
    made = Task.objects.get(parent=root, step_key="1")
    assert made.assignments.filter(seat="executor").count() == 1


def test_a_faulty_list_stops_the_project_only_as_the_loops_own_state(
    project: Project, agent: Caller
) -> None:
    bad = {"a": {"status": "NEARLY"}, "b": {"status": "PENDING", "depends_on": ["zzz"]}}
    path = "/api/projects/demo/tasks/import"
    problem(agent.send(path, {"master_task_list": bad}), 422, "import_invalid")
    assert Project.objects.get().status == "active"
    answer = agent.send(path, {"master_task_list": bad, "authoritative": True})
    assert problem(answer, 422, "import_invalid")["errors"]
    assert Project.objects.get().status == "safe_stop"
    assert not Task.objects.exists()
    item = open_decision_of(project, "safe_stop")
    assert item.content["source"] == "import"
    decide(item, "resume", reason="the list was mended")
    good = {"master_task_list": {"a": {"status": "PENDING"}}, "authoritative": True}
    assert agent.send(path, good).status_code == 201


@pytest.mark.parametrize("state", ["lost", None, 7, []])
def test_a_lost_list_stops_it_too(project: Project, agent: Caller, state: object) -> None:
    body = {"master_task_list": state, "authoritative": True}
    assert agent.send("/api/projects/demo/tasks/import", body).status_code == 422
    assert Project.objects.get().status == "safe_stop"


def test_people_check_over_rest_also_in_safe_stop(project: Project, agent: Caller) -> None:
    sir = human_client()
    answer = sir.send("/api/projects/demo/integrity")
    assert answer.json() == {"intact": True, "project_status": "active", "faults": []}
    stop(project)
    assert sir.send("/api/projects/demo/integrity").json()["project_status"] == "safe_stop"
    problem(agent.send("/api/projects/demo/integrity"), 403, "humans_only")


def test_what_a_held_result_used_counts_and_over_a_limit_sir_is_asked(
    project: Project, agent: Caller, held: Assignment
) -> None:
    assert hand_in(agent, held, usage={"turns": 44, "cost_usd": 2}).status_code == 200
    held.refresh_from_db()
    assert held.usage == {"turns": 44, "cost_usd": 2.0}
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    assert (fresh(held.task).status, held.task.outputs.count()) == ("waiting_human", 0)
    item = open_decision_of(project, "budget_exceeded")
    assert item.content["is_finished"]
    assert item.content["exceeded"] == {"turns": {"used": 44, "limit": 30}}
    decide(item, "raise", reason="it is done already")
    drive(project)
    assert fresh(held.task).status == "done"


def test_a_held_failure_over_a_limit_leaves_its_figures_in_the_trail(
    project: Project, agent: Caller, held: Assignment
) -> None:
    failed = {"status": "failed", "detail": "cannot", "output": None, "comment": None}
    assert hand_in(agent, held, **failed, usage={"turns": 44}).status_code == 200
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    assert fresh(held.task).status == "pending"
    event = AuditEvent.objects.get(kind="assignment.over_budget")
    assert event.subject == f"assignment:{held.pk}"


def test_a_held_result_waits_while_its_task_waits_for_sir(
    project: Project, agent: Caller, held: Assignment
) -> None:
    assert hand_in(agent, held, usage={"turns": 44}).status_code == 200
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    beat = agent.send(f"/api/assignments/{held.pk}/heartbeat", {"lease_token": held.lease_token})
    assert beat.status_code == 200
    assert fresh(held.task).status == "waiting_human"
    sweep()
    assert HeldResult.objects.count() == 1
    decide(open_decision_of(project, "budget_exceeded"), "raise", reason="go on")
    sweep()
    drive(project)
    assert fresh(held.task).status == "done"


def test_one_result_that_breaks_holds_up_no_other(
    project: Project, agent: Caller, held: Assignment
) -> None:
    other = new_project("other")
    second = agent_client(other, name="second")
    root = submit_plan(other, agent_step("1"), agent_step("2"))
    drive(other)
    assert second.agent is not None
    row = claim(child(root, "1"), second.agent)
    set_status(child(root, "1"), second.agent, "working")
    stop(other)
    assert hand_in(agent, held).status_code == 200
    assert hand_in(second, row).status_code == 200
    HeldResult.objects.filter(assignment=held).update(document={}, is_workers=True)
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    decide(open_decision_of(other, "safe_stop"), "resume", reason="repaired")
    assert sweep()["held"] == 2
    assert row.task.outputs.filter(title="work").count() == 1
    held.refresh_from_db()
    assert held.status == "queued"
    assert not HeldResult.objects.exists()


def test_an_irreversible_step_whose_held_result_is_refused_asks_sir(project: Project) -> None:
    root = submit_plan(project, step("1", run=["sh -c 'echo x >> count.txt'"]))
    held = claim_one(SLOT, project_id=project.pk)
    while held is not None and held.seat != "executor":
        held = perform_and_record(held, Shift(SLOT, float("inf")))
    assert held is not None
    Task.objects.filter(pk=held.task_id).update(is_irreversible=True)
    stop(project)
    assert perform_and_record(held, Shift(SLOT, float("inf"))) is None
    row = HeldResult.objects.get()
    HeldResult.objects.update(document={**row.document, "handoff": "y" * 600})
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    sweep()
    drive(project)
    assert child(root, "1").status == "waiting_human"
    assert open_decision_of(project).content["reason"] == "irreversible_cut_off"
    assert (Path(project.workspace) / "count.txt").read_text() == "x\n"


def test_the_policy_is_not_changed_in_safe_stop(project: Project) -> None:
    stop(project)
    change = ProjectChange(policy={"thresholds": {"max_retries": 5}})
    with pytest.raises(Conflict, match="safe_stop"):
        update_project(project_id=project.pk, change=change, actor=SYSTEM)
    assert Project.objects.get().policy_json == project.policy_json


def test_the_sweep_writes_nothing_in_a_stopped_project(project: Project) -> None:
    root = submit_plan(
        project,
        step("1", run=["ls missing.txt"], on_failure={"severity": "medium", "fix": FIX}),
        agent_step("2"),
        is_trusted=True,
    )
    drive(project)
    item = open_decision_of(project, "medium_defect")
    delegated = child(root, "2")
    Conversation.objects.create(
        project=project, task=delegated, mode="delegation", status="open", created_at=timezone.now()
    )
    stop(project)
    Task.objects.filter(pk=root.pk).update(is_ending=True)
    Task.objects.filter(pk__in=[item.task_id, delegated.pk]).update(status="done")
    before = AuditEvent.objects.count()
    sweep()
    assert AuditEvent.objects.count() == before
    item.refresh_from_db()
    assert item.status == "open"
