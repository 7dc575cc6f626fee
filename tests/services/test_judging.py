"""Who judges a root, and what the loop does on each verdict."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import Conflict
from orchestration.models import (
    Assignment,
    ControlCommand,
    Decision,
    Defect,
    Project,
    Task,
    ValidationPackage,
    Verification,
)
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.intake import NewTask, create_task, create_tasks
from orchestration.services.judging import settle_root
from orchestration.services.lookups import lock_task
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import SYSTEM, Actor, unit_of_work
from orchestration.states import LayerOutcome, Seat, TaskStatus
from tests.factories import (
    actor_of,
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
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
EXTERNAL = {"seats": {"validator": ["external"]}}


def commands(project: Project) -> list[str]:
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("next_action", flat=True))


def validate(project: Project, document: dict[str, Any]) -> Assignment | None:
    """Let an independent agent fill the validator seat; None where nothing is asked of it."""
    agent = new_agent(project=project)
    held = claim_for_agent(agent=agent, wish=Wish([Seat.VALIDATOR]), actor=actor_of(agent))
    if held is not None:
        hold = Hold(held.pk, agent, held.lease_token)
        submit_result(hold=hold, document=document, actor=actor_of(agent))
    return held


def fail_fatally(root: Task, project: Project, key: str = "1") -> None:
    """Let a step fail until its root is fatal."""
    for _ in range(6):
        agent = new_agent(project=project)
        claim(child(root, key), agent)
        set_status(child(root, key), agent, "failed", detail="no")
        drive(project)
    assert fresh(root).status == TaskStatus.FATAL


def test_an_agent_validates_what_the_policy_gives_it() -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1"))
    drive(project)
    assert (fresh(root).status, fresh(root).awaits_verdict) == (TaskStatus.REVIEW, True)
    assert not sweep()["judged"]
    held = validate(project, {"verdict": "GO", "basis": "read it all"})
    assert held is not None
    assert held.input["rules_package"]["verdict"] == "GO"
    assert (fresh(root).status, fresh(root).awaits_verdict) == (TaskStatus.DONE, False)
    assert commands(project) == ["TERMINATE_SUCCESS"]


def test_a_validators_no_go_ends_the_attempt_and_keeps_what_is_locked() -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1"))
    drive(project)
    before = child(root, "1").pk
    validate(project, {"verdict": "NO-GO", "failed_cases": ["TC-9"]})
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.FAILED, 1)
    drive(project)
    assert child(root, "1").pk == before
    assert child(root, "1").status == TaskStatus.DONE
    assert (fresh(root).status, fresh(root).attempt) == (TaskStatus.REVIEW, 2)


def test_a_go_cannot_overrule_a_planned_check_that_failed() -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1", verify=["true"]))
    drive(project)
    done = child(root, "1")
    Verification.objects.create(
        task=done, attempt=done.attempt, layer="L3", name="true", outcome=LayerOutcome.FAILED.value
    )
    validate(project, {"verdict": "GO"})
    row = ValidationPackage.objects.get(task=root)
    assert (row.verdict, row.claimed) == ("NO-GO", "GO")
    assert "step 1: true" in row.root_cause
    assert fresh(root).status == TaskStatus.FAILED


@pytest.mark.parametrize(
    ("signed", "severity", "verdict"),
    [
        ({"source_key": "verify:0"}, "medium", "GO"),
        ({"source_key": "run:0", "evidence": {"keys": ["run:0", "verify:0"]}}, "medium", "GO"),
        ({"source_key": "qa:a gap"}, "medium", "NO-GO"),
        ({"source_key": "verify:1"}, "medium", "NO-GO"),
        ({"source_key": "verify:0"}, "low", "NO-GO"),
    ],
)
def test_what_sir_accepts_as_it_is_exempts_its_own_check_alone(
    signed: dict[str, Any], severity: str, verdict: str
) -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1", verify=["true"]))
    drive(project)
    done = child(root, "1")
    assert done.verifications.get(layer="L3").finding_key == "verify:0"
    Defect.objects.create(
        task=done, severity=severity, status="accepted_as_is", title="known", raised_by="qa",
        **signed,
    )  # fmt: skip
    Verification.objects.create(
        task=done, attempt=done.attempt, layer="L3", name="true", finding_key="verify:0",
        outcome=LayerOutcome.FAILED.value,
    )  # fmt: skip
    validate(project, {"verdict": "GO"})
    assert ValidationPackage.objects.get(task=root).verdict == verdict


def test_a_planned_check_that_could_not_run_is_a_no_go_unless_sir_looked() -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1", verify=["true"]))
    drive(project)
    done = child(root, "1")
    Verification.objects.create(
        task=done, attempt=done.attempt, layer="L3", outcome=LayerOutcome.NOT_POSSIBLE.value,
        findings=["not possible: no sandbox"],
    )  # fmt: skip
    Task.objects.filter(pk=root.pk).update(awaits_verdict=False)
    Project.objects.filter(pk=project.pk).update(policy_json="{}")
    with unit_of_work(SYSTEM) as work:
        settle_root(work, lock_task(root.pk))
    row = ValidationPackage.objects.get(task=root)
    assert (row.verdict, row.failure_class) == ("NO-GO", "config_error")
    assert "no sandbox" in row.root_cause
    Verification.objects.create(
        task=done, attempt=done.attempt, layer="L5", outcome=LayerOutcome.PASSED.value
    )
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_rule_17_whoever_executed_a_step_does_not_validate_its_root() -> None:
    """Rule 17: independence counts descendants too."""
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, agent_step("1"))
    drive(project)
    maker = new_agent(project=project)
    execute(child(root, "1"), maker)
    assert fresh(root).awaits_verdict
    wish = Wish([Seat.VALIDATOR])
    assert claim_for_agent(agent=maker, wish=wish, actor=actor_of(maker)) is None
    assert validate(project, {"verdict": "GO"}) is not None


def test_a_suspended_projects_root_waits_for_its_verdict() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    pause_project(project_id=project.pk, actor=SIR)
    from_here = Task.objects.get(pk=child(root, "1").pk)
    hand_over(from_here, agent)
    assert (fresh(root).status, fresh(root).awaits_verdict) == (TaskStatus.REVIEW, True)
    assert commands(project) == []
    resume_project(project_id=project.pk, actor=SIR)
    assert fresh(root).status == TaskStatus.DONE
    assert commands(project) == ["TERMINATE_SUCCESS"]


def hand_over(task: Task, agent: Any) -> None:
    """Hand in a claimed step that is at work."""
    hand_in(task, agent)
    set_status(task, agent, "review")


@pytest.mark.parametrize("is_released", [True, False])
def test_a_waived_root_frees_its_dependents_only_where_sir_ticked_so(is_released: bool) -> None:  # noqa: FBT001
    project = new_project()
    root = submit_plan(project, agent_step("1"), external_key="a")
    behind = submit_plan(project, step("1"), external_key="b", depends_on=("a",))
    drive(project)
    fail_fatally(root, project)
    payload = {"release_dependents": True} if is_released else {}
    decide(open_decision_of(project, "max_retries"), "waive", reason="ship it", payload=payload)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert fresh(root).last_outcome == "waived: ship it"
    if is_released:
        assert fresh(behind).status == TaskStatus.DONE
        assert commands(project)[-1] == "TERMINATE_SUCCESS"
    else:
        assert fresh(behind).status == TaskStatus.PENDING
        assert commands(project)[-1] == "SUSPEND_FOR_HUMAN"
        asked = open_decision_of(project, "waiting_human")
        assert asked.is_p0
        assert asked.content["blockers"][0]["needs"] == ["a: waived"]
        decide(asked, "abort", reason="not needed then")
        assert fresh(behind).status == TaskStatus.CANCELLED
        assert fresh(root).project.status == "completed"


def test_what_a_waiver_frees_starts_in_its_place() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"), external_key="a")
    freed = submit_plan(project, agent_step("1"), external_key="b", depends_on=("a",))
    later = submit_plan(project, agent_step("1"), external_key="c")
    drive(project)
    fail_fatally(root, project)
    payload = {"release_dependents": True}
    decide(open_decision_of(project, "max_retries"), "waive", reason="ship it", payload=payload)
    drive(project)
    assert [fresh(freed).status, fresh(later).status] == ["working", "pending"]


def test_a_waived_root_leaves_no_step_that_could_still_start() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    fail_fatally(root, project)
    decide(open_decision_of(project, "max_retries"), "waive", reason="ship it")
    drive(project)
    rows = root.children.filter(is_superseded=False).order_by("step_key")
    assert list(rows.values_list("step_key", "status")) == [("1", "failed"), ("2", "cancelled")]
    assert fresh(root).status == TaskStatus.DONE


def test_a_cancelled_requirement_stops_the_loop_for_sir_and_never_terminates() -> None:
    project = new_project()
    first, gone, behind = create_tasks(
        project_id=project.pk,
        rows=[
            NewTask(text="x", external_key="a", plan={"summary": "x", "steps": [agent_step("1")]}),
            NewTask(text="y", external_key="b", plan={"summary": "y", "steps": [step("1")]}),
            NewTask(
                text="z", external_key="c", depends_on=("b",),
                plan={"summary": "z", "steps": [step("1")]},
            ),
        ],
        actor=SIR,
    )  # fmt: skip
    drive(project)
    cancel_task(task_id=gone.pk, actor=SIR, reason="no")
    execute(child(first, "1"), new_agent(project=project))
    assert commands(project) == ["SUSPEND_FOR_HUMAN"]
    asked = open_decision_of(project)
    assert [one["verdict"] for one in asked.options] == ["approve", "abort"]
    assert asked.content["blockers"][0]["needs"] == ["b: cancelled"]
    assert fresh(behind).status == TaskStatus.PENDING
    assert fresh(first).project.status == "active"


def test_direct_tasks_issue_no_command_and_do_not_queue_behind_planned_ones() -> None:
    project = new_project()
    planned = submit_plan(project, agent_step("1"))
    drive(project)
    direct = create_task(
        project_id=project.pk, new=NewTask(text="open it", route="direct"), actor=SIR
    )
    execute(direct, new_agent(project=project))
    assert fresh(direct).status == TaskStatus.DONE
    assert fresh(planned).status == TaskStatus.WORKING
    assert direct.validation_packages.get().verdict == "GO"
    assert commands(project) == []


def test_retry_and_abort_of_a_fatal_root_let_the_project_go_on() -> None:
    project = new_project()
    root = submit_plan(project, agent_step("1"))
    drive(project)
    fail_fatally(root, project)
    assert fresh(root).project.status == "suspended"
    decision = open_decision_of(project, "max_retries")
    assert [one["attempt"] for one in decision.content["failures"]] == [1, 2, 3]
    assert all(one["package"] and one["verdict"] == "NO-GO" for one in decision.content["failures"])
    decide(decision, "retry", reason="use the other door")
    assert fresh(root).project.status == "active"
    assert fresh(root).failure_count == 0
    drive(project)
    fail_fatally(root, project)
    decide(open_decision_of(project, "max_retries"), "abort", reason="enough")
    assert fresh(root).status == TaskStatus.CANCELLED
    assert fresh(root).project.status == "active"


def test_a_control_command_cannot_be_changed() -> None:
    project = new_project()
    submit_plan(project, step("1"))
    drive(project)
    row = ControlCommand.objects.get(project=project)
    with pytest.raises(Exception, match="immutable"):
        ControlCommand.objects.filter(pk=row.pk).update(next_action="SUSPEND_FOR_HUMAN")


def test_a_lost_judgement_is_made_up_by_the_sweep() -> None:
    project = new_project(policy=EXTERNAL)
    root = submit_plan(project, step("1"))
    drive(project)
    Assignment.objects.filter(task=root, seat="validator").delete()
    # Neither an answer of another attempt nor another seat's work is a question to a validator.
    for seat, status in (("validator", "done"), ("planner", "queued")):
        Assignment.objects.create(
            project=project, task=root, seat=seat, status=status, backend="external"
        )
    assert sweep()["judged"] == 1
    assert Assignment.objects.filter(task=root, seat="validator", status="queued").count() == 1
    assert not Decision.objects.filter(project=project).exists()
    with pytest.raises(Conflict):
        cancel_task(task_id=child(root, "1").pk, actor=SIR, reason="too late")
