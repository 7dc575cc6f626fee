"""Assignments over REST: claims by seat, results, heartbeats, logs, tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Assignment, Comment, LogChunk, Output, Project, Task
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, agent_client, events, problem
from tests.factories import agent_step, child, drive, fresh, new_project, submit_plan

CLAIM = "/api/assignments/claim"
DONE = {
    "status": "review",
    "output": {"title": "work", "content": "made", "type": "document"},
    "comment": "Decided: none. Problems: none. Advice: none.",
}
EXTERNAL_PLANNER = {"seats": {"planner": ["external"], "auditor": ["external"]}}
PLAN = {"summary": "s", "steps": [{"id": "1", "action": "a", "expected_artifacts": ["a.txt"]}]}


def here(held: Mapping[str, Any], call: str) -> str:
    """The path of a call about an assignment."""
    return f"/api/assignments/{held['id']}/{call}"


def lease(held: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A body with the lease token."""
    return {"lease_token": held["lease_token"], **more}


def claim(caller: Caller, *seats: str) -> dict[str, Any]:
    """Claim, and expect to get something."""
    answer = caller.send(CLAIM, {"seats": list(seats)} if seats else {})
    assert answer.status_code == 200, answer.content
    claimed: dict[str, Any] = answer.json()
    return claimed


@pytest.fixture
def queued(agent: Caller) -> None:
    """Three direct tasks that wait for an agent."""
    for name in ("one", "two", "three"):
        agent.send("/api/projects/demo/tasks", {"title": name, "route": "direct"})


@pytest.mark.usefixtures("queued")
def test_claim_takes_the_oldest_and_nobody_gets_it_twice(project: Project, agent: Caller) -> None:
    second = agent_client(project, name="second")
    titles = [claim(one)["title"] for one in (agent, second, agent)]
    assert titles == ["one", "two", "three"]
    assert agent.send(CLAIM).status_code == 204
    holders = Assignment.objects.order_by("pk").values_list("worker", flat=True)
    assert list(holders) == ["worker", "second", "worker"]


@pytest.mark.usefixtures("queued")
def test_claim_stays_inside_the_named_projects(agent: Caller, project: Project) -> None:
    other = new_project("other")
    everywhere = agent_client(name="roaming")
    everywhere.send("/api/projects/other/tasks", {"title": "far", "route": "direct"})
    body = {"projects": ["other"]}
    assert everywhere.send(CLAIM, body).json()["project"] == str(other.pk)
    assert everywhere.send(CLAIM, body).status_code == 204
    problem(agent.send(CLAIM, body), 404, "not_found")
    assert claim(everywhere)["title"] == "one"


@pytest.mark.parametrize(
    "body", [{"seats": ["king"]}, {"wait": 31}, {"wait": -1}, {"wait": "long"}, {"seat": "qa"}]
)
def test_bad_claim_is_422(agent: Caller, body: dict[str, Any]) -> None:
    assert agent.send(CLAIM, body).status_code == 422


def test_parallel_slots_of_a_plan_bind_claims_too(agent: Caller, project: Project) -> None:
    Project.objects.update(policy_json='{"limits": {"parallel_children": 2}}')
    root = submit_plan(project, *(agent_step(name) for name in "abc"))
    drive(project)
    first, _ = claim(agent), claim(agent)
    assert agent.send(CLAIM).status_code == 204
    leaf = f"/api/projects/demo/tasks/{child(root, 'c').pk}"
    assert problem(agent.send(f"{leaf}/claim"), 409, "not_ready")["reason"] == "slots"
    agent.send(here(first, "result"), lease(first, **DONE))
    assert claim(agent)["task"] == str(child(root, "c").pk)


@pytest.mark.usefixtures("queued")
def test_result_from_claimed_records_both_moves_and_takes_the_next(agent: Caller) -> None:
    held = claim(agent)
    body = lease(held, **DONE, usage={"turns": 3, "cost_usd": 0.25}, claim_next={})
    answer = agent.send(here(held, "result"), body)
    assert answer.status_code == 200
    done = answer.json()
    assert (done["status"], done["task_status"], done["repeat"]) == ("done", "done", False)
    assert done["next"]["title"] == "two"
    assert done["next"]["lease_token"]
    moves = [one.kind for one in events("task.working", task_id=held["task"])]
    assert moves == ["task.working"]
    assert Assignment.objects.get(pk=held["id"]).usage == {"turns": 3, "cost_usd": 0.25}
    assert events("assignment.leased", task_id=done["next"]["task"])[0].actor == "agent:worker"


@pytest.mark.usefixtures("queued")
def test_c_68_identical_report_again_is_a_no_op_with_the_same_next(agent: Caller) -> None:
    held = claim(agent)
    body = lease(held, **DONE, claim_next={"seats": ["executor"]})
    first = agent.send(here(held, "result"), body).json()
    again = agent.send(here(held, "result"), body).json()
    assert again["repeat"] is True
    assert again["next"]["lease_token"] == first["next"]["lease_token"]
    assert Output.objects.count() == Comment.objects.count() == 1
    assert len(events("assignment.done")) == 1


@pytest.mark.usefixtures("queued")
def test_c_68_contradicting_report_is_409_and_audited(agent: Caller) -> None:
    held = claim(agent)
    agent.send(here(held, "result"), lease(held, **DONE))
    other = lease(held, status="failed", detail="after all not")
    found = problem(agent.send(here(held, "result"), other), 409, "already_reported")
    assert found["holder"] == "worker"
    assert Task.objects.get(pk=held["task"]).status == "done"
    assert len(events("result.contradicted")) == 1


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"status": "done"}, "invalid", "status"),
        ({"status": "failed"}, "invalid", ""),
        ({"verdict": "pass"}, "unknown_fields", "verdict"),
        ({"output": {"title": "t"}}, "invalid", "output"),
        ({"usage": {"turns": -1}}, "invalid", "usage.turns"),
        ({"claim_next": {"seats": ["king"]}}, "invalid", "claim_next.seats.0"),
        ({"lease_token": ""}, "invalid", "lease_token"),
        ({"comment": "x" * 501}, "handoff_invalid", "body"),
    ],
)
@pytest.mark.usefixtures("queued")
def test_bad_result_is_422_and_leaves_the_lease(
    agent: Caller, change: dict[str, Any], code: str, path: str
) -> None:
    held = claim(agent)
    found = problem(agent.send(here(held, "result"), lease(held) | DONE | change), 422, code)
    assert found["errors"][0]["path"] == path
    assert Assignment.objects.get(pk=held["id"]).status == "leased"
    assert not Output.objects.exists()
    assert agent.send(here(held, "result"), lease(held, **DONE)).status_code == 200


@pytest.mark.usefixtures("queued")
def test_result_without_output_or_handoff_is_409(agent: Caller) -> None:
    held = claim(agent)
    without = {key: DONE[key] for key in ("status", "comment")}
    problem(agent.send(here(held, "result"), lease(held, **without)), 409, "missing_output")
    without = {key: DONE[key] for key in ("status", "output")}
    problem(agent.send(here(held, "result"), lease(held, **without)), 409, "missing_handoff")
    assert Assignment.objects.get(pk=held["id"]).status == "leased"


@pytest.mark.usefixtures("queued")
def test_expired_lease_is_409_names_the_new_holder_and_keeps_the_content(
    project: Project, agent: Caller
) -> None:
    held = claim(agent)
    agent.send(here(held, "log"), lease(held, text="half done\n"))
    with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
        sweep()
        second = agent_client(project, name="second")
        taken = second.send(f"/api/projects/demo/tasks/{held['task']}/claim").json()
        for _ in range(2):
            late = agent.send(here(held, "result"), lease(held, **DONE))
            assert problem(late, 409, "lease_lost")["holder"] == "second"
        problem(agent.send(here(held, "heartbeat"), lease(held)), 409, "lease_lost")
        orphan = Output.objects.get()
        assert (orphan.is_orphan, orphan.content, orphan.title) == (True, "made", "work")
        done = second.send(here(taken, "result"), lease(taken, **DONE))
    assert done.json()["task_status"] == "done"


@pytest.mark.usefixtures("queued")
def test_strangers_result_is_refused_and_not_kept(project: Project, agent: Caller) -> None:
    held = claim(agent)
    stranger = agent_client(project, name="stranger")
    body = lease(held, **DONE)
    problem(stranger.send(here(held, "result"), body), 409, "lease_lost")
    guess = {**body, "lease_token": "guess"}
    problem(stranger.send(here(held, "result"), guess), 409, "lease_lost")
    assert not Output.objects.exists()


@pytest.mark.usefixtures("queued")
def test_outsider_gets_404_for_every_call(agent: Caller, outsider: Caller) -> None:
    held = claim(agent)
    for call in ("heartbeat", "result", "release", "tool-calls", "log"):
        problem(outsider.send(here(held, call), lease(held)), 404, "not_found")


@pytest.mark.usefixtures("queued")
def test_heartbeat_extends_and_notes_the_usage(agent: Caller) -> None:
    held = claim(agent)
    with time_machine.travel(timezone.now() + timedelta(minutes=10), tick=False):
        beat = agent.send(
            here(held, "heartbeat"), lease(held, usage={"turns": 2, "input_tokens": 9})
        ).json()
        agent.send(here(held, "heartbeat"), lease(held, usage={"turns": 3}, note="still here"))
    assert beat["lease_expires_at"] > held["lease_expires_at"]
    row = Assignment.objects.get(pk=held["id"])
    assert row.usage == {"turns": 3, "input_tokens": 9}
    assert LogChunk.objects.get().text == "still here\n"


@pytest.mark.usefixtures("queued")
def test_release_puts_it_back_under_a_new_token(agent: Caller) -> None:
    held = claim(agent)
    released = agent.send(here(held, "release"), lease(held, reason="not mine")).json()
    assert released["status"] == "queued"
    problem(agent.send(here(held, "release"), lease(held)), 409, "lease_lost")
    again = claim(agent)
    assert again["id"] == held["id"]
    assert again["lease_token"] != held["lease_token"]
    assert fresh(Task.objects.get(pk=held["task"])).failure_count == 0


@pytest.mark.usefixtures("queued")
def test_log_is_kept_and_counts_as_progress(agent: Caller) -> None:
    held = claim(agent)
    answer = agent.send(here(held, "log"), lease(held, text="第一行\n"))
    assert (answer.status_code, answer.json()) == (201, {"characters": 4})
    chunk = LogChunk.objects.get()
    assert (chunk.text, chunk.source) == ("第一行\n", "executor worker")
    assert Assignment.objects.get(pk=held["id"]).has_progress
    for text in ("", "x" * 100_001):
        assert agent.send(here(held, "log"), lease(held, text=text)).status_code == 422


def call(number: int, **more: Any) -> dict[str, Any]:
    """One tool call of a test."""
    return {"tool": "shell", "command": f"step {number}", "exit_code": 0, **more}


@pytest.mark.usefixtures("queued")
def test_tool_calls_are_recorded_as_they_came(agent: Caller) -> None:
    held = claim(agent)
    body = lease(held, calls=[call(1), call(2, exit_code=1, output_tail="no", duration_ms=5)])
    answer = agent.send(here(held, "tool-calls"), body)
    assert answer.json() == {"recorded": 2, "total": 2, "stopped": False, "warnings": []}
    shown = agent.read(f"/api/projects/demo/tasks/{held['task']}?expand=all")["tool_calls"]
    assert [one["outcome"] for one in shown] == ["ok", "failed"]
    assert shown[1]["output_tail"] == "no"
    for bad in ([], [{"tool": "x"}], [call(1, exit_code=2**40)], [call(1)] * 501):
        body = lease(held, calls=bad)
        assert agent.send(here(held, "tool-calls"), body).status_code == 422


@pytest.mark.usefixtures("queued")
def test_same_call_ten_times_warns_once(agent: Caller) -> None:
    held = claim(agent)
    for number in range(1, 13):
        answer = agent.send(here(held, "tool-calls"), lease(held, calls=[call(7)])).json()
        assert bool(answer["warnings"]) is (number == 10)
    assert len(events("assignment.warned")) == 1
    agent.send(here(held, "tool-calls"), lease(held, calls=[call(8)]))
    repeated = agent.send(here(held, "tool-calls"), lease(held, calls=[call(7)] * 10)).json()
    assert len(repeated["warnings"]) == 1


@pytest.mark.usefixtures("queued")
def test_repetition_before_another_call_of_its_batch_is_warned_of(agent: Caller) -> None:
    held = claim(agent)
    calls = [call(7)] * 15 + [call(8)]
    said = agent.send(here(held, "tool-calls"), lease(held, calls=calls)).json()["warnings"]
    assert said == ["the same call 15 times in a row: shell step 7"]
    twice = [call(8)] * 9 + [call(1)] + [call(2)] * 10
    said = agent.send(here(held, "tool-calls"), lease(held, calls=twice)).json()["warnings"]
    assert [one.rpartition(" ")[2] for one in said] == ["8", "2"]


@pytest.mark.usefixtures("queued")
def test_two_hundred_calls_end_the_assignment(agent: Caller) -> None:
    held = claim(agent)
    body = lease(held, calls=[call(number) for number in range(199)])
    assert agent.send(here(held, "tool-calls"), body).json()["stopped"] is False
    last = agent.send(here(held, "tool-calls"), lease(held, calls=[call(200)])).json()
    assert (last["stopped"], last["total"]) == (True, 200)
    row = Assignment.objects.get(pk=held["id"])
    assert (row.status, row.tool_calls.count()) == ("failed", 200)
    context = Task.objects.get(pk=held["task"]).failure_context
    assert context[0]["class"] == "budget"
    problem(agent.send(here(held, "tool-calls"), lease(held, calls=[call(1)])), 409, "lease_lost")


@pytest.mark.usefixtures("queued")
def test_executor_that_asked_sir_hands_nothing_in_meanwhile(agent: Caller) -> None:
    held = claim(agent)
    path = f"/api/projects/demo/tasks/{held['task']}"
    agent.send(f"{path}/status", {"status": "waiting_human", "detail": "Which?"})
    problem(agent.send(here(held, "result"), lease(held, **DONE)), 409, "illegal_transition")
    problem(agent.send(here(held, "release"), lease(held)), 409, "illegal_transition")
    assert agent.read(path)["status"] == "waiting_human"
