"""Tasks over REST: messages, create, list, read with everything."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Project, Task
from orchestration.services.audit import seal_events
from orchestration.states import TaskStatus
from tests.api.callers import Caller, agent_client, events, problem
from tests.factories import (
    agent_step,
    child,
    drive,
    execute,
    fresh,
    new_agent,
    step,
    submit_plan,
)

TASKS = "/api/projects/demo/tasks"
MESSAGES = "/api/projects/demo/messages"
EXPANDED = {
    "assessments", "plans", "blueprint", "deviations", "outputs", "comments", "observations",
    "assertions", "verifications", "marks", "reviews", "defects", "artifacts", "assignments",
    "children", "decisions", "tool_calls",
}  # fmt: skip
SHAPE = {
    "id", "key", "external_key", "kind", "project", "title", "description", "status",
    "master_status", "status_detail", "ready", "not_ready_reason", "route", "complexity",
    "risk_level", "score", "depth", "phase", "step_key", "parent", "depends_on", "role", "scope",
    "attempt", "failure_count", "estimated_steps", "actual_steps", "waiting_for_sir", "assignee",
    "last_outcome", "version", "created_at", "updated_at",
}  # fmt: skip


def test_message_answers_what_s0_decided(agent: Caller) -> None:
    answer = agent.send(MESSAGES, {"text": "谢谢"})
    assert answer.status_code == 201
    thanks = answer.json()
    assert thanks["assessment"]["stage"] == "S0"
    assert thanks["assessment"]["outcome"] == "direct"
    assert thanks["assessment"]["signals"] == []
    assert thanks["task"]["kind"] == "message"
    work = agent.send(MESSAGES, {"text": "谢谢，另外把整个支付系统重构一下"}).json()
    assert work["assessment"]["outcome"] == "assess"
    assert {"kind", "text", "offset"} <= work["assessment"]["signals"][0].keys()
    assert isinstance(work["assessment"]["elapsed_us"], int)
    assert work["task"]["kind"] == "task"


def test_task_has_every_member_that_clients_rely_on(agent: Caller) -> None:
    made = agent.send(MESSAGES, {"text": "Implement it"}).json()["task"]
    for document in (made, agent.read(f"{TASKS}/{made['id']}"), agent.read(TASKS)["results"][0]):
        assert document.keys() >= SHAPE
    whole = agent.read(f"{TASKS}/{made['id']}?expand=all")
    assert whole.keys() >= SHAPE | EXPANDED
    problem(agent.get(f"{TASKS}/{made['id']}?expand=some"), 422, "invalid")


def test_created_task_with_a_plan_is_a_workflow_whose_plan_is_audited(
    agent: Caller, project: Project
) -> None:
    plan = {"summary": "two", "steps": [{"id": 1, "action": "a", "expected_artifacts": ["a.txt"]}]}
    made = agent.send(TASKS, {"title": "Build", "plan": plan, "spec_id": "SPEC-1"}).json()
    assert (made["route"], made["status"], made["spec_id"]) == ("workflow", "working", "SPEC-1")
    drive(project)
    whole = agent.read(f"{TASKS}/{made['key']}?expand=all")
    assert whole["plans"][0]["status"] == "approved"
    assert whole["plans"][0]["agent"] == "worker"
    assert whole["blueprint"]["sha256"] == whole["plans"][0]["digest"]
    assert [one["step_key"] for one in whole["children"]] == ["1"]
    assert whole["children"][0]["parent"] == made["id"]


def test_plan_over_rest_is_never_trusted(sir: Caller, project: Project) -> None:
    plan = {"summary": "s", "steps": [{"id": "1", "action": "delete", "run": ["touch made"]}]}
    made = sir.send(TASKS, {"title": "Build", "plan": plan}).json()
    drive(project)
    kinds = [one["kind"] for one in sir.read("/api/decisions/")["results"]]
    assert kinds == ["command_approval"]
    assert child(Task.objects.get(pk=made["id"]), "1").is_awaiting_commands


@pytest.mark.parametrize(
    ("body", "status", "code", "path"),
    [
        ({"title": "t", "plan": {"steps": []}}, 422, "plan_invalid", "steps"),
        (
            {"title": "t", "plan": {"steps": [{"id": "a", "action": "x", "depends_on": ["a"]}]}},
            422, "plan_invalid", "steps.0.depends_on.0",
        ),
        ({"title": "t", "depends_on": ["nope"]}, 422, "invalid", "depends_on.nope"),
        ({"title": "t", "depends_on": ["²", "9" * 40]}, 422, "invalid", "depends_on.²"),
        ({"title": "t", "route": "workflow"}, 422, "invalid", "route"),
        ({"title": "t", "role": "Wizard"}, 422, "invalid", "role"),
        ({"title": "t", "status": "done"}, 422, "unknown_fields", "status"),
        ({"title": "t", "rank": 10**12}, 422, "invalid", "rank"),
        ({"title": "t" * 301}, 422, "invalid", "title"),
        ({}, 422, "invalid", "text"),
    ],
)  # fmt: skip
def test_bad_task_is_refused_with_every_fault(
    agent: Caller, body: dict[str, Any], status: int, code: str, path: str
) -> None:
    found = problem(agent.send(TASKS, body), status, code)
    assert found["errors"][0]["path"] == path
    assert not Task.objects.exists()


def test_taken_external_key_is_409_and_a_dependency_holds_back(agent: Caller) -> None:
    first = agent.send(TASKS, {"title": "a", "external_key": "task_a", "route": "direct"}).json()
    problem(agent.send(TASKS, {"title": "b", "external_key": "task_a"}), 409, "key_taken")
    second = agent.send(TASKS, {"title": "b", "depends_on": ["task_a"], "route": "direct"}).json()
    assert second["depends_on"] == [first["id"]]
    assert (second["ready"], second["not_ready_reason"]) == (False, "dependencies")
    assert agent.read(f"{TASKS}/task_a")["id"] == first["id"]
    refused = agent.send(f"{TASKS}/{second['id']}/claim")
    assert problem(refused, 409, "not_ready")["reason"] == "dependencies"


def test_lists_filter_by_state_readiness_and_parent(agent: Caller, project: Project) -> None:
    root = submit_plan(project, agent_step("a"), agent_step("b", after=["a"]))
    drive(project)
    agent.send(TASKS, {"title": "free", "route": "direct"})
    ready = agent.read(TASKS, ready="true")["results"]
    assert [one["title"] for one in ready] == ["do a", "free"]
    assert all(one["ready"] for one in ready)
    rest = agent.read(TASKS, ready="false")["results"]
    assert {one["title"] for one in rest} == {"a planned task", "do b"}
    assert [one["step_key"] for one in agent.read(TASKS, parent=str(root.pk))["results"]] == [
        "a", "b",
    ]  # fmt: skip
    assert len(agent.read(TASKS, parent="none")["results"]) == 2
    assert [one["id"] for one in agent.read(TASKS, status="working")["results"]] == [str(root.pk)]
    assert len(agent.read(TASKS, status="IN_PROGRESS,PENDING")["results"]) == 4
    for bad in ("status=nope", "ready=yes", "view=board", "page_size=0", "cursor=x"):
        assert agent.get(f"{TASKS}?{bad}").status_code == 422
    problem(agent.get(f"{TASKS}?parent=999"), 404, "not_found")


@pytest.mark.parametrize("is_busy", [True, False])
def test_ready_list_and_each_task_agree(agent: Caller, project: Project, is_busy: bool) -> None:  # noqa: FBT001
    limits = '{"limits": {"parallel_children": 1}}'
    Project.objects.filter(pk=project.pk).update(policy_json=limits)
    project.refresh_from_db()
    root = submit_plan(project, agent_step("a"), agent_step("b"), agent_step("c", phase=2))
    drive(project)
    if is_busy:
        execute_half(child(root, "a"))
    listed = {one["id"] for one in agent.read(TASKS, ready="true")["results"]}
    each = {one["id"] for one in agent.read(TASKS)["results"] if one["ready"]}
    assert listed == each
    assert len(listed) == (0 if is_busy else 2)


def execute_half(task: Task) -> None:
    """Let an agent claim a step and no more."""
    Task.objects.filter(pk=task.pk).update(status=TaskStatus.CLAIMED.value)


def test_pages_return_each_task_once_also_while_tasks_come_in(
    agent: Caller, project: Project
) -> None:
    for number in range(7):
        agent.send(TASKS, {"title": f"t{number}", "route": "direct"})
    seen: list[str] = []
    page = agent.read(TASKS, page_size="3")
    while True:
        seen += [one["title"] for one in page["results"]]
        if page["next"] is None:
            break
        if len(seen) == 3:
            agent.send(TASKS, {"title": "late", "route": "direct"})
        page = agent.read(page["next"])
    assert seen == ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "late"]
    back = agent.read(page["previous"])
    assert [one["title"] for one in back["results"]] == ["t3", "t4", "t5"]
    first = agent.read(back["previous"])
    assert [one["title"] for one in first["results"]] == ["t0", "t1", "t2"]
    assert first["previous"] is None
    assert agent.read(first["next"])["results"] == back["results"]


def test_list_costs_the_same_queries_for_any_number(
    agent: Caller, project: Project, django_assert_max_num_queries: Any
) -> None:
    submit_plan(project, *(agent_step(f"s{number}") for number in range(40)))
    drive(project)
    with django_assert_max_num_queries(12):
        assert len(agent.read(TASKS)["results"]) == 41


def test_reading_everything_costs_a_fixed_number_of_queries(
    agent: Caller, project: Project, django_assert_max_num_queries: Any
) -> None:
    root = submit_plan(project, *(step(f"s{number}") for number in range(30)))
    drive(project)
    with django_assert_max_num_queries(36):
        whole = agent.read(f"{TASKS}/{root.pk}?expand=all")
    assert whole["status"] == "done"
    assert len(whole["children"]) == whole["children_total"] == 30


def test_finished_step_shows_its_whole_story(agent: Caller, project: Project) -> None:
    root = submit_plan(project, agent_step("a", verify=["true"]))
    drive(project)
    execute(child(root, "a"), new_agent(project=project), "the text")
    drive(project)
    whole = agent.read(f"{TASKS}/{child(root, 'a').pk}?expand=all")
    assert whole["outputs"][0]["content"] == "the text"
    assert whole["comments"][0]["comment_type"] == "handoff"
    assert whole["assignments"][0]["status"] == "done"
    assert "lease_token" not in whole["assignments"][0]
    assert whole["verifications"]
    assert whole["reviews"][0]["verdict"] == "pass"
    assert fresh(root).status == whole["status"] == "done"
    assert whole["artifacts"][0]["content_url"].endswith("/content")


def test_open_decisions_count_for_the_task_and_all_above_it(
    agent: Caller, project: Project
) -> None:
    root = submit_plan(project, agent_step("a"))
    drive(project)
    leaf = f"{TASKS}/{child(root, 'a').pk}"
    agent.send(f"{leaf}/claim")
    agent.send(f"{leaf}/status", {"status": "working"})
    agent.send(f"{leaf}/status", {"status": "waiting_human", "detail": "Which colour?"})
    assert agent.read(leaf)["waiting_for_sir"] == 1
    assert agent.read(f"{TASKS}/{root.pk}")["waiting_for_sir"] == 1
    whole = agent.read(f"{leaf}?expand=all")
    assert whole["decisions"][0]["question"] == "Which colour?"


def test_message_to_another_project_is_404_and_changes_nothing(
    outsider: Caller, project: Project
) -> None:
    problem(outsider.send(MESSAGES, {"text": "Implement it"}), 404, "not_found")
    assert not Task.objects.exists()
    assert events("task.pending") == []


def test_every_201_is_in_the_trail_under_the_caller(agent: Caller, project: Project) -> None:
    agent.send(TASKS, {"title": "t", "route": "direct"})
    seal_events()
    feed = agent.read("/api/projects/demo/events")["results"]
    assert ("task.pending", "agent:worker") in {(one["kind"], one["actor"]) for one in feed}


def test_two_agents_see_the_same_rows(project: Project, agent: Caller) -> None:
    other = agent_client(project, name="second", scopes=["observe"])
    agent.send(TASKS, {"title": "t", "route": "direct"})
    assert other.read(TASKS) == agent.read(TASKS)
