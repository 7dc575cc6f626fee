"""Faults of comparable systems on leases, dependencies and concurrent edits: what happens here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Project, Task
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, agent_client, events, problem
from tests.factories import agent_step, child, drive, submit_plan

TASKS = "/api/projects/demo/tasks"
NOTE = {"title": "note", "content": "the work"}
HANDOFF = {"comment_type": "handoff", "body": "Nothing is open."}
PAST_THE_LEASE = timedelta(minutes=16)


@pytest.fixture
def rival(project: Project) -> Caller:
    """A second agent."""
    return agent_client(project, name="rival")


def hand_in(agent: Caller, path: str) -> Any:
    """Hand in a task that is held. Return the last answer."""
    agent.send(f"{path}/outputs", NOTE)
    agent.send(f"{path}/comments", HANDOFF)
    return agent.send(f"{path}/status", {"status": "review"})


def sweep_after(lapse: timedelta) -> None:
    """Let some time pass, and one sweep."""
    with time_machine.travel(timezone.now() + lapse, tick=False):
        sweep()


def test_a_13_work_of_a_dead_agent_is_ready_again_and_its_attempt_counts(
    agent: Caller, task: str
) -> None:
    agent.send(f"{task}/claim")
    sweep_after(PAST_THE_LEASE)
    found = agent.read(f"{task}?expand=all")
    assert (found["status"], found["ready"], found["attempt"]) == ("pending", True, 2)
    assert found["failure_context"][0]["class"] == "lease_expired"
    assert [one.why for one in events("assignment.expired")] == ["lease_expired"]


def test_a_13_work_with_progress_is_ready_again_and_counts_nothing(
    agent: Caller, held: str
) -> None:
    agent.send(f"{held}/comments", {"body": "half of it is there"})
    sweep_after(PAST_THE_LEASE)
    found = agent.read(held)
    assert (found["status"], found["attempt"], found["failure_count"]) == ("pending", 1, 0)


def test_a_14_live_lease_and_waiting_for_sir_are_never_reclaimed(agent: Caller, held: str) -> None:
    for minutes in (14, 28, 42):
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
            agent.send(f"{held}/heartbeat")
            sweep()
    assert agent.read(held)["status"] == "working"
    agent.send(f"{held}/status", {"status": "waiting_human", "detail": "Which one?"})
    sweep_after(timedelta(days=90))
    assert agent.read(held)["status"] == "waiting_human"


def test_a_17_finished_work_is_not_handed_out_again(
    agent: Caller, rival: Caller, held: str
) -> None:
    assert hand_in(agent, held).json()["status"] == "done"
    assert rival.send("/api/assignments/claim", {"seats": ["executor"]}).status_code == 204
    problem(rival.send(f"{held}/claim"), 409, "not_ready")
    problem(rival.send(f"{held}/outputs", NOTE), 409, "lease_lost")


def test_a_19_dependent_is_ready_at_once_when_its_blocker_is_done(
    agent: Caller, project: Project
) -> None:
    root = submit_plan(project, agent_step("first"), agent_step("second", after=["first"]))
    drive(project)
    paths = {key: f"{TASKS}/{child(root, key).pk}" for key in ("first", "second")}
    waiting = problem(agent.send(f"{paths['second']}/claim"), 409, "not_ready")
    assert waiting["reason"] == "dependencies"
    agent.send(f"{paths['first']}/claim")
    agent.send(f"{paths['first']}/status", {"status": "working"})
    assert hand_in(agent, paths["first"]).json()["status"] == "done"
    assert agent.read(paths["second"])["ready"] is True
    assert agent.send(f"{paths['second']}/claim").status_code == 200


def test_a_22_task_with_open_children_is_never_offered(agent: Caller, project: Project) -> None:
    root = submit_plan(project, agent_step("only"))
    drive(project)
    problem(agent.send(f"{TASKS}/{root.pk}/claim"), 409, "not_ready")
    ready = agent.read(TASKS, ready="true")["results"]
    assert [one["step_key"] for one in ready] == ["only"]


def test_a_25_failed_task_does_not_release_its_dependents(
    agent: Caller, sir: Caller, held: str
) -> None:
    needed = agent.read(held)["key"]
    body = {"title": "after it", "route": "direct", "depends_on": [needed]}
    after = f"{TASKS}/{agent.send(TASKS, body).json()['id']}"
    for _ in range(3):
        agent.send(f"{held}/claim")
        agent.send(f"{held}/status", {"status": "failed", "detail": "no"})
    assert agent.read(held)["status"] == "fatal"
    assert agent.read(after)["remaining_dependencies"] == 1
    sir.send("/api/projects/demo/resume")
    problem(agent.send(f"{after}/claim"), 409, "not_ready")


def test_a_28_second_of_two_edits_is_told_that_the_row_changed(
    agent: Caller, sir: Caller, held: str
) -> None:
    project, seen = "/api/projects/demo/", sir.get("/api/projects/demo/")["ETag"]
    for name, status in (("first", 200), ("second", 412)):
        edit = sir.patch(project, {"name": name}, format="json", headers={"If-Match": seen})
        assert edit.status_code == status
    assert sir.read(project)["name"] == "first"
    before = agent.get(held)["ETag"]
    asked = {"status": "waiting_human", "detail": "Which one?"}
    assert agent.send(f"{held}/status", asked, If_Match=before).status_code == 200
    problem(sir.send(f"{held}/cancel", {"reason": "late"}, If_Match=before), 412, "stale")
    assert agent.read(held)["status"] == "waiting_human"


def test_a_29_answer_is_what_a_fresh_read_gives(agent: Caller, held: str) -> None:
    moved = agent.send(f"{held}/status", {"status": "blocked", "detail": "needs a key"})
    assert moved.json() == agent.read(held)
    made = agent.send(TASKS, {"title": "打开日志"}).json()
    assert made == agent.read(f"{TASKS}/{made['id']}")


def test_a_32_ids_are_given_by_the_server_alone(agent: Caller) -> None:
    refused = agent.send(TASKS, {"title": "打开日志", "id": "7", "key": "DEMO-7"})
    assert [one["path"] for one in problem(refused, 422, "unknown_fields")["errors"]] == [
        "id", "key",
    ]  # fmt: skip
    assert not Task.objects.exists()
