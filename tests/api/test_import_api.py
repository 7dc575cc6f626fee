"""Importing a master task list, and the view that gives it back."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import AuditEvent, Decision, Project, Task
from orchestration.services.loop import replan_due_roots
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, events, facts, problem

IMPORT = "/api/projects/demo/tasks/import"
MASTER = "/api/projects/demo/tasks?view=master"
FATAL = "FATAL_ERROR: MAX_RETRIES_EXCEEDED"


def root(key: str) -> Task:
    """Read a root by its outside key."""
    return Task.objects.get(external_key=key)


@pytest.mark.parametrize(
    "listed",
    [
        {"task_auth": {"status": "IN_PROGRESS"}},
        {"task_auth": {"status": "FAILED", "reason": "TC-AUTH-001 failed"}},
        {"task_auth": {"status": "IN_PROGRESS"}, "task_payment": {"status": "PENDING"}},
        {"task_auth": {"status": "COMPLETED"}, "task_payment": {"status": "IN_PROGRESS"}},
        {
            "a": {"status": "COMPLETED", "title": "Sign in", "spec_id": "SPEC-001"},
            "b": {"status": "PENDING", "depends_on": ["a"], "description": "Pay", "rank": 40},
            "c": {"status": "CANCELLED", "reason": "no need"},
            "d": {"status": "CANCELLED"},
            "登录": {"status": "FAILED", "reason": "没有通过", "depends_on": ["b"]},
        },
    ],
)
def test_list_comes_back_as_it_was_given(agent: Caller, listed: dict[str, Any]) -> None:
    answer = agent.send(IMPORT, listed)
    assert answer.status_code == 201, answer.content
    expected = dict(listed)
    if "b" in listed:
        # Nothing was in progress, so the pending one started.
        expected["b"] = listed["b"] | {"status": "IN_PROGRESS"}
    assert agent.read(MASTER) == expected
    assert answer.json()["master_task_list"] == expected
    assert [one["external_key"] for one in answer.json()["tasks"]] == list(listed)


def test_wrapped_list_and_a_list_with_a_task_of_that_name(agent: Caller) -> None:
    assert agent.send(IMPORT, {"master_task_list": {"a": {"status": "PENDING"}}}).status_code == 201
    assert agent.send(IMPORT, {"master_task_list": {"status": "PENDING"}}).status_code == 201
    assert set(agent.read(MASTER)) == {"a", "master_task_list"}
    extra = {"master_task_list": {"b": {"status": "PENDING"}}, "force": True}
    problem(agent.send(IMPORT, extra), 422, "unknown_fields")


def test_each_status_becomes_a_state_with_an_imported_event(agent: Caller) -> None:
    listed = {
        "p": {"status": "PENDING"},
        "i": {"status": "IN_PROGRESS"},
        "c": {"status": "COMPLETED"},
        "f": {"status": "FAILED", "reason": "broke"},
        "x": {"status": "CANCELLED", "reason": "dropped"},
    }
    agent.send(IMPORT, listed)
    states = dict(Task.objects.values_list("external_key", "status"))
    assert states == {
        "p": "pending", "i": "working", "c": "done", "f": "failed", "x": "cancelled",
    }  # fmt: skip
    found = {facts(one)["key"]: facts(one) for one in events("task.imported")}
    assert {key: one["master_status"] for key, one in found.items()} == {
        key: entry["status"] for key, entry in listed.items()
    }
    assert found["i"]["status"] == "pending"
    assert all(task.route == "three_step" for task in Task.objects.all())
    assert all(task.assessments.filter(stage="S0").count() == 1 for task in Task.objects.all())


def test_what_was_in_progress_is_taken_first_whatever_the_ranks(agent: Caller) -> None:
    listed = {
        "first": {"status": "PENDING", "rank": 1},
        "running": {"status": "IN_PROGRESS", "rank": 9},
        "also": {"status": "IN_PROGRESS"},
    }
    agent.send(IMPORT, listed)
    assert root("running").status == "pending"
    assert root("also").status == "working"
    assert root("also").rank < root("running").rank < root("first").rank


def test_failed_entry_is_planned_again_in_a_later_transaction(agent: Caller) -> None:
    agent.send(IMPORT, {"f": {"status": "FAILED", "reason": "broke"}})
    assert agent.read(MASTER)["f"]["status"] == "FAILED"
    assert replan_due_roots() == 1
    task = root("f")
    assert (task.status, task.attempt, task.failure_count) == ("working", 2, 1)
    asked = task.assignments.get(seat="planner").input
    assert asked["failures"][0]["root_cause"] == "broke"
    assert replan_due_roots() == 0


def test_failed_root_shows_failed_until_its_replan_starts(agent: Caller) -> None:
    agent.send(IMPORT, {"w": {"status": "IN_PROGRESS"}, "f": {"status": "FAILED", "reason": "b"}})
    sweep()
    assert root("f").status == "pending"
    assert agent.read(MASTER)["f"] == {"status": "FAILED", "reason": "b"}


def test_fatal_entry_suspends_the_project_and_asks_sir(agent: Caller, project: Project) -> None:
    listed = {"x": {"status": FATAL, "reason": "third time"}, "y": {"status": "PENDING"}}
    agent.send(IMPORT, listed)
    assert agent.read(MASTER) == listed
    project.refresh_from_db()
    assert project.status == "suspended"
    decision = Decision.objects.get()
    assert (decision.kind, decision.is_p0) == ("max_retries", True)
    assert decision.content["failures"][0]["root_cause"] == "third time"


def test_list_of_finished_work_completes_the_project(agent: Caller, project: Project) -> None:
    agent.send(IMPORT, {"a": {"status": "COMPLETED"}, "b": {"status": "CANCELLED"}})
    project.refresh_from_db()
    assert project.status == "completed"


def test_unknown_fields_of_an_entry_are_kept(agent: Caller) -> None:
    agent.send(IMPORT, {"a": {"status": "PENDING", "owner": "庞统"}})
    assert root("a").facts == [{"imported": {"owner": "庞统"}}]


@pytest.mark.parametrize(
    ("listed", "paths"),
    [
        ({}, {""}),
        ({"a": 7}, {"a"}),
        ({"a": {}}, {"a.status"}),
        ({"a": {"status": "DONE"}, "b": {"status": "pending"}}, {"a.status", "b.status"}),
        ({"a": {"status": "PENDING", "depends_on": ["zz"]}}, {"a.depends_on.0"}),
        ({"a": {"status": "PENDING", "depends_on": ["a"]}}, {"a.depends_on.0"}),
        ({"a": {"status": "PENDING", "depends_on": "b"}}, {"a.depends_on"}),
        ({"a": {"status": "PENDING", "rank": "one", "title": 3}}, {"a.rank", "a.title"}),
        ({" ": {"status": "PENDING"}}, {" "}),
        ({"k" * 201: {"status": "PENDING"}}, {"k" * 200}),
        (
            {
                "a": {"status": "PENDING", "depends_on": ["b"]},
                "b": {"status": "PENDING", "depends_on": ["a"]},
                "taken": {"status": "PENDING"},
            },
            {"a.depends_on", "taken"},
        ),
    ],
)
def test_faulty_list_changes_nothing_and_names_every_fault(
    agent: Caller, project: Project, listed: dict[str, Any], paths: set[str]
) -> None:
    agent.send(IMPORT, {"taken": {"status": "COMPLETED"}})
    before = events("task.imported")
    project.refresh_from_db()
    found = problem(agent.send(IMPORT, listed), 422, "import_invalid")
    assert {one["path"] for one in found["errors"]} == paths
    assert agent.read(MASTER) == {"taken": {"status": "COMPLETED"}}
    assert events("task.imported") == before
    sequence = project.task_sequence
    project.refresh_from_db()
    assert project.task_sequence == sequence


SENT = {
    "a": {"status": "COMPLETED", "title": "Sign in", "owner": "庞统"},
    "b": {"status": "IN_PROGRESS", "depends_on": ["a"], "description": "Pay", "rank": 40},
    "c": {"status": "PENDING", "depends_on": ["a"], "rank": 57, "spec_id": "SPEC-001"},
    "d": {"status": "FAILED", "reason": "broke"},
}


@pytest.mark.parametrize("is_read_back", [False, True])
@pytest.mark.parametrize("extra", [{}, {"authoritative": True}])
def test_list_that_says_what_is_stored_changes_nothing(
    agent: Caller, project: Project, extra: dict[str, Any], *, is_read_back: bool
) -> None:
    agent.send(IMPORT, SENT)
    replan_due_roots()
    agent.send("/api/projects/demo/messages", {"text": "打开首页"})
    stored = agent.read(MASTER)
    assert (stored["b"]["status"], "DEMO-5" in stored) == ("IN_PROGRESS", True)
    rows, trail = list(Task.objects.values().order_by("pk")), AuditEvent.objects.count()
    again = stored if is_read_back else SENT
    answer = agent.send(IMPORT, {"master_task_list": again, **extra})
    assert answer.status_code == 200, answer.content
    assert answer.json()["master_task_list"] == stored
    assert [one["key"] for one in answer.json()["tasks"]] == [
        f"DEMO-{number}" for number in range(1, len(again) + 1)
    ]
    assert list(Task.objects.values().order_by("pk")) == rows
    assert AuditEvent.objects.count() == trail
    project.refresh_from_db()
    assert project.status == "active"


@pytest.mark.parametrize(
    ("key", "entry", "differs"),
    [
        ("a", {"status": "PENDING"}, "status"),
        ("b", {"status": "FAILED", "reason": "red"}, "status, reason"),
        ("a", {"status": "COMPLETED", "title": "Sign out"}, "title"),
        ("a", {"status": "COMPLETED", "owner": "曹操"}, "owner"),
        ("b", {"status": "IN_PROGRESS", "description": "Ship"}, "description"),
        ("b", {"status": "IN_PROGRESS", "depends_on": ["d"]}, "depends_on"),
        ("c", {"status": "PENDING", "rank": 8}, "rank"),
        ("c", {"status": "PENDING", "spec_id": "SPEC-002"}, "spec_id"),
        ("DEMO-1", {"status": "PENDING"}, "status"),
    ],
)
def test_list_that_says_something_else_of_a_task_is_faulty(
    agent: Caller, project: Project, key: str, entry: dict[str, Any], differs: str
) -> None:
    agent.send(IMPORT, SENT)
    listed = {**{name: one for name, one in SENT.items() if name != key}, key: entry}
    found = problem(
        agent.send(IMPORT, {**listed, "e": {"status": "PENDING"}}), 422, "import_invalid"
    )
    said = f"is the key of a task already, with another {differs}"
    assert found["errors"] == [{"path": key, "message": said}]
    assert Task.objects.count() == len(SENT)
    body = {"master_task_list": listed, "authoritative": True}
    problem(agent.send(IMPORT, body), 422, "import_invalid")
    project.refresh_from_db()
    assert project.status == "safe_stop"


def test_list_with_one_more_task_makes_that_one(agent: Caller) -> None:
    agent.send(IMPORT, SENT)
    more = {
        **SENT,
        "c": {"status": "PENDING", "depends_on": ["DEMO-1"]},
        "e": {"status": "PENDING", "depends_on": ["a", "DEMO-3"]},
    }
    answer = agent.send(IMPORT, more)
    assert answer.status_code == 201, answer.content
    assert [one["external_key"] for one in answer.json()["tasks"]] == [*SENT, "e"]
    assert agent.read(MASTER)["e"]["depends_on"] == ["a", "c"]
    assert root("e").remaining_dependencies == 1


def test_message_is_no_task_of_a_list(agent: Caller, project: Project) -> None:
    agent.send("/api/projects/demo/messages", {"text": "谢谢"})
    found = problem(agent.send(IMPORT, {"DEMO-1": {"status": "PENDING"}}), 422, "import_invalid")
    assert found["errors"][0]["message"] == "is the key of a task already, with another kind"
    assert Task.objects.count() == 1


def test_outsider_imports_nothing(outsider: Caller, project: Project) -> None:
    problem(outsider.send(IMPORT, {"a": {"status": "PENDING"}}), 404, "not_found")
    assert not Task.objects.exists()
