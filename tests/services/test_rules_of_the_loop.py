"""Rules 6, 9, 10, 19 and 21 of DESIGN section 4, lineage and specifications."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from orchestration.contracts.loop import Verdict
from orchestration.contracts.plan import PlanStep
from orchestration.contracts.results import DeviationInput, ToolCallInput
from orchestration.contracts.validation import Package
from orchestration.errors import (
    Conflict,
    Forbidden,
    PlanInvalid,
)
from orchestration.models import Assignment, ControlCommand, Decision, Project, Task
from orchestration.services.agent_results import Hold
from orchestration.services.deviations import record_deviation
from orchestration.services.intake import NewTask, create_task
from orchestration.services.sweeping import sweep
from orchestration.services.tool_calls import record_tool_calls
from orchestration.services.validation import Posted, post_package
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
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


@pytest.fixture
def project() -> Project:
    return new_project()


def expire(held: Assignment) -> None:
    """Let a lease run out and the sweep find it."""
    past = timezone.now() - timedelta(minutes=1)
    Assignment.objects.filter(pk=held.pk).update(lease_expires_at=past)
    sweep()


def test_rule_6_a_skipped_step_frees_its_dependents_and_is_named_as_an_exception(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1", verify=["true"]), agent_step("2", after=["1"]))
    drive(project)
    asked = DeviationInput(change="skipped", step="1", reason="done elsewhere")
    agent = new_agent(project=project)
    with pytest.raises(Forbidden):
        record_deviation(task_id=root.pk, asked=asked, actor=actor_of(agent), is_sir=False)
    record_deviation(task_id=root.pk, asked=asked, actor=SIR, is_sir=True)
    skipped = child(root, "1")
    assert (skipped.status, skipped.cancel_reason) == (TaskStatus.CANCELLED, "skipped")
    execute(child(root, "2"), agent)
    assert fresh(root).status == TaskStatus.DONE
    package = root.validation_packages.get()
    assert package.verdict == Verdict.GO
    assert {"exception": "skipped", "step": "1", "checks": 1} in package.body["evidence"]


def test_rule_6_a_changed_step_is_a_skipped_and_an_added_one(project: Project) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    new_step = PlanStep.model_validate({"id": "1b", "action": "do it so", "delegate": False})
    asked = DeviationInput(change="changed", step="1", new_step=new_step, reason="better")
    departed = record_deviation(task_id=root.pk, asked=asked, actor=SIR, is_sir=True)
    assert child(root, "1").cancel_reason == "skipped"
    assert departed.new_step is not None
    assert child(root, "2").status == TaskStatus.PENDING
    assert child(root, "2").remaining_dependencies == 1


def test_rule_9_a_planner_that_dies_is_replaced_and_the_third_time_sir_is_asked(
    project: Project,
) -> None:
    root = create_task(
        project_id=project.pk, new=NewTask(text="plan it", route="three_step"), actor=SIR
    )
    for number in (1, 2, 3):
        assert fresh(root).status == TaskStatus.WORKING, number
        held = root.assignments.get(seat="planner", status="queued")
        past = timezone.now() - timedelta(minutes=1)
        Assignment.objects.filter(pk=held.pk).update(
            status="leased", agent=new_agent(project=project), lease_token="t",
            lease_expires_at=past, leased_at=past,
        )  # fmt: skip
        sweep()
    assert fresh(root).status == TaskStatus.WAITING_HUMAN
    assert fresh(root).failure_count == 0
    decision = open_decision_of(project, "waiting_human")
    assert decision.content["seat"] == "planner"
    decide(decision, "approve")
    assert fresh(root).status == TaskStatus.WORKING
    assert root.assignments.filter(seat="planner", status="queued").count() == 1


def test_rule_9_an_executors_third_expiry_in_a_row_counts_whatever_the_progress(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    for _ in range(3):
        agent = new_agent(project=project)
        held = claim(child(root, "1"), agent)
        set_status(child(root, "1"), agent, "working")
        hand_in(child(root, "1"), agent)
        expire(held)
    step1 = child(root, "1")
    assert step1.tries == 1
    assert step1.failure_context[-1]["class"] == "lease_expired"


@pytest.mark.parametrize(("risk", "is_asked"), [("high", False), ("critical", True)])
def test_rule_10_a_planned_tasks_own_review_is_its_report_and_sir_if_critical(
    project: Project,
    risk: str,
    is_asked: bool,  # noqa: FBT001
) -> None:
    root = submit_plan(project, step("1", risk_level=risk, risks=["may break"]))
    drive(project)
    decide(open_decision_of(project, "final_review"), "approve")
    drive(project)
    asked = Decision.objects.filter(task=root, kind="final_review", status="open")
    assert asked.exists() is is_asked
    if is_asked:
        assert fresh(root).status == TaskStatus.WAITING_HUMAN
        decide(asked.get(), "approve")
    found = root.verifications.order_by("pk").values_list("layer", flat=True)
    assert list(found) == (["L1", "L2", "L5"] if is_asked else ["L1", "L2"])
    assert fresh(root).status == TaskStatus.DONE


def test_rule_19_packages_are_taken_in_review_or_at_work_without_open_children(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1"))
    behind = submit_plan(project, agent_step("1"))
    drive(project)
    posted = Posted(Package(verdict=Verdict.NO_GO, root_cause="no"), is_loop_state=True)
    for task, code in ((root, "children_open"), (behind, "not_judgeable")):
        with pytest.raises(Conflict) as refused:
            post_package(task_id=task.pk, posted=posted, actor=SIR)
        assert refused.value.code == code


def test_rule_21_two_hundred_calls_end_the_work_as_a_failed_attempt(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent(project=project)
    held = claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    calls = [
        ToolCallInput(tool="Bash", command=f"ls {number}", outcome="ok") for number in range(200)
    ]
    hold = Hold(held.pk, agent, Assignment.objects.get(pk=held.pk).lease_token)
    done = record_tool_calls(hold=hold, calls=calls, actor=actor_of(agent))
    assert done.is_stopped
    stopped = child(root, "1")
    assert (stopped.status, stopped.tries) == (TaskStatus.PENDING, 1)
    assert stopped.failure_context[-1]["class"] == "budget"


def test_a_root_that_failed_is_planned_again_before_another_is_begun() -> None:
    project = new_project(policy={"thresholds": {"step_attempts": 1}})
    root = submit_plan(project, agent_step("1"), text="at work", rank=2)
    drive(project)
    other = submit_plan(project, agent_step("1"), text="of a better rank", rank=1)
    drive(project)
    assert fresh(other).status == TaskStatus.PENDING
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    set_status(child(root, "1"), agent, "failed", detail="it broke")
    drive(project)
    command = ControlCommand.objects.get(project=project)
    assert command.next_action == "RESTART_FROM_STEP_2"
    assert fresh(root).attempt == 2
    assert (fresh(root).status, fresh(other).status) == (TaskStatus.WORKING, TaskStatus.PENDING)


def test_c_44_steps_of_new_plans_do_not_start_the_count_over(project: Project) -> None:
    """Every attempt has a new step row; the count stands on the root."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    rows = set()
    for _ in range(6):
        agent = new_agent(project=project)
        rows.add(child(root, "1").pk)
        claim(child(root, "1"), agent)
        set_status(child(root, "1"), agent, "failed", detail="no")
        drive(project)
    assert len(rows) == 3
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.FATAL, 3)
    actions = ControlCommand.objects.filter(project=project).order_by("pk")
    assert list(actions.values_list("next_action", flat=True)) == [
        "RESTART_FROM_STEP_2", "RESTART_FROM_STEP_2", "SUSPEND_FOR_HUMAN",
    ]  # fmt: skip


@pytest.mark.parametrize(("most", "status"), [(3, "fatal"), (4, "working")])
def test_c_52_how_many_failures_end_a_task_is_the_policys_to_say(most: int, status: str) -> None:
    project = new_project(policy={"thresholds": {"max_retries": most, "step_attempts": 1}})
    root = submit_plan(project, agent_step("1"))
    drive(project)
    for _ in range(3):
        agent = new_agent(project=project)
        claim(child(root, "1"), agent)
        set_status(child(root, "1"), agent, "failed", detail="no")
        drive(project)
    assert (fresh(root).status, fresh(root).failure_count) == (status, 3)


def test_a_plan_has_a_metric_for_every_performance_constraint(project: Project) -> None:
    spec = "Users sign in.\n\nPC-01 a sign-in takes less than 200 ms."
    plan = {"summary": "x", "steps": [step("1", verify=["true"])]}
    new = NewTask(text="sign in", plan=plan, specification=spec)
    with pytest.raises(PlanInvalid) as refused:
        create_task(project_id=project.pk, new=new, actor=SIR)
    assert [one["path"] for one in refused.value.errors] == ["metrics"]
    metrics = [{"name": "p95 of a sign-in", "constraint": "PC-01"}]
    new = NewTask(text="sign in", plan={**plan, "metrics": metrics}, specification=spec)
    assert create_task(project_id=project.pk, new=new, actor=SIR).plans.count() == 1


SPEC = "Users sign in.\n\nAC-01 a wrong password is refused.\nAC-02 three tries lock the account."


def test_a_plan_covers_every_acceptance_criterion_of_the_locked_specification(
    project: Project,
) -> None:
    plan = {"summary": "x", "steps": [step("1", verify=["true"], covers=["AC-01"])]}
    new = NewTask(text="sign in", plan=plan, specification=SPEC)
    with pytest.raises(PlanInvalid) as refused:
        create_task(project_id=project.pk, new=new, actor=SIR)
    assert [one["message"][:5] for one in refused.value.errors] == ["AC-02"]
    assert not Task.objects.filter(project=project).exists()
    covered = {**plan, "test_cases": [{"id": "TC-2", "covers": ["AC-02"]}]}
    new = NewTask(text="sign in", plan=covered, specification=SPEC, is_trusted=True)
    root = create_task(project_id=project.pk, new=new, actor=SIR)
    drive(project)
    assert fresh(root).blueprints.count() == 1
