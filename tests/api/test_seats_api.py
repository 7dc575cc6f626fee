"""The other seats over REST: planner, auditor, QA, and independence between them."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Assignment, Plan, Project, Task
from orchestration.scopes import SEATS_OF, Scope, open_seats, scope_of
from orchestration.states import Seat
from tests.api.callers import Caller, agent_client, problem
from tests.api.test_assignments_api import CLAIM, DONE, PLAN, claim, here, lease
from tests.factories import agent_step, child, drive, fresh, submit_plan

OUTSIDE = '{"seats": {"planner": ["external"], "auditor": ["external"], "qa": ["external"]}}'
APPROVED = {"verdict": "APPROVED", "checks": [{"name": "completeness", "ok": True}]}
REVISE = {
    "verdict": "NEEDS_REVISION",
    "checks": [{"name": "completeness", "ok": False, "finding": "step 1 says nothing"}],
}


@pytest.fixture
def outside(project: Project) -> Project:
    """A project whose planner, auditor and QA are agents."""
    Project.objects.update(policy_json=OUTSIDE)
    project.refresh_from_db()
    return project


@pytest.fixture
def planned(outside: Project, agent: Caller) -> dict[str, Any]:
    """The planner's assignment of a three-step task."""
    agent.send("/api/projects/demo/tasks", {"title": "big", "route": "three_step"})
    return claim(agent, "planner")


def test_each_seat_belongs_to_exactly_one_scope() -> None:
    listed = [seat for seats in SEATS_OF.values() for seat in seats]
    assert sorted(listed) == sorted(Seat)
    assert all(seat in SEATS_OF[scope_of(seat)] for seat in Seat)
    assert open_seats(["observe", "orchestrate"]) == frozenset()
    assert open_seats([Scope.PLAN.value]) == {Seat.PLANNER, Seat.SCORER}


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_plan_goes_to_an_auditor_who_did_not_write_it(
    outside: Project,
    agent: Caller,
    planned: dict[str, Any],
    is_wrapped: bool,  # noqa: FBT001
) -> None:
    assert planned["input"]["title"] == "big"
    body = {"plan": PLAN | {"mood": "good"}} if is_wrapped else PLAN
    assert agent.send(here(planned, "result"), lease(planned, **body)).status_code == 200
    assert agent.send(CLAIM, {"seats": ["auditor"]}).status_code == 204
    auditor = agent_client(outside, name="auditor")
    audit = claim(auditor, "auditor")
    done = auditor.send(here(audit, "result"), lease(audit, **APPROVED)).json()
    assert done["task_status"] == "working"
    assert Task.objects.get(parent__isnull=False).step_key == "1"
    assert Plan.objects.get().agent.name == "worker"  # type: ignore[union-attr]


def test_malformed_plan_is_422_with_every_fault_and_uses_up_a_revision(
    agent: Caller, planned: dict[str, Any]
) -> None:
    bad = {"summary": "s", "steps": [
        {"id": "a", "action": "x", "depends_on": ["b", "zz"]},
        {"id": "b", "action": "y", "depends_on": ["a"]},
    ]}  # fmt: skip
    for _ in range(2):
        found = problem(
            agent.send(here(planned, "result"), lease(planned, **bad)), 422, "plan_invalid"
        )
        assert len(found["errors"]) >= 2
        assert found["assignment_status"] == "done"
    task = Task.objects.get()
    assert (task.revisions_used, Plan.objects.count()) == (1, 1)
    again = claim(agent, "planner")
    assert any("cycle" in finding for finding in again["input"]["findings"])


@pytest.mark.parametrize("body", [{"plan": PLAN, "mood": "good"}, PLAN | {"lease": 1}])
def test_unknown_field_beside_a_plan_is_422_and_costs_no_revision(
    agent: Caller, planned: dict[str, Any], body: dict[str, Any]
) -> None:
    problem(agent.send(here(planned, "result"), lease(planned, **body)), 422, "unknown_fields")
    assert Task.objects.get().revisions_used == 0
    assert Assignment.objects.get(pk=planned["id"]).status == "leased"


def test_third_needs_revision_rejects_the_plan_to_sir(
    outside: Project, agent: Caller, sir: Caller, planned: dict[str, Any]
) -> None:
    auditor = agent_client(outside, name="auditor")
    held = planned
    for round_ in range(3):
        plan = PLAN | {"summary": f"try {round_}"}
        agent.send(here(held, "result"), lease(held, **plan))
        audit = claim(auditor, "auditor")
        assert auditor.send(here(audit, "result"), lease(audit, **REVISE)).status_code == 200
        held = claim(agent, "planner") if round_ < 2 else held
    assert Plan.objects.last().status == "rejected"  # type: ignore[union-attr]
    assert agent.send(CLAIM, {"seats": ["planner"]}).status_code == 204
    [decision] = sir.read("/api/decisions/", status="open")["results"]
    assert decision["kind"] == "plan_rejected"
    problem(auditor.send("/api/decisions/1/decide", {}), 403, "humans_only")


def test_auditor_cannot_say_rejected(
    outside: Project, agent: Caller, planned: dict[str, Any]
) -> None:
    agent.send(here(planned, "result"), lease(planned, **PLAN))
    auditor = agent_client(outside, name="auditor")
    audit = claim(auditor, "auditor")
    bad = lease(audit, verdict="REJECTED")
    assert problem(auditor.send(here(audit, "result"), bad), 422, "invalid")


def run_step(project: Project, agent: Caller) -> Task:
    """Have an agent execute a step of a plan whose QA is an agent. Return the step."""
    root = submit_plan(project, agent_step("a"))
    policy = '{"seats": {"qa": ["external"]}}'
    Project.objects.filter(pk=project.pk).update(policy_json=policy)
    drive(project)
    held = claim(agent, "executor")
    assert agent.send(here(held, "result"), lease(held, **DONE)).json()["task_status"] == "review"
    return child(root, "a")


def test_executor_does_not_review_its_own_step(project: Project, agent: Caller) -> None:
    step = run_step(project, agent)
    assert agent.send(CLAIM, {"seats": ["qa"]}).status_code == 204
    reviewer = agent_client(project, name="reviewer")
    review = claim(reviewer, "qa")
    passed = reviewer.send(here(review, "result"), lease(review, verdict="pass"))
    assert passed.json()["task_status"] == "done"
    assert fresh(step).status == "done"


def test_one_who_gave_the_step_back_after_working_on_it_does_not_review_it(
    project: Project, agent: Caller
) -> None:
    root = submit_plan(project, agent_step("a"))
    Project.objects.update(policy_json='{"seats": {"qa": ["external"]}}')
    drive(project)
    starter = agent_client(project, name="starter")
    started = claim(starter, "executor")
    path = f"/api/projects/demo/tasks/{started['task']}"
    starter.send(f"{path}/status", {"status": "working"})
    starter.send(here(started, "release"), lease(started))
    held = claim(agent, "executor")
    agent.send(here(held, "result"), lease(held, **DONE))
    assert fresh(child(root, "a")).status == "review"
    assert starter.send(CLAIM, {"seats": ["qa"]}).status_code == 204
    assert claim(agent_client(project, name="fresh"), "qa")


def test_sibling_of_the_executed_step_may_be_reviewed(project: Project, agent: Caller) -> None:
    root = submit_plan(project, agent_step("a"), agent_step("b"))
    Project.objects.update(policy_json='{"seats": {"qa": ["external"]}}')
    drive(project)
    other = agent_client(project, name="other")
    for caller in (agent, other):
        held = claim(caller, "executor")
        caller.send(here(held, "result"), lease(held, **DONE))
    assert claim(agent, "qa")["task"] == str(child(root, "b").pk)
    assert claim(other, "qa")["task"] == str(child(root, "a").pk)


def test_one_who_posted_the_plan_does_not_audit_it(outside: Project, agent: Caller) -> None:
    agent.send("/api/projects/demo/tasks", {"title": "t", "plan": PLAN})
    assert agent.send(CLAIM, {"seats": ["auditor"]}).status_code == 204
    assert claim(agent_client(outside, name="other"), "auditor")


def test_one_who_executed_a_step_does_not_audit_the_replan_of_its_root(
    outside: Project, agent: Caller, sir: Caller, planned: dict[str, Any]
) -> None:
    agent.send(here(planned, "result"), lease(planned, **PLAN))
    auditor = agent_client(outside, name="auditor")
    audit = claim(auditor, "auditor")
    auditor.send(here(audit, "result"), lease(audit, **APPROVED))
    hand = agent_client(outside, name="hand")
    claim(hand, "executor")
    sir.send(f"/api/projects/demo/tasks/{planned['task']}/replan", {"reason": "new facts"})
    Task.objects.filter(parent__isnull=False).update(status="cancelled")
    Assignment.objects.filter(seat="executor").update(status="cancelled", finished_at=None)
    Assignment.objects.create(
        project=outside, task_id=planned["task"], seat="auditor", backend="external"
    )
    assert hand.send(CLAIM, {"seats": ["auditor"]}).status_code == 204
    assert claim(auditor, "auditor")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"verdict": "fail"}, ""),
        ({"verdict": "pass", "defects": [{"severity": "medium", "title": "t"}]}, ""),
        ({"verdict": "perhaps"}, "verdict"),
        ({"verdict": "fail", "defects": [{"severity": "mild", "title": "t"}]},
         "defects.0.severity"),
    ],
)  # fmt: skip
def test_bad_review_is_422(
    project: Project, agent: Caller, body: dict[str, Any], path: str
) -> None:
    step = run_step(project, agent)
    reviewer = agent_client(project, name="reviewer")
    review = claim(reviewer, "qa")
    found = problem(reviewer.send(here(review, "result"), lease(review, **body)), 422, "invalid")
    assert found["errors"][0]["path"] == path
    assert fresh(step).status == "review"


def test_reviewers_medium_defect_waits_for_sir(
    project: Project, agent: Caller, sir: Caller
) -> None:
    run_step(project, agent)
    reviewer = agent_client(project, name="reviewer")
    review = claim(reviewer, "qa")
    defect = {"severity": "Medium", "title": "wrong colour", "category": "scope"}
    answer = reviewer.send(here(review, "result"), lease(review, verdict="fail", defects=[defect]))
    assert answer.json()["task_status"] == "review"
    [decision] = sir.read("/api/decisions/")["results"]
    assert (decision["kind"], decision["title"]) == ("medium_defect", "wrong colour")
