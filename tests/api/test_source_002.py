"""Source document 002 word for word: its two worked examples, its retries, its escalation.

Each example is the document's own text. The specification comes with the task, since a control
command names it; the ellipses of the package stand for a report that says which test it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from orchestration.models import Agent, ControlCommand, DeliveryArchive, Project, Task
from orchestration.services.loop import replan_due_roots
from orchestration.states import TaskStatus
from tests.api.callers import Caller, agent_client, person
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    fresh,
    new_agent,
    open_decision_of,
    submit_plan,
)

DEMO = "/api/projects/demo"
MASTER = f"{DEMO}/tasks?view=master"
SPEC = "SPEC-001"
REPORT = "| 类别 | 状态 |\n|---|---|\n| 集成 | FAILED |\n"
FATAL = "FATAL_ERROR: MAX_RETRIES_EXCEEDED"
EXAMPLE_1: dict[str, Any] = {
    "master_task_list": '{"task_auth": {"status": "IN_PROGRESS"}}',
    "latest_validation_package": f"...裁定: NO-GO...\n\n{REPORT}\n原因: TC-AUTH-001 失败...",
    "command": """{
      "next_action": "RESTART_FROM_STEP_2",
      "context_for_step_2": {
        "original_spec_id": "SPEC-001",
        "task_to_process": "task_auth",
        "failure_context": {
          "failed_task": "task_auth",
          "root_cause": "Integration test failed: TC-AUTH-001",
          "evidence_link": "path/to/validation_package.md"
        }
      }
    }""",
    "after": '{"task_auth": {"status": "FAILED", "reason": "TC-AUTH-001 failed"}}',
}
EXAMPLE_2: dict[str, Any] = {
    "master_task_list": (
        '{"task_auth": {"status": "IN_PROGRESS"}, "task_payment": {"status": "PENDING"}}'
    ),
    "latest_validation_package": "...裁定: GO...",
    "command": """{
      "next_action": "PROCEED_TO_NEXT_TASK",
      "context_for_step_2": {
        "original_spec_id": "SPEC-001",
        "task_to_process": "task_payment",
        "failure_context": null
      }
    }""",
    "after": '{"task_auth": {"status": "COMPLETED"}, "task_payment": {"status": "IN_PROGRESS"}}',
}


def of_spec(listed: str) -> dict[str, Any]:
    """A list of the source, each of its tasks of one specification."""
    return {key: {**entry, "spec_id": SPEC} for key, entry in json.loads(listed).items()}


def play(agent: Caller, example: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Send the inputs of an example as the loop's own state. Return what it answers."""
    listed = of_spec(example["master_task_list"])
    assert agent.send(f"{DEMO}/tasks/import", listed).status_code == 201
    body = {
        "master_task_list": listed,
        "latest_validation_package": example["latest_validation_package"],
        "authoritative": True,
        **more,
    }
    answer = agent.send(f"{DEMO}/tasks/task_auth/validation", body)
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("example", [EXAMPLE_1, EXAMPLE_2], ids=["failure", "success"])
def test_worked_example(agent: Caller, example: dict[str, Any]) -> None:
    told = play(agent, example)
    expected = json.loads(example["command"])
    failure = expected["context_for_step_2"]["failure_context"] or {}
    link = ((told["context_for_step_2"] or {}).get("failure_context") or {}).get("evidence_link")
    failure.update({"evidence_link": link} if failure else {})
    assert {name: told[name] for name in expected} == expected
    assert told["final_report"] is None
    assert agent.read(MASTER) == told["master_list_after"] == of_spec(example["after"])
    stored = ControlCommand.objects.get()
    assert stored.next_action == expected["next_action"]
    assert stored.context_for_step_2 == expected["context_for_step_2"]
    listed = agent.read(f"{DEMO}/control-commands")["results"]
    assert [{name: one[name] for name in expected} for one in listed] == [expected]


def test_the_evidence_of_example_1_is_the_package(agent: Caller) -> None:
    link = play(agent, EXAMPLE_1)["context_for_step_2"]["failure_context"]["evidence_link"]
    assert link.rpartition("/")[2] == "validation_package.md"
    text = agent.get(link).content.decode()
    assert "NO-GO" in text
    assert "TC-AUTH-001" in text


def test_example_2_archives_the_finished_task_and_writes_the_changelog(agent: Caller) -> None:
    play(agent, EXAMPLE_2, all_artifacts_from_current_loop={"S1": "the specification"})
    archive = DeliveryArchive.objects.get()
    assert archive.task.external_key == "task_auth"
    (listed,) = agent.read(f"{DEMO}/tasks/task_auth/archive")["deliveries"]
    assert listed["path"] == "all_artifacts_from_current_loop.json"
    packed = agent.get(f"{DEMO}/tasks/task_auth/archive", {"format": "zip"})
    with zipfile.ZipFile(io.BytesIO(packed.getvalue())) as found:
        (name,) = [one for one in found.namelist() if one.startswith("artifacts/")]
        data = found.read(name)
    assert json.loads(data) == {"S1": "the specification"}
    assert hashlib.sha256(data).hexdigest() == listed["sha256"]
    assert archive.changelog_entry.title == archive.task.title
    assert "all_artifacts_from_current_loop.json" in archive.changelog_entry.body


def fail(agent: Caller, number: int) -> dict[str, Any]:
    """Judge the task NO-GO with a cause of its own, and let it be planned again."""
    body = {"verdict": "NO-GO", "failed_cases": [f"TC-AUTH-00{number}"]}
    told: dict[str, Any] = agent.send(f"{DEMO}/tasks/task_auth/validation", body).json()
    replan_due_roots()
    return told


def planners_prompt(project: Project) -> tuple[dict[str, Any], str]:
    """Take the planner's seat as a new agent. Return its input and its prompt; give it back."""
    planner = agent_client(project, name=f"planner{Agent.objects.count()}")
    held = planner.send("/api/assignments/claim", {"seats": ["planner"]}).json()
    text = planner.get(held["prompt_url"]).content.decode()
    body = {"lease_token": held["lease_token"]}
    assert planner.send(f"/api/assignments/{held['id']}/release", body).status_code == 200
    return held["input"], text


@pytest.fixture
def listed(agent: Caller) -> Caller:
    """Whoever imported the two tasks of example 2."""
    agent.send(f"{DEMO}/tasks/import", of_spec(EXAMPLE_2["master_task_list"]))
    return agent


def test_each_next_planner_is_told_every_earlier_failure(project: Project, listed: Caller) -> None:
    for number in (1, 2):
        fail(listed, number)
        asked, prompt = planners_prompt(project)
        numbers = range(1, number + 1)
        assert [one["root_cause"] for one in asked["failures"]] == [
            f"TC-AUTH-00{one} failed" for one in numbers
        ]
        for one in numbers:
            assert f"TC-AUTH-00{one} failed" in prompt
            assert asked["failures"][one - 1]["failed_cases"] == [{"id": f"TC-AUTH-00{one}"}]


def test_a_passing_cause_burns_no_attempt_up_to_its_cap_and_one_beyond(
    project: Project, listed: Caller
) -> None:
    package = {"verdict": "INDETERMINATE", "failure_class": "environment", "root_cause": "down"}
    waits: list[float] = []
    root = Task.objects.get(external_key="task_auth")
    for number in range(1, 11):
        listed.send(f"{DEMO}/tasks/task_auth/validation", package)
        root.refresh_from_db()
        assert (root.failure_count, root.transient_failures) == (0, number)
        assert root.replan_at is not None
        waits.append(round((root.replan_at - timezone.now()).total_seconds()))
        assert replan_due_roots() == 0
        Task.objects.filter(pk=root.pk).update(replan_at=timezone.now() - timedelta(seconds=1))
        assert replan_due_roots() == 1
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (2, 300)
    told = listed.send(f"{DEMO}/tasks/task_auth/validation", package).json()
    root.refresh_from_db()
    assert (root.failure_count, root.transient_failures) == (1, 0)
    assert told["next_action"] == "RESTART_FROM_STEP_2"


def escalated(listed: Caller, project: Project) -> Task:
    """Let the first task fail three times in a row."""
    for number in (1, 2, 3):
        told = fail(listed, number)
    assert told["next_action"] == "SUSPEND_FOR_HUMAN"
    root = Task.objects.get(external_key="task_auth")
    assert (root.status, fresh(root).project.status) == (TaskStatus.FATAL, "suspended")
    assert listed.read(MASTER)["task_auth"]["status"] == FATAL
    item = open_decision_of(project, "max_retries")
    assert (item.is_p0, item.priority) == (True, 1)
    assert [one["root_cause"] for one in item.content["failures"]] == [
        f"TC-AUTH-00{number} failed" for number in (1, 2, 3)
    ]
    return root


def test_sirs_guidance_reaches_the_next_planner(project: Project, listed: Caller) -> None:
    root = escalated(listed, project)
    decide(open_decision_of(project, "max_retries"), "retry", reason="ask the library's authors")
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.WORKING, 0)
    assert fresh(root).project.status == "active"
    asked, prompt = planners_prompt(project)
    assert "ask the library's authors" in prompt
    assert [one["class"] for one in asked["failures"]][-1] == "guidance"
    for number in (1, 2, 3):
        assert f"TC-AUTH-00{number} failed" in prompt
    fail(listed, 4)
    assert fresh(root).failure_count == 1


def test_sirs_new_words_are_what_is_planned_next(project: Project, listed: Caller) -> None:
    root = escalated(listed, project)
    item = open_decision_of(project, "max_retries")
    decide(item, "amend", reason="too much", payload={"text": "Sign in by a link alone."})
    assert fresh(root).description == "Sign in by a link alone."
    assert (fresh(root).failure_count, fresh(root).project.status) == (0, "active")
    _, prompt = planners_prompt(project)
    assert "Sign in by a link alone." in prompt
    assert "too much" in prompt


@pytest.mark.parametrize(
    ("verdict", "status", "shown"),
    [("waive", "done", "COMPLETED"), ("abort", "cancelled", "CANCELLED")],
)
def test_the_loop_goes_on_once_sir_ends_the_task(
    project: Project, listed: Caller, verdict: str, status: str, shown: str
) -> None:
    root = escalated(listed, project)
    decide(open_decision_of(project, "max_retries"), verdict, reason="the pilot ends in May")
    assert (fresh(root).status, fresh(root).project.status) == (status, "active")
    assert {key: one["status"] for key, one in listed.read(MASTER).items()} == {
        "task_auth": shown, "task_payment": "IN_PROGRESS",
    }  # fmt: skip
    last = listed.send(f"{DEMO}/tasks/task_payment/validation", {"verdict": "GO"}).json()
    assert last["next_action"] == "TERMINATE_SUCCESS"
    assert "the pilot ends in May" in last["final_report"]
    assert fresh(root).project.status == "completed"


def test_what_is_still_leased_is_shown_to_drain(
    project: Project, agent: Caller, sir: Caller
) -> None:
    limits = {"limits": {"concurrent_roots": 2}, "thresholds": {"max_retries": 1}}
    project.policy_json = json.dumps(limits)
    project.save()
    busy = submit_plan(project, agent_step("1"))
    failing = submit_plan(project, agent_step("1"), external_key="failing")
    drive(project)
    claim(child(busy, "1"), new_agent(project=project))
    path = f"{DEMO}/tasks/{child(failing, '1').pk}"
    for _ in range(2):
        assert agent.send(f"{path}/claim").status_code == 200
        agent.send(f"{path}/status", {"status": "failed", "detail": "no"})
    shown = sir.read(f"{DEMO}/")
    assert (shown["status"], shown["draining"]) == ("suspended", 1)
    page = Client()
    page.force_login(person("reader", "sir"))
    assert "draining, 1 lease lives" in page.get("/projects/demo/").content.decode()
