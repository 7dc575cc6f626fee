"""Sir's word on commands: refused ones stop the plan, struck ones strand nothing, none outlives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Decision, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.planning import UNCHANGED
from orchestration.services.sweeping import sweep
from orchestration.states import Seat, TaskStatus
from tests.factories import (
    Step,
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    fresh,
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(settings: Any) -> Project:
    settings.COUNTERSIGN_UNSANDBOXED = True
    return new_project(policy={"commands": {"allow": ["true", "touch"]}})


def submit(project: Project, *steps: Step) -> Task:
    root = submit_plan(project, *steps, is_trusted=False, backend="external")
    drive(project)
    return root


def plan_again(project: Project, *steps: Step) -> None:
    """Hand in another plan as an agent in the planner's seat."""
    agent = new_agent(project=project)
    held = claim_for_agent(agent=agent, wish=Wish([Seat.PLANNER]), actor=actor_of(agent))
    assert held is not None
    submit_result(
        hold=Hold(held.pk, agent, held.lease_token),
        document={"summary": "a planned task", "steps": list(steps)},
        actor=actor_of(agent),
    )
    drive(project)


def ask_of(project: Project) -> Decision:
    return open_decision_of(project, "command_approval")


def test_nothing_of_a_refused_plan_starts_and_running_steps_finish(project: Project) -> None:
    root = submit(
        project,
        agent_step("1"),
        step("2", run=["touch ran"], after=["1"]),
        agent_step("3"),
        step("4", run=["echo no"]),
    )
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    decide(ask_of(project), "reject", reason="no echo")
    assert child(root, "1").status == TaskStatus.WORKING
    assert not child(root, "3").assignments.filter(status="queued").exists()
    hand_in(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "review")
    sweep()
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "2").status == TaskStatus.PENDING
    assert not (Path(project.workspace) / "ran").exists()
    assert not child(root, "3").assignments.filter(status="queued").exists()
    plan_again(project, agent_step("1"), step("2", run=["touch ran"], after=["1"]), agent_step("3"))
    assert child(root, "2").status == TaskStatus.DONE
    assert child(root, "3").assignments.filter(status="queued").count() == 1
    assert fresh(root).attempt == 1


def test_a_new_plan_keeps_a_step_that_still_runs(project: Project) -> None:
    root = submit(project, agent_step("1"), step("2", run=["echo no"], after=["1"]))
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    decide(ask_of(project), "reject", reason="no echo")
    plan_again(project, agent_step("1"), step("2", run=["touch ran"], after=["1"]))
    assert child(root, "1").blueprint == root.blueprints.get(number=2)
    hand_in(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "review")
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_a_refused_plan_that_comes_back_unchanged_counts_as_an_attempt(project: Project) -> None:
    """CASES C-19: the third time the project stops, and Sir sees each time side by side."""
    root = submit(project, step("1", run=["echo no"]))
    decide(ask_of(project), "reject", reason="no")
    for failed in (1, 2):
        plan_again(project, step("1", run=["echo no"]))
        root = fresh(root)
        assert (root.failure_count, root.attempt, root.revisions_used) == (failed, failed + 1, 0)
        assert not Decision.objects.filter(project=project, status="open").exists()
    plan_again(project, step("1", run=["echo no"]))
    assert fresh(root).status == TaskStatus.FATAL
    stopped = open_decision_of(project)
    assert (stopped.kind, stopped.is_p0) == ("max_retries", True)
    causes = [one["root_cause"] for one in fresh(root).failure_context]
    assert causes == [UNCHANGED] * 3
    project.refresh_from_db()
    assert project.status == "suspended"
    assert Decision.objects.filter(project=project, kind="command_approval").count() == 1


def test_an_attempt_ended_by_a_refused_plan_goes_on_with_another(project: Project) -> None:
    root = submit(project, step("1", run=["echo no"]))
    decide(ask_of(project), "reject", reason="no")
    plan_again(project, step("1", run=["echo no"]))
    plan_again(project, step("1", run=["touch ran"]))
    assert fresh(root).status == TaskStatus.DONE
    assert fresh(root).failure_count == 0


def test_a_failing_sibling_ends_the_attempt_of_a_refused_plan_once(project: Project) -> None:
    root = submit(project, agent_step("1"), step("2", run=["echo no"], after=["1"]))
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    decide(ask_of(project), "reject", reason="no echo")
    set_status(child(root, "1"), agent, "failed", detail="broken")
    assert child(root, "1").status == TaskStatus.PENDING
    assert not child(root, "1").assignments.filter(status__in=["queued", "leased"]).exists()
    assert root.assignments.filter(seat="planner", status="queued").count() == 1


def strike(decision: Decision, *programs: str) -> None:
    gone = [one["digest"] for one in decision.content["commands"] if one["argv"][0] in programs]
    decide(decision, "amend", reason="not these", payload={"remove": gone})


def test_struck_commands_strand_no_step(project: Project) -> None:
    steps = [
        step("1", run=["printf a"]),
        step("2", run=["echo no"]),
        step("3", run=["printf b", "echo no"]),
    ]
    root = submit(project, *steps)
    strike(ask_of(project), "echo")
    again = ask_of(project)
    assert [one["argv"] for one in again.content["commands"]] == [["printf", "a"]]
    assert {one["step"] for one in again.content["struck"]} == {"2", "3"}
    decide(again, "approve")
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "2").status == TaskStatus.PENDING
    asked = root.assignments.get(seat="planner", status="queued").input
    assert len(asked["findings"]) == 2
    assert asked["guidance"] == "not these"
    plan_again(project, steps[0], step("2", run=["touch two"]), step("3", run=["touch three"]))
    assert fresh(root).status == TaskStatus.DONE


def test_a_step_in_the_queue_is_kept_and_queued_once(project: Project) -> None:
    steps = [agent_step("1"), step("2", run=["printf a"]), step("3", run=["echo no"])]
    root = submit(project, *steps)
    strike(ask_of(project), "echo")
    decide(ask_of(project), "approve")
    plan_again(project, steps[0], steps[1], step("3", run=["touch three"]))
    assert child(root, "1").assignments.filter(seat="executor").count() == 1
    assert child(root, "3").status == TaskStatus.DONE


def test_striking_every_command_sends_the_plan_back_and_asks_nothing(project: Project) -> None:
    root = submit(project, step("1", run=["echo no"]))
    strike(ask_of(project), "echo")
    assert not Decision.objects.filter(project=project, status="open").exists()
    assert root.plans.get().status == "needs_revision"
    assert root.assignments.filter(seat="planner", status="queued").count() == 1


def test_an_amended_item_can_still_be_refused(project: Project) -> None:
    root = submit(project, step("1", run=["printf a"]), step("2", run=["echo no"]))
    strike(ask_of(project), "echo")
    decide(ask_of(project), "reject", reason="neither")
    drive(project)
    assert child(root, "1").status == TaskStatus.PENDING
    assert root.plans.get().status == "needs_revision"


def test_commands_are_approved_for_one_attempt(project: Project) -> None:
    script = "sh -c 'echo r >> log; test $(wc -l < log) -gt 2'"
    root = submit_plan(project, step("1", run=[script]), is_trusted=False)
    drive(project)
    decide(ask_of(project), "approve")
    drive(project)
    assert fresh(root).attempt == 2
    # Both tries of the first attempt had the approval; the second attempt has none.
    assert (Path(project.workspace) / "log").read_text().count("r") == 2
    assert child(root, "1").status == TaskStatus.PENDING
    decide(ask_of(project), "approve")
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_an_approved_fix_is_used_once_and_an_approved_verify_holds(project: Project) -> None:
    fix = {"description": "d", "commands": ["sh -c 'echo f >> fixes'"]}
    root = submit_plan(
        project,
        step("1", run=["ls wanted"], verify=["printf ok"],
             on_failure={"severity": "critical", "fix": fix}),
        is_trusted=False,
    )  # fmt: skip
    drive(project)
    decide(ask_of(project), "approve")
    drive(project)
    assert (Path(project.workspace) / "fixes").read_text() == "f\n"
    waiting = child(root, "1").assignments.get(status="queued")
    assert (waiting.seat, waiting.backend) == ("fixer", "external")
    assert child(root, "1").verifications.filter(fix_round=1, outcome="passed").exists()
