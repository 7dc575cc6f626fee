"""Deviations over REST: added, skipped and changed steps of a locked blueprint."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import AuditReport, Decision, Deviation, Project, Task
from tests.api.callers import Caller, agent_client, events, facts, problem
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

NEW = {"id": "n", "action": "look again", "delegate": False, "expected_artifacts": ["n.txt"]}


def deviate(caller: Caller, root: Task, change: str, **body: Any) -> Any:
    """Ask for a deviation of a root."""
    path = f"/api/projects/demo/tasks/{root.pk}/deviations"
    return caller.send(path, {"change": change, "reason": "the facts changed", **body})


@pytest.fixture
def root(project: Project) -> Task:
    """A plan of agents' steps: a, then b, then c in a second phase; d stands alone."""
    planned = submit_plan(
        project,
        agent_step("a"),
        agent_step("b", after=["a"]),
        agent_step("c", phase=2),
        agent_step("d"),
        is_trusted=False,
        backend="external",
    )
    drive(project)
    return planned


def states(root: Task) -> dict[str, str]:
    """States of a plan's present steps by key."""
    rows = root.children.filter(is_superseded=False)
    return dict(rows.values_list("step_key", "status"))


def test_skipped_step_satisfies_its_dependents_and_its_phase(
    agent: Caller, project: Project, root: Task
) -> None:
    answer = deviate(agent, root, "skipped", step="a")
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["change"], shown["step"], shown["new_task"]) == ("skipped", "a", None)
    assert shown["actor"] == "agent:worker"
    skipped = child(root, "a")
    assert (skipped.status, skipped.cancel_reason) == ("cancelled", "skipped")
    assert child(root, "b").remaining_dependencies == 0
    assert child(root, "b").assignments.filter(status="queued").count() == 1
    for key in ("b", "d"):
        assert deviate(agent, root, "skipped", step=key).status_code == 201
    assert fresh(root).open_phase == 2
    worker = new_agent(project=project)
    execute(child(root, "c"), worker)
    drive(project)
    assert fresh(root).status == "done"


def test_skipping_the_last_step_finishes_the_plan(sir: Caller, root: Task) -> None:
    for key in "abdc":
        assert deviate(sir, root, "skipped", step=key).status_code == 201
    assert fresh(root).status == "done"


def test_added_step_is_executed_before_the_plan_ends(
    agent: Caller, project: Project, root: Task
) -> None:
    body = {**NEW, "depends_on": ["a"], "expected_artifacts": []}
    shown = deviate(agent, root, "added", new_step=body).json()
    added = child(root, "n")
    assert shown["new_task"] == str(added.pk)
    assert (added.depth, added.phase, added.remaining_dependencies) == (1, 1, 1)
    worker = new_agent(project=project)
    for key in "abd":
        execute(child(root, key), worker)
        drive(project)
    assert fresh(root).open_phase == 1
    execute(child(root, "n"), worker)
    drive(project)
    assert fresh(root).open_phase == 2


def test_changed_step_takes_the_old_ones_place(agent: Caller, project: Project, root: Task) -> None:
    deviate(agent, root, "changed", step="a", new_step={**NEW, "expected_artifacts": []})
    assert states(root) == {
        "a": "cancelled", "b": "pending", "c": "pending", "d": "pending", "n": "pending",
    }  # fmt: skip
    assert child(root, "b").remaining_dependencies == 1
    assert [one.requires.step_key for one in child(root, "b").requirements.all()] == ["n"]
    execute(child(root, "n"), new_agent(project=project))
    drive(project)
    assert child(root, "b").remaining_dependencies == 0


def test_changed_step_may_keep_its_key(agent: Caller, root: Task) -> None:
    body = {**NEW, "id": "a", "action": "another way", "expected_artifacts": []}
    assert deviate(agent, root, "changed", step="a", new_step=body).status_code == 201
    assert child(root, "a").title == "another way"
    assert root.children.get(step_key="a", is_superseded=True).cancel_reason == "skipped"
    assert states(root) == dict.fromkeys("abcd", "pending")
    again = {**body, "action": "a third way"}
    assert deviate(agent, root, "changed", step="a", new_step=again).status_code == 201
    assert child(root, "a").title == "a third way"


def test_deviation_stands_beside_the_blueprint_and_is_audited(
    agent: Caller, sir: Caller, root: Task
) -> None:
    before = agent.read(f"/api/projects/demo/tasks/{root.pk}?expand=all")
    deviate(agent, root, "added", new_step=NEW)
    deviate(sir, root, "skipped", step="d")
    after = agent.read(f"/api/projects/demo/tasks/{root.pk}?expand=all")
    assert after["blueprint"] == before["blueprint"]
    assert [one["actor"] for one in after["deviations"]] == ["agent:worker", "human:sir"]
    reports = AuditReport.objects.filter(checks__0__name="deviation")
    assert reports.count() == 1
    recorded = events("deviation.recorded")
    assert [one.why for one in recorded] == ["the facts changed"] * 2
    assert facts(recorded[1])["audit"] == "by Sir"


@pytest.mark.parametrize(
    ("change", "body", "path"),
    [
        ("skipped", {"step": "zz"}, "step"),
        ("skipped", {}, ""),
        ("added", {}, ""),
        ("added", {"new_step": {"id": "a", "action": "x"}}, "steps.4.id"),
        ("added", {"new_step": {**NEW, "depends_on": ["zz"]}}, "steps.4.depends_on.0"),
        ("added", {"new_step": {**NEW, "phase": 1, "depends_on": ["c"]}}, "steps.4.depends_on"),
        ("changed", {"step": "a", "new_step": {**NEW, "depends_on": ["b"]}}, "steps.0.depends_on"),
        ("moved", {"step": "a"}, "change"),
        ("skipped", {"step": "a", "reason": " "}, ""),
        ("skipped", {"step": "a", "force": True}, "force"),
    ],
)
def test_bad_deviation_is_422_and_changes_nothing(
    agent: Caller, root: Task, change: str, body: dict[str, Any], path: str
) -> None:
    before = states(root)
    answer = deviate(agent, root, change, **body)
    assert answer.status_code == 422, answer.content
    assert path in {one["path"] for one in answer.json()["errors"]}
    assert states(root) == before
    assert not Deviation.objects.exists()


@pytest.mark.parametrize(
    "new_step",
    [
        {"id": "n", "action": "x", "risk_level": "critical"},
        {"id": "n", "action": "x", "role": "Wizard"},
        {"id": "n", "action": "x", "irreversible": True, "expected_artifacts": ["n.txt"]},
    ],
)
def test_audit_refuses_what_an_agents_new_step_brings_in(
    agent: Caller, sir: Caller, root: Task, new_step: dict[str, Any]
) -> None:
    found = problem(deviate(agent, root, "added", new_step=new_step), 422, "deviation_refused")
    assert found["errors"][0]["path"].startswith("new_step.")
    assert "n" not in states(root)
    assert deviate(sir, root, "added", new_step=new_step).status_code == 201


def test_step_with_run_or_verify_is_skipped_by_sir_alone(
    agent: Caller, sir: Caller, project: Project
) -> None:
    planned = submit_plan(
        project,
        agent_step("w"),
        step("r", after=["w"]),
        agent_step("v", after=["w"], verify=["true"]),
    )
    drive(project)
    for key in "rv":
        problem(deviate(agent, planned, "skipped", step=key), 403, "needs_sir")
        replaced = deviate(agent, planned, "changed", step=key, new_step=NEW)
        problem(replaced, 403, "needs_sir")
    assert deviate(sir, planned, "skipped", step="r").status_code == 201
    assert states(planned) == {"w": "pending", "r": "cancelled", "v": "pending"}


def test_agent_adds_no_commands_to_a_trusted_plan(
    agent: Caller, sir: Caller, project: Project
) -> None:
    planned = submit_plan(project, agent_step("w"))
    drive(project)
    body = {"id": "n", "action": "run it", "run": ["touch owned"]}
    problem(deviate(agent, planned, "added", new_step=body), 403, "needs_sir")
    assert deviate(sir, planned, "added", new_step=body).status_code == 201


def test_added_commands_wait_for_sir_together_with_those_that_wait_already(
    agent: Caller, sir: Caller, project: Project
) -> None:
    planned = submit_plan(
        project,
        step("r", run=["touch r.txt"]),
        agent_step("w"),
        is_trusted=False,
        backend="external",
    )
    drive(project)
    body = {"id": "n", "action": "run it", "run": ["touch n.txt"]}
    assert deviate(agent, planned, "added", new_step=body).status_code == 201
    assert child(planned, "n").is_awaiting_commands
    asked = Decision.objects.get(status="open")
    assert sorted(one["step"] for one in asked.content["commands"]) == ["n", "r"]
    signed = {"verdict": "approve", "version": asked.version, "digest": asked.digest}
    assert sir.send(f"/api/decisions/{asked.pk}/decide", signed).status_code == 200
    drive(project)
    assert (child(planned, "n").status, child(planned, "r").status) == ("done", "done")


def test_started_step_is_skipped_by_sir_alone_and_its_lease_ends(
    agent: Caller, sir: Caller, project: Project, root: Task
) -> None:
    leaf = f"/api/projects/demo/tasks/{child(root, 'a').pk}"
    agent.send(f"{leaf}/claim")
    agent.send(f"{leaf}/status", {"status": "waiting_human", "detail": "Which?"})
    problem(deviate(agent, root, "skipped", step="a"), 403, "needs_sir")
    other = f"/api/projects/demo/tasks/{child(root, 'd').pk}"
    agent.send(f"{other}/claim")
    problem(deviate(agent, root, "skipped", step="d"), 409, "step_started")
    for key in "ad":
        assert deviate(sir, root, "skipped", step=key).status_code == 201
    assert Decision.objects.get().status == "withdrawn"
    problem(agent.send(f"{leaf}/heartbeat"), 409, "lease_lost")
    assert states(root) == {"a": "cancelled", "b": "pending", "c": "pending", "d": "cancelled"}


def test_ended_step_and_plan_that_is_not_locked_are_409(
    agent: Caller, sir: Caller, project: Project, root: Task
) -> None:
    deviate(sir, root, "skipped", step="a")
    problem(deviate(sir, root, "skipped", step="a"), 409, "step_ended")
    leaf = deviate(sir, child(root, "b"), "added", new_step=NEW)
    problem(leaf, 409, "no_blueprint")
    sir.send(f"/api/projects/demo/tasks/{root.pk}/cancel", {"reason": "no"})
    problem(deviate(sir, root, "added", new_step=NEW), 409, "not_deviable")


def test_outsider_and_executor_deviate_nothing(
    project: Project, outsider: Caller, root: Task
) -> None:
    problem(deviate(outsider, root, "skipped", step="a"), 404, "not_found")
    executor = agent_client(project, name="hand", scopes=["execute"])
    problem(deviate(executor, root, "skipped", step="a"), 403, "scope_missing")
    assert not Deviation.objects.exists()
