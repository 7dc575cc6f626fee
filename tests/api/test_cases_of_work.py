"""Faults of comparable systems on dead runs, plans, approvals and reviews: what happens here."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from config.celery import app
from orchestration.models import Artifact, Project, Task
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, agent_client, events, problem
from tests.api.test_assignments_api import claim as claim_seat
from tests.api.test_assignments_api import here, lease
from tests.api.test_cases_of_leases import (
    HANDOFF,
    NOTE,
    PAST_THE_LEASE,
    TASKS,
    hand_in,
    sweep_after,
)
from tests.factories import agent_step, child, drive, fresh, step, submit_plan
from tests.integrity.planting import force

INBOX = "/api/decisions/"
RED = "Run rm -rf on the data directory"


def path_of(task: Task) -> str:
    return f"{TASKS}/{task.pk}"


def decided(sir: Caller, item: dict[str, Any], verdict: str, **rest: Any) -> Any:
    """Give a verdict on exactly what was shown. Return the answer."""
    seen = {"version": item["version"], "digest": item["digest"]}
    return sir.send(f"{INBOX}{item['id']}/decide", {"verdict": verdict, **seen, **rest})


def test_a_16_dead_session_is_swept_within_one_interval_and_says_why(
    agent: Caller, task: str
) -> None:
    every = app.conf.beat_schedule["sweep"]["schedule"]
    assert timedelta(seconds=float(every)) <= timedelta(seconds=10)
    agent.send(f"{task}/claim")
    sweep_after(PAST_THE_LEASE)
    found = agent.read(f"{task}?expand=all")
    assert (found["status"], found["assignee"]) == ("pending", None)
    [failure] = found["failure_context"]
    assert failure["class"] == "lease_expired"
    assert failure["root_cause"]
    assert found["assignments"][0]["status"] == "expired"


def test_a_20_run_whose_workspace_vanished_ends_with_its_heartbeats(
    project: Project, agent: Caller, held: str
) -> None:
    shutil.rmtree(project.workspace)
    beat = agent.send(f"{held}/heartbeat")
    assert beat.status_code == 200
    refused = agent.send(f"{held}/outputs", {"title": "t", "path": "made.txt"})
    assert refused.status_code == 422, refused.content
    sweep_after(PAST_THE_LEASE)
    Path(project.workspace).mkdir()
    found = agent.read(f"{held}?expand=all")
    [run] = [one for one in found["assignments"] if one["status"] == "expired"]
    assert run["finished_at"]
    assert found["status"] == "pending"
    problem(agent.send(f"{held}/heartbeat"), 409, "lease_lost")


def test_a_23_blocker_of_a_parent_holds_its_children_back_and_parenthood_alone_does_not(
    agent: Caller, project: Project
) -> None:
    first = agent.send(TASKS, {"title": "first", "route": "direct"}).json()
    plan = {"summary": "s", "steps": [agent_step("1"), agent_step("2")]}
    body = {"title": "second", "plan": plan, "depends_on": [first["key"]]}
    second = agent.send(TASKS, body).json()
    drive(project)
    assert agent.read(f"{TASKS}/{second['id']}")["not_ready_reason"] == "dependencies"
    ready = agent.read(TASKS, ready="true")["results"]
    assert [one["key"] for one in ready] == [first["key"]]
    path = f"{TASKS}/{first['id']}"
    agent.send(f"{path}/claim")
    agent.send(f"{path}/status", {"status": "working"})
    hand_in(agent, path)
    drive(project)
    # Nothing but their parent stands above them now: both start, and end it.
    ready = agent.read(TASKS, ready="true")["results"]
    assert [one["step_key"] for one in ready] == ["1", "2"]
    for one in ready:
        step_path = f"{TASKS}/{one['id']}"
        agent.send(f"{step_path}/claim")
        agent.send(f"{step_path}/status", {"status": "working"})
        assert hand_in(agent, step_path).json()["status"] == "done"
    drive(project)
    assert agent.read(f"{TASKS}/{second['id']}")["status"] == "done"


def test_a_26_review_is_claimed_while_what_it_reviews_waits_for_it(
    project: Project, agent: Caller, sir: Caller, held: str
) -> None:
    policy = {"policy": {"seats": {"qa": ["external"]}}}
    assert sir.patch("/api/projects/demo/", policy, format="json").status_code == 200
    assert hand_in(agent, held).json()["status"] == "review"
    judge = agent_client(project, name="judge")
    review = claim_seat(judge, "qa")
    assert agent.read(held)["status"] == "review"
    verdict = lease(review, verdict="pass", defects=[], artifact_digests=[])
    assert judge.send(here(review, "result"), verdict).status_code == 200
    assert agent.read(held)["status"] == "done"


def test_a_31_status_that_was_written_past_the_trail_is_reported(
    project: Project, agent: Caller, sir: Caller, held: str
) -> None:
    problem(agent.send(f"{held}/status", {"status": "review"}), 409, "missing_output")
    task = Task.objects.get()
    force("UPDATE orchestration_task SET status = 'done' WHERE id = %s", task.pk)
    answer = sir.send("/api/projects/demo/integrity")
    assert f"task:{task.pk}" in answer.content.decode()
    assert sir.read("/api/projects/demo/")["status"] == "safe_stop"


def test_a_34_approval_of_one_command_is_for_that_command_task_and_version(
    project: Project, agent: Caller, sir: Caller
) -> None:
    def planned(command: str) -> Task:
        plan = {"summary": "s", "steps": [{"id": "1", "action": "touch", "run": [command]}]}
        made = agent.send(TASKS, {"title": command, "plan": plan}).json()
        drive(project)
        return Task.objects.get(pk=made["id"])

    limits = {"policy": {"limits": {"concurrent_roots": 5}}}
    assert sir.patch("/api/projects/demo/", limits, format="json").status_code == 200
    first, second = planned("touch made.txt"), planned("touch made.txt other.txt")
    asked = {one["task"]: one for one in sir.read(INBOX, status="open")["results"]}
    one = asked[str(first.pk)]
    stale = {**one, "version": one["version"] + 1}
    problem(decided(sir, stale, "approve"), 412, "stale")
    assert decided(sir, one, "approve").status_code == 200
    drive(project)
    assert fresh(first).status == "done"
    assert (Path(project.workspace) / "made.txt").exists()
    # The other has the same program and is asked for by itself.
    assert not (Path(project.workspace) / "other.txt").exists()
    decided(sir, asked[str(second.pk)], "reject", reason="not that one")
    # The very same command in a new task is a new question: an approval is used once.
    again = planned("touch made.txt")
    [item] = sir.read(INBOX, status="open")["results"]
    assert (item["kind"], item["task"]) == ("command_approval", str(again.pk))


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("claim", {}),
        ("heartbeat", {}),
        ("release", {}),
        ("status", {"status": "working"}),
        ("status", {"status": "review"}),
        ("status", {"status": "failed", "detail": "no"}),
        ("status", {"status": "blocked", "detail": "no"}),
        ("outputs", NOTE),
        ("spawn", {"title": "do it for me"}),
        ("cancel", {"reason": "no"}),
        ("replan", {"reason": "no"}),
    ],
)
def test_a_37_nothing_moves_what_needs_sirs_word(
    agent: Caller, sir: Caller, call: str, body: dict[str, Any]
) -> None:
    made = agent.send(TASKS, {"title": RED, "route": "direct"}).json()
    path = f"{TASKS}/{made['id']}"
    assert agent.read(path)["status"] == "waiting_human"
    answer = agent.send(f"{path}/{call}", body)
    assert answer.status_code in (403, 409), answer.content
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=False):
        sweep()
        assert agent.read(path)["status"] == "waiting_human"
    [item] = sir.read(INBOX, status="open")["results"]
    problem(decided(agent, item, "approve"), 403, "humans_only")
    assert decided(sir, item, "approve").status_code == 200
    assert agent.send(f"{path}/claim").status_code == 200


def test_a_44_one_address_tells_all_of_a_run_to_somebody_who_knows_nothing(
    project: Project, agent: Caller
) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]), step("3"))
    drive(project)
    path = path_of(child(root, "1"))
    agent.send(f"{path}/claim")
    agent.send(f"{path}/status", {"status": "working"})
    hand_in(agent, path)
    agent.send(f"{path_of(child(root, '2'))}/claim")
    newcomer = agent_client(project, name="newcomer", scopes=("observe",))
    found = newcomer.read(f"{path_of(root)}?expand=all")
    told = {one["step_key"]: (one["status"], one["assignee"]) for one in found["children"]}
    assert told == {"1": ("done", "worker"), "2": ("claimed", "worker"), "3": ("done", None)}
    text = newcomer.read(f"{path_of(root)}/bootstrap", role="planner")["text"]
    for key, status in (("1", "done"), ("2", "claimed"), ("3", "done")):
        [line] = [one for one in text.splitlines() if one.startswith(f"* {child(root, key)} ")]
        assert line.endswith(f": {status}")
    after = newcomer.read(f"{path_of(child(root, '2'))}/bootstrap", role="executor")["text"]
    assert HANDOFF["body"] in after


def test_c_05_old_version_decides_nothing_and_the_name_comes_from_the_token(
    agent: Caller, sir: Caller, held: str
) -> None:
    agent.send(f"{held}/status", {"status": "waiting_human", "detail": "Which one?"})
    [item] = sir.read(INBOX)["results"]
    old = {**item, "version": item["version"] - 1}
    problem(decided(sir, old, "answer", reason="The red one"), 412, "stale")
    forged = decided(sir, item, "answer", reason="The red one", decided_by="human:boss")
    assert problem(forged, 422, "unknown_fields")["errors"][0]["path"] == "decided_by"
    assert not events("decision.decided")
    assert sir.read(f"{INBOX}{item['id']}/")["status"] == "open"
    assert decided(sir, item, "answer", reason="The red one").status_code == 200
    assert sir.read(f"{INBOX}{item['id']}/")["decided_by"] == "sir"


def test_c_47_work_without_an_output_is_not_done(agent: Caller, held: str) -> None:
    agent.send(f"{held}/comments", HANDOFF)
    for status in ("review", "done"):
        answer = agent.send(f"{held}/status", {"status": status})
        assert answer.status_code in (409, 422), answer.content
    found = agent.read(held)
    assert (found["status"], found["last_outcome"]) == ("working", "")
    assert not Artifact.objects.exists()


def test_c_50_dependent_starts_only_when_the_artifact_is_there_and_locked(
    agent: Caller, project: Project
) -> None:
    first = agent_step("1", expected_artifacts=["made.txt"])
    root = submit_plan(project, first, agent_step("2", after=["1"]))
    drive(project)
    before, after = (path_of(child(root, key)) for key in ("1", "2"))

    def handed_in(output: dict[str, str]) -> bool:
        agent.send(f"{before}/claim")
        agent.send(f"{before}/status", {"status": "working"})
        agent.send(f"{before}/outputs", output)
        agent.send(f"{before}/comments", HANDOFF)
        agent.send(f"{before}/status", {"status": "review"})
        drive(project)
        return bool(agent.read(after)["ready"])

    # "made.txt is registered", said the agent, and it was not.
    assert handed_in({"title": "made.txt", "content": "see the file"}) is False
    problem(agent.send(f"{after}/claim"), 409, "not_ready")
    assert not Artifact.objects.exists()
    (Path(project.workspace) / "made.txt").write_text("made")
    assert handed_in({"title": "made.txt", "path": "made.txt"}) is True
    [locked] = Artifact.objects.filter(task=child(root, "1"))
    assert (locked.name, locked.size_bytes) == ("made.txt", 4)
    assert agent.send(f"{after}/claim").status_code == 200


def test_c_70_second_done_is_told_that_it_is_done_already(agent: Caller, held: str) -> None:
    assert hand_in(agent, held).json()["status"] == "done"
    again = agent.send(f"{held}/status", {"status": "review"})
    assert (again.status_code, again.json()["status"]) == (200, "done")
    assert len(events("task.review")) == len(events("task.done")) == 1
