"""The master loop over REST: packages in, control commands out; source 002's worked examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.models import AuditEvent, ControlCommand, Decision, Project, Task
from orchestration.services.loop import replan_due_roots
from orchestration.states import TaskStatus
from tests.api.callers import Caller, agent_client, problem
from tests.factories import agent_step, child, drive, execute, fresh, new_agent, submit_plan

DEMO = "/api/projects/demo"
IMPORT = f"{DEMO}/tasks/import"
MASTER = f"{DEMO}/tasks?view=master"
COMMANDS = f"{DEMO}/control-commands"
NO_GO = """# 验证与发布证据包

裁定: NO-GO
原因: TC-AUTH-001 失败

| 类别 | 状态 | 关键数据 | 报告 |
|---|---|---|---|
| 单元 | PASSED | 41/41 | |
| 集成 | FAILED | 11/12 | |
"""
GO = "裁定: GO\n依据: 全部计划内检查通过\n"


def bring_in(agent: Caller, *keys: str) -> None:
    """Import a list whose first task is in progress, all of one specification."""
    listed = {
        key: {"status": "PENDING" if at else "IN_PROGRESS", "spec_id": "SPEC-001"}
        for at, key in enumerate(keys)
    }
    answer = agent.send(IMPORT, listed)
    assert answer.status_code == 201, answer.content


def judge(caller: Caller, key: str, package: Any, **more: Any) -> Any:
    """Post a package on a task, as the loop's own state."""
    body = {"latest_validation_package": package, "authoritative": True, **more}
    return caller.send(f"{DEMO}/tasks/{key}/validation", body)


def statuses(caller: Caller) -> dict[str, str]:
    return {key: entry["status"] for key, entry in caller.read(MASTER).items()}


def test_worked_example_1_a_failure_restarts_from_step_2(agent: Caller) -> None:
    bring_in(agent, "task_auth")
    answer = judge(agent, "task_auth", NO_GO)
    assert answer.status_code == 201, answer.content
    command = answer.json()
    link = command["context_for_step_2"]["failure_context"]["evidence_link"]
    assert command["next_action"] == "RESTART_FROM_STEP_2"
    assert command["context_for_step_2"] == {
        "original_spec_id": "SPEC-001",
        "task_to_process": "task_auth",
        "failure_context": {
            "failed_task": "task_auth",
            "root_cause": "Integration test failed: TC-AUTH-001",
            "evidence_link": link,
        },
    }
    assert command["final_report"] is None
    entry = agent.read(MASTER)["task_auth"]
    assert (entry["status"], entry["reason"]) == ("FAILED", "TC-AUTH-001 failed")
    assert command["master_list_after"]["task_auth"] == entry
    assert link.endswith("/validation_package.md")
    text = agent.get(link)
    assert text.headers["Content-Type"].startswith("text/markdown")
    assert "NO-GO" in text.content.decode()
    assert "TC-AUTH-001" in text.content.decode()
    assert not AuditEvent.objects.filter(kind="task.done").exists()


def test_worked_example_2_a_success_proceeds_to_the_next_task(agent: Caller) -> None:
    bring_in(agent, "task_auth", "task_payment")
    answer = judge(agent, "task_auth", GO, all_artifacts_from_current_loop={"S1": "spec"})
    assert answer.status_code == 201, answer.content
    command = answer.json()
    assert command["next_action"] == "PROCEED_TO_NEXT_TASK"
    assert command["context_for_step_2"] == {
        "original_spec_id": "SPEC-001",
        "task_to_process": "task_payment",
        "failure_context": None,
    }
    after = {"task_auth": "COMPLETED", "task_payment": "IN_PROGRESS"}
    assert statuses(agent) == after
    assert {key: one["status"] for key, one in command["master_list_after"].items()} == after


def test_the_bare_words_of_the_source_are_understood(agent: Caller) -> None:
    bring_in(agent, "task_auth")
    command = judge(agent, "task_auth", "...裁定: NO-GO... 原因: TC-AUTH-001 失败...").json()
    assert command["next_action"] == "RESTART_FROM_STEP_2"
    assert "TC-AUTH-001" in command["context_for_step_2"]["failure_context"]["root_cause"]
    assert agent.read(MASTER)["task_auth"]["reason"] == "TC-AUTH-001 failed"


def test_the_last_success_terminates_with_a_report(agent: Caller) -> None:
    bring_in(agent, "only")
    command = judge(agent, "only", {"verdict": "GO"}).json()
    assert command["next_action"] == "TERMINATE_SUCCESS"
    assert command["context_for_step_2"] is None
    assert "PASSED" in command["final_report"]
    assert Project.objects.get(slug="demo").status == "completed"


def test_the_failure_reaches_the_next_planner_and_the_task_is_planned_again(
    agent: Caller, project: Project
) -> None:
    bring_in(agent, "task_auth", "task_payment")
    judge(agent, "task_auth", NO_GO)
    assert replan_due_roots() == 1
    assert statuses(agent) == {"task_auth": "IN_PROGRESS", "task_payment": "PENDING"}
    held = agent.send("/api/assignments/claim", {"seats": ["planner"]}).json()
    told = held["input"]["failures"]
    assert [one["root_cause"] for one in told] == ["Integration test failed: TC-AUTH-001"]
    assert told[0]["failed_cases"] == [{"id": "TC-AUTH-001"}]
    prompt = agent.get(held["prompt_url"])
    assert "Integration test failed: TC-AUTH-001" in prompt.content.decode()


def test_the_third_failure_is_fatal_and_sir_sees_all_three(agent: Caller) -> None:
    bring_in(agent, "task_auth", "task_payment")
    for number in (1, 2, 3):
        package = {"verdict": "NO-GO", "failed_cases": [f"TC-AUTH-00{number}"]}
        command = judge(agent, "task_auth", package).json()
        replan_due_roots()
    assert command["next_action"] == "SUSPEND_FOR_HUMAN"
    assert command["context_for_step_2"]["failure_context"]["root_cause"] == "TC-AUTH-003 failed"
    listed = agent.read(MASTER)
    assert listed["task_auth"]["status"] == "FATAL_ERROR: MAX_RETRIES_EXCEEDED"
    assert listed["task_payment"]["status"] == "PENDING"
    assert Project.objects.get(slug="demo").status == "suspended"
    decision = Decision.objects.get(kind="max_retries")
    assert decision.is_p0
    shown = decision.content["failures"]
    assert [one["failed_cases"][0]["id"] for one in shown] == [
        "TC-AUTH-001", "TC-AUTH-002", "TC-AUTH-003",
    ]  # fmt: skip
    assert all(one["evidence_link"] and one["class"] for one in shown)
    actions = [one["next_action"] for one in agent.read(COMMANDS)["results"]]
    assert actions == ["RESTART_FROM_STEP_2", "RESTART_FROM_STEP_2", "SUSPEND_FOR_HUMAN"]


def test_a_passing_cause_backs_off_and_burns_no_attempt_until_its_cap(agent: Caller) -> None:
    bring_in(agent, "task_auth")
    package = {
        "verdict": "INDETERMINATE",
        "failure_class": "environment",
        "root_cause": "registry is down",
    }
    command = judge(agent, "task_auth", package).json()
    assert command["next_action"] == "RESTART_FROM_STEP_2"
    root = Task.objects.get(external_key="task_auth")
    assert (root.status, root.failure_count, root.transient_failures) == (TaskStatus.FAILED, 0, 1)
    assert root.replan_at is not None
    assert replan_due_roots() == 0
    Task.objects.filter(pk=root.pk).update(replan_at=root.created_at, transient_failures=10)
    assert replan_due_roots() == 1
    judge(agent, "task_auth", package)
    root.refresh_from_db()
    assert (root.failure_count, root.transient_failures) == (1, 0)


def test_an_indeterminate_verdict_without_a_passing_cause_counts(agent: Caller) -> None:
    bring_in(agent, "task_auth")
    judge(agent, "task_auth", {"verdict": "INDETERMINATE", "root_cause": "cannot tell"})
    assert Task.objects.get(external_key="task_auth").failure_count == 1


def test_a_negative_verdict_releases_no_dependent(agent: Caller) -> None:
    listed = {
        "a": {"status": "IN_PROGRESS"},
        "b": {"status": "PENDING", "depends_on": ["a"]},
    }
    agent.send(IMPORT, listed)
    judge(agent, "a", {"verdict": "NO-GO", "root_cause": "no"})
    waiting = Task.objects.get(external_key="b")
    assert (waiting.status, waiting.remaining_dependencies) == (TaskStatus.PENDING, 1)


FAULTY = [
    ({"verdict": "MAYBE", "failed_cases": [{}], "colour": "red"}, 3),
    ({"verdict": "NO-GO"}, 1),
    ({"verdict": "GO", "failed_cases": ["TC-1"]}, 1),
    ({"markdown": "no verdict at all"}, 1),
    ({"markdown": "Verdict: GO\nVerdict: NO-GO"}, 1),
    ({"verdict": "GO", "junit": ["<!DOCTYPE x [<!ENTITY e 'x'>]><testsuite/>"]}, 1),
    ({"verdict": "GO", "junit": ["<testsuite>"]}, 1),
    ({"verdict": "GO", "master_task_list": {"a": {"status": "SOON"}, "b": 1}}, 2),
]


@pytest.mark.parametrize(("body", "count"), FAULTY)
def test_every_fault_is_listed_and_nothing_changes(
    agent: Caller, body: dict[str, Any], count: int
) -> None:
    bring_in(agent, "task_auth")
    told = problem(agent.send(f"{DEMO}/tasks/task_auth/validation", body), 422, "package_invalid")
    assert len(told["errors"]) >= count, told
    assert not ControlCommand.objects.exists()
    assert statuses(agent) == {"task_auth": "IN_PROGRESS"}


def test_markdown_body_in_english_and_a_junit_report(agent: Caller) -> None:
    bring_in(agent, "task_auth")
    text = (
        "Verdict: NO-GO\nReason: the suite is red\n\n```xml\n"
        '<testsuite name="integration"><testcase classname="auth" name="login">'
        '<failure message="401"/></testcase><testcase name="ok"/></testsuite>\n```\n'
    )
    answer = agent.generic(
        "POST", f"{DEMO}/tasks/task_auth/validation?authoritative=true", text, "text/markdown"
    )
    assert answer.status_code == 201, answer.content
    stored = answer.json()["validation"]
    assert stored["is_authoritative"]
    assert stored["root_cause"] == "the suite is red"
    assert stored["package"]["failed_cases"] == [{"id": "auth.login", "output_tail": "401"}]
    assert stored["package"]["summary"][0]["figure"] == "1 passed, 1 failed, 0 skipped"


def test_a_go_needs_work_that_is_through(agent: Caller, project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    path = f"{DEMO}/tasks/{root.pk}/validation"
    problem(agent.send(path, {"verdict": "GO"}), 409, "children_open")
    direct = agent.send(f"{DEMO}/tasks", {"title": "打开首页", "route": "direct"}).json()
    path = f"{DEMO}/tasks/{direct['id']}/validation"
    problem(agent.send(path, {"verdict": "GO"}), 409, "not_judgeable")
    step = f"{DEMO}/tasks/{child(root, '1').pk}/validation"
    problem(agent.send(step, {"verdict": "GO"}), 409, "not_a_root")


def test_who_may_send_a_package(project: Project, agent: Caller, viewer: Caller) -> None:
    bring_in(agent, "task_auth")
    path = f"{DEMO}/tasks/task_auth/validation"
    executor = agent_client(project, name="executor", scopes=["observe", "execute"])
    validator = agent_client(project, name="validator", scopes=["observe", "review"])
    problem(executor.send(path, {"verdict": "GO"}), 403, "scope_missing")
    problem(viewer.send(path, {"verdict": "GO"}), 403, "sir_only")
    authoritative = {"verdict": "GO", "authoritative": True}
    problem(validator.send(path, authoritative), 403, "scope_missing")
    problem(validator.send(path, {"verdict": "GO"}), 409, "nothing_to_judge")
    answer = validator.send(path, {"verdict": "NO-GO", "root_cause": "no plan fits"})
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize("authoritative", [False, True])
def test_the_loops_own_state_is_no_verdict_on_ones_own_work(
    project: Project, agent: Caller, *, authoritative: bool
) -> None:
    """Rule 17: `orchestrate` does not let an executor validate what it made."""
    project.policy_json = json.dumps({"seats": {"validator": ["external"]}})
    project.save()
    maker = agent_client(project, name="maker", scopes=["observe", "execute", "orchestrate"])
    root = submit_plan(project, agent_step("1"))
    drive(project)
    assert maker.agent is not None
    execute(child(root, "1"), maker.agent)
    assert fresh(root).awaits_verdict
    body = {"verdict": "GO", "authoritative": authoritative}
    path = f"{DEMO}/tasks/{root.pk}/validation"
    problem(maker.send(path, body), 403, "not_independent")
    assert fresh(root).status == TaskStatus.REVIEW
    answer = agent.send(path, body)
    assert answer.status_code == 201, answer.content


def test_no_package_is_taken_while_the_project_is_suspended(agent: Caller, sir: Caller) -> None:
    bring_in(agent, "task_auth")
    sir.send(f"{DEMO}/pause", {"reason": "wait"})
    problem(judge(agent, "task_auth", GO), 409, "project_suspended")


def test_commands_of_a_project_are_its_own(agent: Caller, outsider: Caller) -> None:
    bring_in(agent, "task_auth")
    judge(agent, "task_auth", NO_GO)
    assert outsider.get(COMMANDS).status_code == 404
    assert len(agent.read(f"{DEMO}/tasks/task_auth/validation")["results"]) == 1


def test_a_plan_that_is_through_gets_its_package_by_rules(agent: Caller, project: Project) -> None:
    root = submit_plan(project, agent_step("1"), external_key="built")
    drive(project)
    execute(child(root, "1"), new_agent(project=project))
    assert fresh(root).status == TaskStatus.DONE
    row = agent.read(f"{DEMO}/tasks/built/validation")["results"][0]
    assert (row["verdict"], row["backend"]) == ("GO", "rules")
    command = agent.read(COMMANDS)["results"][0]
    assert (command["next_action"], command["package"]) == ("TERMINATE_SUCCESS", row["id"])
