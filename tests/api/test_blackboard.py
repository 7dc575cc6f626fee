"""The blackboard: claim, work, hand in, give back; cancel and re-plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Decision, Output, Project, Task
from orchestration.services.sweeping import sweep
from orchestration.services.working import work_until_idle
from orchestration.states import TASK_MOVES, TaskStatus
from tests.api.callers import Caller, agent_client, events, problem
from tests.factories import SLOT, agent_step, child, drive, fresh, submit_plan

TASKS = "/api/projects/demo/tasks"
HANDOFF = {"comment_type": "handoff", "body": "Decided: none. Problems: none. Advice: go on."}
NOTE = {"title": "note", "content": "the work", "type": "document"}


def status_of(caller: Caller, path: str) -> str:
    """Read a task's state."""
    return str(caller.read(path)["status"])


def test_whole_way_from_claim_to_done(agent: Caller, task: str) -> None:
    claimed = agent.send(f"{task}/claim").json()
    assert claimed["seat"] == "executor"
    assert claimed["lease_token"]
    assert claimed["hints"].keys() == {"model", "effort", "thinking"}
    assert claimed["limits"].keys() == {"turns", "cost_usd", "deadline"}
    assert agent.read(task)["assignee"] == "worker"
    working = agent.send(f"{task}/status", {"status": "working"}).json()
    assert working["status"] == "working"
    output = agent.send(f"{task}/outputs", NOTE)
    assert output.status_code == 201
    assert output.json()["version"] == 1
    assert agent.send(f"{task}/comments", HANDOFF).status_code == 201
    done = agent.send(f"{task}/status", {"status": "review"}).json()
    assert done["status"] == "done"
    assert [one.actor for one in events("task.claimed")] == ["agent:worker"]
    assert [one.before for one in events("task.review")] == [{"status": "working"}]


@pytest.mark.parametrize(
    ("report", "status"),
    [
        ({"status": "failed", "detail": "no"}, "pending"),
        ({"status": "blocked", "detail": "no", "blocked_by": []}, "blocked"),
    ],
)
def test_nobody_holds_a_task_that_was_given_up(
    agent: Caller, held: str, report: dict[str, Any], status: str
) -> None:
    assert agent.read(held)["assignee"] == "worker"
    agent.send(f"{held}/status", report)
    left = agent.read(held)
    assert (left["status"], left["assignee"]) == (status, None)


def test_nobody_holds_a_task_that_failed_for_good(
    project: Project, agent: Caller, held: str
) -> None:
    project.policy_json = '{"thresholds": {"max_retries": 1}}'
    project.save()
    agent.send(f"{held}/status", {"status": "failed", "detail": "no"})
    left = agent.read(held)
    assert (left["status"], left["assignee"]) == ("fatal", None)


def test_repeated_final_report_is_200_and_changes_nothing(agent: Caller, held: str) -> None:
    agent.send(f"{held}/outputs", NOTE)
    agent.send(f"{held}/comments", HANDOFF)
    first = agent.send(f"{held}/status", {"status": "review"})
    again = agent.send(f"{held}/status", {"status": "review"})
    assert again.status_code == 200
    assert again.json() == first.json()
    assert len(events("task.review")) == 1
    other = agent.send(f"{held}/status", {"status": "failed", "detail": "after all"})
    problem(other, 409, "lease_lost")


def test_claim_of_a_taken_task_names_the_holder(project: Project, agent: Caller, task: str) -> None:
    agent.send(f"{task}/claim")
    second = agent_client(project, name="second")
    found = problem(second.send(f"{task}/claim"), 409, "not_ready")
    assert (found["reason"], found["holder"]) == ("claimed", "worker")
    assert Task.objects.get().assignee.name == "worker"  # type: ignore[union-attr]


def test_task_that_the_system_runs_is_not_claimed(agent: Caller, project: Project) -> None:
    root = submit_plan(project, {"id": "a", "action": "a", "run": ["true"]})
    assert work_until_idle(SLOT, slice_seconds=0, project_id=project.pk) == 1
    found = agent.send(f"{TASKS}/{child(root, 'a').pk}/claim")
    assert problem(found, 409, "not_ready")["reason"] == "system_backend"


@pytest.mark.parametrize("status", ["failed", "blocked", "waiting_human"])
@pytest.mark.parametrize("detail", ["", "   "])
def test_a_move_that_needs_words_is_422_without_them(
    agent: Caller, held: str, status: str, detail: str
) -> None:
    found = problem(
        agent.send(f"{held}/status", {"status": status, "detail": detail}), 422, "invalid"
    )
    assert found["errors"][0]["path"] == "detail"
    assert status_of(agent, held) == "working"


@pytest.mark.parametrize("status", ["done", "cancelled", "pending", "claimed", "fatal", "", 7])
def test_status_that_no_assignee_sets_is_422(agent: Caller, held: str, status: Any) -> None:
    problem(agent.send(f"{held}/status", {"status": status, "detail": "x"}), 422, "invalid")
    assert status_of(agent, held) == "working"


@pytest.mark.parametrize(
    "current", [one for one in TaskStatus if one not in ("claimed", "working")]
)
@pytest.mark.parametrize("wanted", ["working", "review", "failed", "blocked", "waiting_human"])
def test_illegal_move_is_409_and_names_the_allowed_ones(
    agent: Caller, held: str, current: TaskStatus, wanted: str
) -> None:
    agent.send(f"{held}/outputs", NOTE)
    agent.send(f"{held}/comments", HANDOFF)
    Task.objects.update(status=current.value, asked_from="working")
    answer = agent.send(f"{held}/status", {"status": wanted, "detail": "because"})
    found = problem(answer, 409, "illegal_transition")
    assert found["allowed"] == (["claimed"] if current == "pending" else [])
    assert set(found["allowed"]) <= set(TASK_MOVES[current])
    assert Task.objects.get().status == current.value


def test_failing_says_why_and_starts_the_next_attempt(agent: Caller, held: str) -> None:
    agent.send(f"{held}/status", {"status": "failed", "detail": "the compiler is missing"})
    task = agent.read(f"{held}?expand=all")
    assert task["last_outcome"] == "failed: the compiler is missing"
    assert task["failure_context"][0]["class"] == "agent_failed"
    assert (task["status"], task["attempt"]) == ("pending", 2)


def test_waiting_task_is_moved_by_sir_alone(agent: Caller, sir: Caller, held: str) -> None:
    asked = agent.send(f"{held}/status", {"status": "waiting_human", "detail": "Which colour?"})
    assert asked.json()["status"] == "waiting_human"
    for status in ("working", "failed", "review", "blocked"):
        answer = agent.send(f"{held}/status", {"status": status, "detail": "x"})
        assert problem(answer, 409, "illegal_transition")["allowed"] == []
    problem(agent.send(f"{held}/release"), 409, "illegal_transition")
    problem(agent.send(f"{held}/progress", {"uncertain": True}), 409, "illegal_transition")
    assert agent.send(f"{held}/heartbeat").json()["is_clock_stopped"] is True
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=False):
        for _ in range(3):
            sweep()
    assert status_of(agent, held) == "waiting_human"
    decision = Decision.objects.get()
    verdict = {"verdict": "answer", "reason": "Blue.", "version": 1, "digest": decision.digest}
    assert sir.send(f"/api/decisions/{decision.pk}/decide", verdict).status_code == 200
    assert status_of(agent, held) == "working"
    assert agent.read(f"{held}?expand=all")["comments"][0]["body"] == "Blue."


def test_blocked_task_waits_for_its_blocker(agent: Caller, held: str, sir: Caller) -> None:
    other = agent.send(TASKS, {"title": "first", "route": "direct"}).json()
    blocked = agent.send(
        f"{held}/status", {"status": "blocked", "detail": "needs it", "blocked_by": [other["key"]]}
    )
    assert blocked.json()["status"] == "blocked"
    assert agent.read(f"{held}?expand=all")["blocked_by"] == [other["id"]]
    path = f"{TASKS}/{other['id']}"
    agent.send(f"{path}/claim")
    agent.send(f"{path}/outputs", NOTE)
    agent.send(f"{path}/comments", HANDOFF)
    agent.send(f"{path}/status", {"status": "working"})
    assert agent.send(f"{path}/status", {"status": "review"}).json()["status"] == "done"
    assert status_of(agent, held) == "pending"


@pytest.mark.parametrize(
    "blocker", ["999999", "DEMO-999", "OTHER-2", "-2", "²", "9" * 30, "nonsense"]
)
def test_unknown_blocker_is_422(agent: Caller, held: str, blocker: str) -> None:
    agent.send(TASKS, {"title": "the second", "route": "direct"})
    body = {"status": "blocked", "detail": "needs it", "blocked_by": [blocker]}
    problem(agent.send(f"{held}/status", body), 422, "invalid")
    assert status_of(agent, held) == "working"


def test_blocker_that_is_the_task_itself_is_422(agent: Caller, held: str) -> None:
    own = held.rpartition("/")[2]
    body = {"status": "blocked", "detail": "needs itself", "blocked_by": [own]}
    problem(agent.send(f"{held}/status", body), 422, "invalid")


def test_old_lease_token_is_fenced_off(agent: Caller, task: str) -> None:
    first = agent.send(f"{task}/claim").json()["lease_token"]
    agent.send(f"{task}/release")
    second = agent.send(f"{task}/claim").json()["lease_token"]
    assert first != second
    for call, body in (
        ("heartbeat", {}), ("status", {"status": "working"}), ("outputs", NOTE),
        ("progress", {}), ("release", {}),
    ):  # fmt: skip
        old = agent.send(f"{task}/{call}", body, X_Lease_Token=first)
        problem(old, 409, "lease_lost")
    assert agent.send(f"{task}/heartbeat", X_Lease_Token=second).status_code == 200


def test_version_that_was_seen_is_checked(agent: Caller, sir: Caller, held: str) -> None:
    version = agent.read(held)["version"]
    stale = {"status": "failed", "detail": "no", "version": version - 1}
    assert problem(agent.send(f"{held}/status", stale), 412, "stale")["version"] == version
    cancel = sir.send(f"{held}/cancel", {"reason": "no"}, If_Match=f'"{version - 1}"')
    problem(cancel, 412, "stale")
    assert sir.send(f"{held}/cancel", {"reason": "no"}, If_Match=f'"{version}"').status_code == 200


def test_release_counts_nothing(agent: Caller, held: str) -> None:
    released = agent.send(f"{held}/release", {"reason": "not mine"}).json()
    assert (released["status"], released["attempt"], released["assignee"]) == ("pending", 1, None)
    assert released["failure_count"] == 0
    problem(agent.send(f"{held}/release"), 409, "lease_lost")


def test_progress_upgrades_a_task_that_turns_out_hard(agent: Caller, held: str) -> None:
    one = agent.send(f"{held}/progress", {"step": 1, "note": "looked around"}).json()
    assert (one["upgraded"], one["task"]["actual_steps"]) == (False, 1)
    for domain in ("billing", "taxes", "shipping"):
        answer = agent.send(f"{held}/progress", {"new_domain": domain}).json()
        assert answer["upgraded"] is False
    body = {"step": 9, "new_domain": "law", "uncertain": True}
    answer = agent.send(f"{held}/progress", body).json()
    assert answer["upgraded"] is True
    after = agent.read(f"{held}?expand=all")
    assert (after["route"], after["actual_steps"]) == ("three_step", 9)
    assert after["score"] > 15
    [cancelled] = [one for one in after["assignments"] if one["seat"] == "executor"]
    assert (cancelled["status"], cancelled["error"]) == ("cancelled", "upgraded")
    problem(agent.send(f"{held}/heartbeat"), 409, "upgraded")


def test_progress_that_says_little_upgrades_nothing(agent: Caller, held: str) -> None:
    for body in ({"step": 1}, {"step": 2}, {"note": "still at it"}):
        assert agent.send(f"{held}/progress", body).json()["upgraded"] is False
    after = agent.read(held)
    assert (after["route"], after["status"], after["actual_steps"]) == ("direct", "working", 3)


def test_call_after_an_upgrade_says_upgraded(agent: Caller, held: str, project: Project) -> None:
    text = "重构整个系统的架构并迁移全部数据，删除旧数据库，涉及前端、后端、数据库和运维"
    Task.objects.update(description=text, title=text)
    answer = agent.send(f"{held}/progress", {"step": 9, "uncertain": True}).json()
    assert answer["upgraded"] is True
    problem(agent.send(f"{held}/outputs", NOTE), 409, "upgraded")
    orphan = Output.objects.get()
    assert orphan.is_orphan


def test_cancelled_task_takes_its_tree_and_its_decisions_along(
    agent: Caller, sir: Caller, project: Project
) -> None:
    root = submit_plan(project, agent_step("a"), agent_step("b", after=["a"]))
    drive(project)
    leaf = f"{TASKS}/{child(root, 'a').pk}"
    agent.send(f"{leaf}/claim")
    agent.send(f"{leaf}/status", {"status": "waiting_human", "detail": "Which?"})
    problem(sir.send(f"{TASKS}/{root.pk}/cancel"), 422, "invalid")
    done = sir.send(f"{TASKS}/{root.pk}/cancel", {"reason": "not needed"}).json()
    assert (done["status"], done["cancel_reason"]) == ("cancelled", "cancelled_by_sir")
    assert set(root.children.values_list("status", flat=True)) == {"cancelled"}
    assert Decision.objects.get().status == "withdrawn"
    again = problem(
        sir.send(f"{TASKS}/{root.pk}/cancel", {"reason": "x"}), 409, "illegal_transition"
    )
    assert again["allowed"] == []
    problem(agent.send(f"{leaf}/heartbeat"), 409, "lease_lost")


def test_replan_starts_the_next_attempt_and_counts_nothing(
    sir: Caller, agent: Caller, project: Project
) -> None:
    root = submit_plan(project, agent_step("a"))
    drive(project)
    answer = sir.send(f"{TASKS}/{root.pk}/replan", {"reason": "new facts"})
    assert answer.status_code == 200
    drive(project)
    assert (fresh(root).attempt, fresh(root).failure_count) == (2, 0)
    leaf = sir.send(f"{TASKS}/{child(root, 'a').pk}/replan", {"reason": "x"})
    problem(leaf, 409, "not_replannable")


@pytest.mark.parametrize("kind", ["general", "observation", "review"])
def test_people_and_agents_comment_and_the_name_is_the_credentials(
    agent: Caller, sir: Caller, task: str, kind: str
) -> None:
    for caller, author in ((agent, "worker"), (sir, "sir")):
        answer = caller.send(f"{task}/comments", {"comment_type": kind, "body": "看到了"})
        assert answer.json()["author"] == author
    whole = agent.read(f"{task}?expand=all")
    assert len(whole["comments"]) == 2
    assert len(whole["observations"]) == (2 if kind == "observation" else 0)
    forged = agent.send(f"{task}/comments", {"body": "x", "author": "sir"})
    problem(forged, 422, "unknown_fields")
    problem(agent.send(f"{task}/comments", {"body": "  "}), 422, "invalid")
