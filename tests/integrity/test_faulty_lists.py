"""A list of tasks that the loop sends as its own state and that cannot be: safe stop."""

from __future__ import annotations

import pytest

from orchestration.models import Project, Task
from tests.api.callers import Caller, agent_client, problem
from tests.factories import (
    agent_step,
    drive,
    fresh,
    new_project,
    open_decision_of,
    submit_plan,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project("demo")


@pytest.fixture
def agent(project: Project) -> Caller:
    return agent_client(project)


FAULTY_LISTS: dict[str, object] = {
    "lost": "gone",
    "no_object": [],
    "empty": {},
    "illegal_status": {"a": {"status": "NEARLY"}},
    "no_entry": {"a": 7},
    "unknown_status": {"a": {}},
    "empty_key": {" ": {"status": "PENDING"}},
    "cycle": {
        "a": {"status": "PENDING", "depends_on": ["b"]},
        "b": {"status": "PENDING", "depends_on": ["a"]},
    },
    "own_dependency": {"a": {"status": "PENDING", "depends_on": ["a"]}},
}


@pytest.mark.parametrize("name", [*FAULTY_LISTS, "dangling_dependency", "taken_key"])
def test_each_fault_of_an_imported_list_stops_the_loop_that_sent_it(
    project: Project, agent: Caller, name: str
) -> None:
    path = "/api/projects/demo/tasks/import"
    agent.send(path, {"there": {"status": "PENDING"}})
    project_alone = {
        "dangling_dependency": {"a": {"status": "PENDING", "depends_on": ["zzz"]}},
        "taken_key": {"there": {"status": "COMPLETED"}},
    }
    body = {"master_task_list": {**FAULTY_LISTS, **project_alone}[name]}
    assert agent.send(path, body).status_code == 422
    assert Project.objects.get().status == "active"
    assert agent.send(path, {**body, "authoritative": True}).status_code == 422
    assert Project.objects.get().status == "safe_stop"
    assert Task.objects.filter(parent__isnull=True).count() == 1
    item = open_decision_of(project, "safe_stop")
    assert {one["kind"] for one in item.content["faults"]} == {"faulty_import"}
    assert item.is_p0


@pytest.mark.parametrize("name", FAULTY_LISTS)
def test_each_fault_of_a_list_beside_a_verdict_stops_the_loop_that_sent_it(
    project: Project, agent: Caller, name: str
) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    path = f"/api/projects/demo/tasks/{root.pk}/validation"
    body = {"verdict": "NO-GO", "root_cause": "red", "master_task_list": FAULTY_LISTS[name]}
    assert agent.send(path, body).status_code == 422
    reviewer = agent_client(project, name="reviewer", scopes=("observe", "review"))
    assert reviewer.send(path, {**body, "authoritative": True}).status_code == 422
    assert Project.objects.get().status == "active"
    assert agent.send(path, {**body, "authoritative": True}).status_code == 422
    assert (Project.objects.get().status, fresh(root).status) == ("safe_stop", "working")
    assert open_decision_of(project, "safe_stop").content["source"] == "import"


def test_a_fault_of_the_verdict_alone_stops_nothing(project: Project, agent: Caller) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    body = {"verdict": "MAYBE", "authoritative": True}
    path = f"/api/projects/demo/tasks/{root.pk}/validation"
    problem(agent.send(path, body), 422, "package_invalid")
    assert Project.objects.get().status == "active"
