"""L4 and L5: independent agents and Sir. Who may check, what becomes of a layer that cannot run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.errors import Invalid
from orchestration.models import Agent, Assignment, Decision, Project, Task, Verification
from orchestration.scopes import Scope
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.agents import note_agent_seen
from orchestration.services.sweeping import sweep
from orchestration.states import Seat
from tests.factories import (
    actor_of,
    agent_step,
    child,
    decide,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
RISKY: dict[str, Any] = {
    "risk_level": "high",
    "risks": ["may break"],
    "expected_artifacts": [{"name": "work"}],
}
CRITICAL = RISKY | {"risk_level": "critical"}


@pytest.fixture
def project() -> Project:
    return new_project()


def seen(agent: Agent) -> Agent:
    """Note that an agent is there."""
    note_agent_seen(agent)
    return agent


def done_step(project: Project, **rest: Any) -> Task:
    """Have an agent execute one step of a plan. Return the step."""
    root = submit_plan(project, agent_step("1", **rest))
    drive(project)
    execute(child(root, "1"), seen(new_agent("maker", project=project)))
    drive(project)
    return child(root, "1")


def take(agent: Agent, seat: Seat) -> Assignment | None:
    return claim_for_agent(agent=agent, wish=Wish(seats=[seat]), actor=actor_of(agent))


def answer(agent: Agent, seat: Seat, document: dict[str, Any]) -> None:
    held = take(agent, seat)
    assert held is not None
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=document, actor=actor_of(agent))
    drive(held.project)


def layers(task: Task) -> list[tuple[str, str]]:
    rows = Verification.objects.filter(task=task).order_by("pk")
    return list(rows.values_list("layer", "outcome"))


def test_low_risk_asks_nobody(project: Project) -> None:
    seen(new_agent("judge", project=project))
    task = done_step(project)
    assert (task.status, layers(task)) == ("done", [("L1", "passed"), ("L2", "passed")])


def test_high_risk_is_cross_checked_by_another_agent(project: Project) -> None:
    judge = seen(new_agent("judge", project=project))
    task = done_step(project, **RISKY)
    assert task.status == "review"
    asked = task.assignments.get(seat="cross_verifier")
    assert asked.input["stage"] == "cross_check"
    assert [one["title"] for one in asked.input["outputs"]] == ["work"]
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": True, "findings": []})
    task = fresh(task)
    assert task.status == "done"
    assert layers(task)[-1] == ("L4", "passed")
    assert not Decision.objects.exists()


def test_maker_may_not_check_its_own_work(project: Project) -> None:
    task = done_step(project, **RISKY)
    assert task.status == "waiting_human"
    maker = Agent.objects.get(name="maker")
    assert take(maker, Seat.CROSS_VERIFIER) is None


@pytest.mark.parametrize("who", ["out of scope", "elsewhere", "long gone", "revoked", "planner"])
def test_no_eligible_agent_means_sir(project: Project, who: str) -> None:
    at_work = new_project() if who == "elsewhere" else project
    scopes = [Scope.EXECUTE.value] if who == "out of scope" else [Scope.REVIEW.value]
    judge = new_agent("judge", project=at_work, scopes=scopes)
    with time_machine.travel(timezone.now() - timedelta(minutes=16 if who == "long gone" else 0)):
        seen(judge)
    if who == "revoked":
        Agent.objects.filter(pk=judge.pk).update(revoked_at=timezone.now())
    root = submit_plan(project, agent_step("1", **RISKY))
    if who == "planner":
        root.plans.update(agent=judge)
    drive(project)
    execute(child(root, "1"), new_agent("maker", project=project))
    drive(project)
    task = child(root, "1")
    assert task.status == "waiting_human"
    assert layers(task)[-1] == ("L4", "not_possible")
    decision = open_decision_of(project, "final_review")
    assert any("no independent agent" in one for one in decision.content["findings"])


def test_objection_is_a_defect_with_its_category(project: Project) -> None:
    judge = seen(new_agent("judge", project=project))
    task = done_step(project, **RISKY)
    finding = {"title": "latency was asked, memory was tuned", "category": "scope",
               "severity": "medium"}  # fmt: skip
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": False, "findings": [finding]})
    defect = fresh(task).defects.get()
    assert (defect.category, defect.severity, defect.raised_by) == ("scope", "medium", "judge")
    assert open_decision_of(project).kind == "medium_defect"
    assert layers(task)[-1] == ("L4", "failed")


def test_fixed_objection_is_checked_again_by_an_agent_that_fixed_nothing(project: Project) -> None:
    judge, mender = seen(new_agent("judge", project=project)), new_agent("mender", project=project)
    task = done_step(project, **RISKY)
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": False, "findings": ["the total is wrong"]})
    fixed = {"status": "review", "output": {"title": "work", "content": "right"},
             "comment": "corrected", "change_note": "total corrected"}  # fmt: skip
    answer(mender, Seat.FIXER, fixed)
    assert fresh(task).status == "review"
    assert take(seen(mender), Seat.CROSS_VERIFIER) is None
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": True})
    assert fresh(task).status == "done"
    assert [one for one in layers(task) if one[0] == "L4"] == [("L4", "failed"), ("L4", "passed")]


def test_disagreement_without_a_finding_is_refused(project: Project) -> None:
    judge = seen(new_agent("judge", project=project))
    done_step(project, **RISKY)
    with pytest.raises(Invalid):
        answer(judge, Seat.CROSS_VERIFIER, {"agrees": False})


def test_critical_risk_goes_to_sir_although_an_agent_agrees(project: Project) -> None:
    judge = seen(new_agent("judge", project=project))
    task = done_step(project, **CRITICAL)
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": True})
    task = fresh(task)
    assert task.status == "waiting_human"
    decision = open_decision_of(project, "final_review")
    assert [one["content"] for one in decision.content["outputs"]] == ["the work"]
    decide(decision, "approve")
    task = fresh(task)
    assert task.status == "done"
    assert layers(task)[-1] == ("L5", "passed")
    assert task.artifacts.count() == 1


def test_planned_task_with_a_critical_step_has_its_last_look_too(project: Project) -> None:
    task = done_step(project, **CRITICAL)
    decide(open_decision_of(project, "final_review"), "approve")
    root = fresh(task.parent)  # type: ignore[arg-type]
    assert root.status == "waiting_human"
    decide(open_decision_of(project, "final_review"), "approve")
    assert fresh(root).status == "done"


def test_changes_that_sir_requests_are_one_attempt_with_his_text(project: Project) -> None:
    task = done_step(project, **CRITICAL)
    decide(open_decision_of(project), "request_changes", reason="name the source")
    task = fresh(task)
    assert (task.status, task.attempt) == ("pending", 2)
    assert "name the source" in task.failure_context[-1]["root_cause"]
    execute(task, new_agent("second", project=project), "with its source")
    drive(project)
    assert fresh(task).status == "waiting_human"


def test_what_sir_rejects_fails_the_step(project: Project) -> None:
    task = done_step(project, **CRITICAL)
    decide(open_decision_of(project), "reject", reason="not what I asked")
    assert fresh(task).status == "failed"
    assert not task.artifacts.exists()


def test_systems_own_step_of_critical_risk_goes_to_sir(project: Project) -> None:
    root = submit_plan(project, step("1", risk_level="critical", risks=["may break"]))
    drive(project)
    assert child(root, "1").status == "waiting_human"
    decide(open_decision_of(project), "approve")
    drive(project)
    assert child(root, "1").status == "done"


def test_qa_by_an_agent_comes_after_sirs_look() -> None:
    project = new_project(policy={"seats": {"qa": ["external"]}})
    task = done_step(project, **CRITICAL)
    assert not task.assignments.filter(seat="qa", backend="external").exists()
    decide(open_decision_of(project), "approve")
    assert fresh(task).status == "review"
    answer(seen(new_agent("judge", project=project)), Seat.QA, {"verdict": "pass"})
    assert fresh(task).status == "done"


def test_check_that_nobody_is_left_for_becomes_sirs(project: Project) -> None:
    seen(new_agent("judge", project=project))
    task = done_step(project, **RISKY)
    assert sweep()["unmanned"] == 0
    with time_machine.travel(timezone.now() + timedelta(minutes=20)):
        assert sweep()["unmanned"] == 1
        assert sweep()["unmanned"] == 0
    assert fresh(task).status == "waiting_human"
    assert task.assignments.get(seat="cross_verifier").status == "cancelled"


def test_verify_that_cannot_run_is_a_caveat_at_low_risk(settings: Any) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    project = new_project(policy={"commands": {"allow": ["true"]}})
    seen(new_agent("judge", project=project))
    low = done_step(project, verify=["true"])
    assert fresh(low).status == "done"
    assert ("L3", "not_possible") in layers(low)


def test_verify_that_cannot_run_at_high_risk_goes_to_sir(settings: Any) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    project = new_project(policy={"commands": {"allow": ["true"]}})
    judge = seen(new_agent("judge", project=project))
    task = done_step(project, verify=["true"], **RISKY)
    answer(judge, Seat.CROSS_VERIFIER, {"agrees": True})
    assert fresh(task).status == "waiting_human"
    assert open_decision_of(project).kind == "final_review"
