"""The loop looks at a root before a verdict moves it: no move explains what no service wrote."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.contracts.validation import parse_package
from orchestration.errors import Conflict
from orchestration.models import (
    ControlCommand,
    Decision,
    DeliveryArchive,
    Project,
    Task,
    TaskDependency,
)
from orchestration.services.audit import seal_events
from orchestration.services.integrity import check_every_project
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.tree_looks import quick_faults
from orchestration.services.validation import Posted, post_package
from orchestration.services.work import Actor
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    fresh,
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    start,
    step,
    submit_plan,
)
from tests.integrity.planted import (
    KINDS,
    PLANTED,
    changed_blueprint,
    changed_event,
    everything_else,
)
from tests.integrity.planting import EDGE, EVENT, TASK, force

pytestmark = pytest.mark.django_db(transaction=True)
SIR = Actor("human:sir")
GO = {"verdict": "GO", "at": "2026-01-01T00:00:00Z", "basis": "all is well", "summary": []}
THREE = (
    step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
    step("2", after=["1"]),
    agent_step("3", after=["2"]),
)
NO_GO = GO | {"verdict": "NO-GO", "root_cause": "bad", "failure_class": "check_failed"}


def commands(project: Project) -> list[str]:
    """What the loop commanded."""
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("next_action", flat=True))


def state_of(project: Project) -> str:
    """A project's state as it is stored."""
    return str(Project.objects.get(pk=project.pk).status)


def test_a_root_that_passed_waits_for_repair_and_is_judged_then() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"))
    far = submit_plan(new_project("far"), agent_step("1"))
    edge = TaskDependency.objects.create(task=root, requires=far)
    behind = submit_plan(project, agent_step("1"), text="behind")
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("review", "safe_stop")
    assert commands(project) == []
    assert fresh(behind).status == "pending"
    assert open_decision_of(project, "safe_stop").content["source"] == "loop"
    force(f"DELETE FROM {EDGE} WHERE id = %s", edge.pk)
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("done", "active")
    assert commands(project) == ["PROCEED_TO_NEXT_TASK"]
    assert fresh(behind).status == "working"


@pytest.mark.parametrize("package", [GO, NO_GO])
def test_a_verdict_does_not_explain_what_was_forced(package: dict[str, object]) -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    step_2 = child(root, "2")
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", step_2.pk)
    force(f"UPDATE {TASK} SET status = 'review', awaits_verdict = TRUE WHERE id = %s", root.pk)
    posted = Posted(package=parse_package(package), is_loop_state=True)
    judged = post_package(task_id=root.pk, posted=posted, actor=SIR)
    assert judged.command is None
    assert commands(project) == []
    assert (fresh(root).status, fresh(root).failure_count) == ("review", 0)
    assert state_of(project) == "safe_stop"
    named = [one["subject"] for one in open_decision_of(project, "safe_stop").content["faults"]]
    assert named == [f"task:{root.pk}", f"task:{step_2.pk}"]


def test_a_forced_step_alone_is_seen_when_its_root_ends() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"), agent_step("3"))
    drive(project)
    step_2 = child(root, "2")
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", step_2.pk)
    execute(child(root, "3"), new_agent(project=project))
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("review", "safe_stop")
    force(f"UPDATE {TASK} SET status = 'pending' WHERE id = %s", step_2.pk)
    assert quick_faults(project.pk, root.pk) == []


def awaiting_verdict(project: Project, text: str = "plan") -> Task:
    """A root whose steps are done and which waits for its verdict in a paused project."""
    root = submit_plan(project, *THREE, text=text)
    drive(project)
    agent, last = new_agent(project=project), child(root, "3")
    claim(last, agent)
    start(last, agent)
    pause_project(project_id=project.pk, actor=SIR)
    hand_in(last, agent)
    set_status(last, agent, "review")
    drive(project)
    seal_events()
    assert (fresh(root).status, fresh(root).awaits_verdict) == ("review", True)
    return root


@pytest.mark.parametrize("name", PLANTED)
def test_whatever_was_planted_before_a_verdict_is_found_before_it_is_acted_on(name: str) -> None:
    project = new_project("demo")
    root = awaiting_verdict(project)
    repair = PLANTED[name](root)
    before = everything_else()
    resume_project(project_id=project.pk, actor=SIR)
    assert everything_else() == before
    assert (fresh(root).status, state_of(project)) == ("review", "safe_stop")
    assert not DeliveryArchive.objects.exists()
    item = open_decision_of(project, "safe_stop")
    assert (item.is_p0, item.content["source"]) == (True, "loop")
    assert KINDS.get(name, name) in {one["kind"] for one in item.content["faults"]}
    repair()
    decide(item, "resume", reason="restored from the backup")
    assert (fresh(root).status, state_of(project)) == ("done", "completed")
    assert commands(project) == ["TERMINATE_SUCCESS"]


def test_what_is_wrong_in_another_tree_does_not_hold_a_verdict_up() -> None:
    project = new_project("demo", policy={"limits": {"concurrent_roots": 2}})
    sound, other = (submit_plan(project, *THREE, text=one) for one in ("one", "two"))
    drive(project)
    seal_events()
    changed_event(other)
    changed_blueprint(other)
    assert quick_faults(project.pk, sound.pk) == []
    found = quick_faults(project.pk, other.pk)
    assert [one.kind for one in found] == ["broken_seal", "blueprint_changed"]


def test_the_look_reads_the_trail_by_the_task_alone() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    with CaptureQueriesContext(connection) as seen:
        assert quick_faults(project.pk, root.pk) == []
    assert len(seen) == 7
    told = [one["sql"] for one in seen if EVENT in one["sql"]]
    assert len(told) == 2
    assert not any('"project_id" =' in one for one in told)


def test_sir_is_told_of_a_completed_project_that_starts_nothing_until_it_is_repaired() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"))
    drive(project)
    check_every_project()
    assert state_of(project) == "completed"
    assert not Decision.objects.exists()
    pk = child(root, "1").pk
    force(f"UPDATE {TASK} SET status = 'review' WHERE id = %s", pk)
    check_every_project()
    check_every_project()
    assert state_of(project) == "completed"
    assert Decision.objects.filter(kind="safe_stop").count() == 1
    item = open_decision_of(project, "safe_stop")
    assert (item.is_p0, item.content["faults"][0]["subject"]) == (True, f"task:{pk}")
    with pytest.raises(Conflict) as refused:
        submit_plan(project, step("1"), text="more")
    assert (refused.value.code, state_of(project)) == ("project_safe_stop", "completed")
    with pytest.raises(Conflict, match="still wrong"):
        decide(item, "resume", reason="I think it is fine")
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", pk)
    decide(item, "resume", reason="repaired")
    assert state_of(project) == "completed"
    more = submit_plan(project, step("1"), text="more")
    drive(project)
    assert (fresh(more).status, state_of(project)) == ("done", "completed")
