"""Two finishers behind one join; a finish against a cancel, a block and a sweep."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import Conflict, LeaseLost
from orchestration.models import Agent, Assignment, AuditEvent, Decision, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.states import AssignmentStatus, Seat, TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    drive,
    fresh,
    hand_in,
    new_agent,
    new_project,
    set_status,
)
from tests.races.contest import SIR, direct_task, on_both, race, started_plan

pytestmark = on_both
NESTS = {"thresholds": {"s1_simple_threshold": 5, "s1_medium_threshold": 6}}
"""Thresholds under which every assessed step is planned itself."""


@pytest.fixture
def project() -> Project:
    return new_project()


def about_to_finish(task: Task) -> Agent:
    """Bring a task to where its agent has handed in and only the report is missing."""
    agent = new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    # Work of its own: equal contents are one row, on which the second would wait as well.
    hand_in(task, agent, f"the work of {agent.name}")
    return agent


def queued_executors(task: Task) -> int:
    """Count the executor assignments that wait for a task."""
    rows = Assignment.objects.filter(task=task, seat=Seat.EXECUTOR.value)
    return rows.filter(status=AssignmentStatus.QUEUED.value).count()


@pytest.mark.parametrize("later", [{"phase": 2}, {"after": ["1", "2"]}])
def test_second_of_two_finishers_opens_what_waited_for_both(
    project: Project, later: dict[str, Any]
) -> None:
    root = started_plan(project, agent_step("1"), agent_step("2"), agent_step("3", **later))
    first, second = child(root, "1"), child(root, "2")
    one, other = about_to_finish(first), about_to_finish(second)
    assert queued_executors(child(root, "3")) == 0
    _, rival = race(
        lambda: set_status(first, one, "review"), lambda: set_status(second, other, "review")
    )
    rival.result()
    assert queued_executors(child(root, "3")) == 1
    assert [fresh(first).status, fresh(second).status] == [TaskStatus.DONE, TaskStatus.DONE]
    assert child(root, "3").remaining_dependencies == 0


def test_c_56_phase_stays_closed_while_one_of_its_steps_is_at_work(project: Project) -> None:
    root = started_plan(project, agent_step("1"), agent_step("2"), agent_step("3", phase=2))
    first, second = child(root, "1"), child(root, "2")
    one, other = about_to_finish(first), about_to_finish(second)
    set_status(first, one, "review")
    assert queued_executors(child(root, "3")) == 0
    set_status(second, other, "failed", detail="once more")
    assert queued_executors(child(root, "3")) == 0
    set_status(second, about_to_finish(second), "review")
    assert queued_executors(child(root, "3")) == 1


def test_c_70_same_report_sent_twice_at_once_is_one_move(project: Project) -> None:
    task = direct_task(project)
    agent = about_to_finish(task)
    _, rival = race(
        lambda: set_status(task, agent, "review"), lambda: set_status(task, agent, "review")
    )
    assert rival.result().status == TaskStatus.DONE
    assert AuditEvent.objects.filter(task=task, kind="task.done").count() == 1
    assert task.artifacts.count() == 1


def test_second_of_two_finishers_finishes_the_plan(project: Project) -> None:
    root = started_plan(project, agent_step("1"), agent_step("2"))
    first, second = child(root, "1"), child(root, "2")
    one, other = about_to_finish(first), about_to_finish(second)
    _, rival = race(
        lambda: set_status(first, one, "review"), lambda: set_status(second, other, "review")
    )
    rival.result()
    assert fresh(root).status == TaskStatus.DONE
    assert root.outputs.filter(title="Step report").count() == 1


SYSTEMS = {"A": "订单", "B": "支付"}


def planned_step(key: str) -> dict[str, object]:
    """Write a step that S1 finds complex enough to be planned itself."""
    return {"id": key, "action": f"设计并实现整个{SYSTEMS[key]}系统", "depends_on": []}


def plan_for(task: Task, *steps: dict[str, object]) -> None:
    """Plan a step that is planned itself, as its planner."""
    planner = new_agent()
    held = claim_for_agent(agent=planner, wish=Wish(seats=(Seat.PLANNER,)), actor=actor_of(planner))
    assert held is not None
    assert held.task_id == task.pk
    plan = {"summary": "a plan below a plan", "steps": list(steps)}
    hold = Hold(held.pk, planner, held.lease_token)
    submit_result(hold=hold, document=plan, actor=actor_of(planner))


def nested_plans(*last: dict[str, Any]) -> Task:
    """A plan whose two steps are planned themselves, each with two steps to do, and `last`."""
    project = new_project(policy=NESTS)
    root = started_plan(project, planned_step("A"), planned_step("B"), is_trusted=False)
    for key in ("A", "B"):
        plan_for(child(root, key), agent_step("1"), agent_step("2"), *last)
        drive(project)
    return root


def test_finishers_of_two_sibling_plans_finish_the_root_once() -> None:
    root = nested_plans()
    last = []
    for key in ("A", "B"):
        step = child(root, key)
        set_status(child(step, "1"), about_to_finish(child(step, "1")), "review")
        last.append((child(step, "2"), about_to_finish(child(step, "2"))))
    (first, one), (second, other) = last
    _, rival = race(
        lambda: set_status(first, one, "review"), lambda: set_status(second, other, "review")
    )
    rival.result()
    assert [child(root, key).status for key in ("A", "B")] == [TaskStatus.DONE, TaskStatus.DONE]
    assert fresh(root).status == TaskStatus.DONE
    assert root.outputs.filter(title="Step report").count() == 1


@pytest.mark.parametrize("what", ["root", "step"])
def test_cancel_that_comes_after_the_finish_meets_a_done_step(project: Project, what: str) -> None:
    root = started_plan(project, agent_step("step"), agent_step("other"))
    task = child(root, "step")
    agent = about_to_finish(task)
    target = root if what == "root" else task
    _, rival = race(
        lambda: set_status(task, agent, "review"),
        lambda: cancel_task(task_id=target.pk, actor=SIR, reason="not needed"),
    )
    assert fresh(task).status == TaskStatus.DONE
    if what == "step":
        with pytest.raises(Conflict, match="done already"):
            rival.result()
        assert fresh(root).status == TaskStatus.WORKING
    else:
        rival.result()
        assert child(root, "other").status == TaskStatus.CANCELLED


@pytest.mark.parametrize("what", ["root", "step"])
def test_finish_that_comes_after_the_cancel_is_refused(project: Project, what: str) -> None:
    root = started_plan(project, agent_step("step"), agent_step("other", after=["step"]))
    task = child(root, "step")
    agent = about_to_finish(task)
    target = root if what == "root" else task
    _, rival = race(
        lambda: cancel_task(task_id=target.pk, actor=SIR, reason="not needed"),
        lambda: set_status(task, agent, "review"),
    )
    with pytest.raises(LeaseLost):
        rival.result()
    assert fresh(task).status == TaskStatus.CANCELLED
    assert not task.artifacts.exists()
    assert child(root, "other").status == TaskStatus.CANCELLED


def nested_step() -> tuple[Task, Task, Agent]:
    """A root, a step two levels below it, and the agent that is about to finish that step."""
    root = nested_plans(agent_step("3", after=["1"]))
    task = child(child(root, "A"), "1")
    return root, task, about_to_finish(task)


def test_cancel_of_a_root_reaches_a_step_that_finishes_two_levels_below() -> None:
    root, task, agent = nested_step()
    _, rival = race(
        lambda: set_status(task, agent, "review"),
        lambda: cancel_task(task_id=root.pk, actor=SIR, reason="not needed"),
    )
    rival.result()
    assert fresh(task).status == TaskStatus.DONE
    assert_nothing_lives(root)


def test_question_two_levels_below_a_cancelled_root_leaves_nothing() -> None:
    root, task, agent = nested_step()
    _, rival = race(
        lambda: set_status(task, agent, "waiting_human", detail="Which one?"),
        lambda: cancel_task(task_id=root.pk, actor=SIR, reason="not needed"),
    )
    rival.result()
    assert_nothing_lives(root)


def test_plan_that_is_locked_deep_below_a_cancelled_root_is_cancelled_with_it() -> None:
    project = new_project(policy=NESTS)
    root = started_plan(project, planned_step("A"), is_trusted=False)
    plan_for(child(root, "A"), planned_step("B"))
    drive(project)
    deep = child(child(root, "A"), "B")
    plan_for(deep, agent_step("1"), agent_step("2"))
    _, rival = race(
        lambda: drive(project),
        lambda: cancel_task(task_id=root.pk, actor=SIR, reason="not needed"),
    )
    rival.result()
    assert Task.objects.filter(parent=deep).count() == 2
    assert_nothing_lives(root)


def assert_nothing_lives(root: Task) -> None:
    """Every task of the tree has ended and nobody holds or is offered anything of it."""
    tree = Task.objects.filter(root=root) | Task.objects.filter(pk=root.pk)
    ended = {TaskStatus.DONE.value, TaskStatus.CANCELLED.value}
    assert set(tree.values_list("status", flat=True)) <= ended
    live = [AssignmentStatus.QUEUED.value, AssignmentStatus.LEASED.value]
    assert not Assignment.objects.filter(task__in=tree, status__in=live).exists()
    for task in tree:
        assert not task.decisions.filter(status="open").exists()


def blocked_on(task: Task, blocker: Task, agent: Agent) -> Task:
    """Report a task as blocked by another."""
    return set_status(
        task, agent, "blocked", detail="needs the other", blocked_by=(str(blocker.pk),)
    )


@pytest.fixture(params=["siblings", "roots"])
def pair(request: pytest.FixtureRequest, project: Project) -> tuple[Task, Task]:
    """Two tasks that may block each other: steps of one plan, or roots without a common lock."""
    if request.param == "roots":
        return direct_task(project), direct_task(project, "打开报表")
    root = started_plan(project, agent_step("1"), agent_step("2"))
    return child(root, "1"), child(root, "2")


def test_block_on_a_task_that_finishes_first_does_not_stay_blocked(
    pair: tuple[Task, Task],
) -> None:
    task, blocker = pair
    agent, finisher = new_agent(), about_to_finish(blocker)
    claim(task, agent)
    _, rival = race(
        lambda: set_status(blocker, finisher, "review"), lambda: blocked_on(task, blocker, agent)
    )
    rival.result()
    assert fresh(task).status == TaskStatus.PENDING
    assert queued_executors(task) == 1


def test_finish_that_comes_after_the_block_frees_the_blocked(pair: tuple[Task, Task]) -> None:
    task, blocker = pair
    agent, finisher = new_agent(), about_to_finish(blocker)
    claim(task, agent)
    _, rival = race(
        lambda: blocked_on(task, blocker, agent), lambda: set_status(blocker, finisher, "review")
    )
    rival.result()
    assert fresh(task).status == TaskStatus.PENDING
    assert queued_executors(task) == 1


def test_sweep_beside_a_finish_queues_nothing_twice(project: Project) -> None:
    root = started_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    first = child(root, "1")
    agent = about_to_finish(first)
    set_status(first, agent, "review")
    Assignment.objects.filter(task=child(root, "2")).update(status="cancelled")
    _, rival = race(sweep, sweep)
    rival.result()
    assert queued_executors(child(root, "2")) == 1


def test_question_about_a_blocked_step_ends_with_the_attempt_that_ends_meanwhile() -> None:
    project = new_project(policy={"thresholds": {"step_attempts": 1}})
    other = direct_task(project)
    root = started_plan(project, agent_step("1"), agent_step("2"))
    failing, blocked = child(root, "1"), child(root, "2")
    one, two = new_agent(), new_agent()
    claim(blocked, two)
    set_status(blocked, two, "blocked", detail="waits", blocked_by=(str(other.pk),))
    claim(failing, one)
    # Its blocker dies, so Sir is asked about the step; its own root's attempt ends meanwhile.
    race(
        lambda: cancel_task(task_id=other.pk, actor=SIR, reason="not needed"),
        lambda: set_status(failing, one, "failed", detail="cannot"),
    )
    assert fresh(blocked).status == TaskStatus.CANCELLED
    assert not Decision.objects.filter(task=blocked, status="open").exists()
