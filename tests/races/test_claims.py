"""Claims: one holder a task, never more running than slots, none in a project that pauses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import pytest
from django.db import transaction
from django.utils import timezone

from orchestration.contracts.results import OutputInput
from orchestration.errors import LeaseLost, NotReady, ProjectSuspended
from orchestration.models import Agent, Assignment, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.lease_sweeps import reclaim_expired_leases
from orchestration.services.lookups import lock_task
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.tasks import add_task_output
from orchestration.services.work import Slot
from orchestration.services.working import Shift, claim_one, perform_and_record
from orchestration.states import AssignmentStatus, Seat, TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    drive,
    execute,
    fresh,
    hand_in,
    new_agent,
    new_project,
    set_status,
    step,
    submit_plan,
)
from tests.races.contest import (
    SIR,
    WAIT_SECONDS,
    direct_task,
    in_own_connection,
    on_both,
    race,
    started_plan,
)

pytestmark = on_both
EXECUTOR = Wish(seats=(Seat.EXECUTOR,))


def running(root: Task) -> int:
    """Count the steps that hold a slot."""
    return root.children.filter(status__in=("claimed", "working")).count()


def leases_of(task: Task) -> list[str]:
    """List who holds a task."""
    rows = Assignment.objects.filter(task=task, status=AssignmentStatus.LEASED.value)
    return list(rows.values_list("worker", flat=True))


def test_second_claim_of_a_task_waits_and_is_told_the_holder() -> None:
    project = new_project()
    task, one, other = direct_task(project), new_agent("one"), new_agent("other")
    _, rival = race(lambda: claim(task, one), lambda: claim(task, other))
    with pytest.raises(NotReady) as refused:
        rival.result()
    assert refused.value.extra == {"reason": "claimed", "holder": "one"}
    assert leases_of(task) == ["one"]


@pytest.mark.postgres  # SQLite has one writer at a time
def test_claims_of_one_project_do_not_wait_for_each_other() -> None:
    """Each holds the project against a pause, together with the others."""
    project = new_project()
    first, second = direct_task(project), direct_task(project, "打开报表")
    one, other = new_agent("one"), new_agent("other")
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        claim(first, one)
        rival = pool.submit(in_own_connection, partial(claim, second, other))
        assert rival.result(WAIT_SECONDS).task_id == second.pk


@pytest.mark.postgres  # SQLite has one writer at a time
def test_second_claim_by_seat_takes_the_next_task_without_waiting() -> None:
    project = new_project()
    first, second = direct_task(project), direct_task(project, "打开报表")
    one, other = new_agent("one"), new_agent("other")
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        held = claim_for_agent(agent=one, wish=EXECUTOR, actor=actor_of(one))
        wish = partial(claim_for_agent, agent=other, wish=EXECUTOR, actor=actor_of(other))
        taken = pool.submit(in_own_connection, wish).result(WAIT_SECONDS)
    assert held is not None
    assert taken is not None
    assert (held.task_id, taken.task_id) == (first.pk, second.pk)


@pytest.mark.parametrize("limit", [1, 10])
def test_claim_of_the_last_slot_waits_and_finds_it_taken(limit: int) -> None:
    project = new_project(policy={"limits": {"parallel_children": limit}})
    root = started_plan(project, *[agent_step(str(n)) for n in range(limit + 1)])
    agents = [new_agent() for _ in range(limit + 1)]
    steps = [child(root, str(n)) for n in range(limit + 1)]
    for task, agent in zip(steps[: limit - 1], agents, strict=False):
        claim(task, agent)
    _, rival = race(
        lambda: claim(steps[limit - 1], agents[limit - 1]),
        lambda: claim(steps[limit], agents[limit]),
    )
    with pytest.raises(NotReady) as refused:
        rival.result()
    assert refused.value.extra["reason"] == "slots"
    assert running(root) == limit


@pytest.mark.parametrize("limit", [1, 10])
def test_claim_of_the_last_slot_by_seat_waits_and_takes_nothing(limit: int) -> None:
    project = new_project(policy={"limits": {"parallel_children": limit}})
    root = started_plan(project, *[agent_step(str(n)) for n in range(limit + 1)])
    agents = [new_agent() for _ in range(limit + 1)]
    for agent in agents[: limit - 1]:
        claim_for_agent(agent=agent, wish=EXECUTOR, actor=actor_of(agent))
    _, rival = race(
        lambda: claim_for_agent(agent=agents[-2], wish=EXECUTOR, actor=actor_of(agents[-2])),
        lambda: claim_for_agent(agent=agents[-1], wish=EXECUTOR, actor=actor_of(agents[-1])),
    )
    assert rival.result() is None
    assert running(root) == limit


def test_own_worker_claims_the_last_slot_once() -> None:
    project = new_project(policy={"limits": {"parallel_children": 1}})
    root = submit_plan(project, step("1"), step("2"))
    while not root.children.exists():
        held = claim_one(Slot("planning"))
        assert held is not None
        finish(held)
    held, rival = race(lambda: claim_one(Slot("one")), lambda: claim_one(Slot("other")))
    assert held is not None
    assert rival.result() is None
    assert running(root) == 1


@pytest.mark.postgres  # SQLite has one writer at a time
def test_claimer_without_the_task_leaves_its_assignment_to_whoever_has_it() -> None:
    project = new_project()
    submit_plan(project, step("1"))
    queued = Assignment.objects.get(status=AssignmentStatus.QUEUED.value)
    went_away, may_commit = Event(), Event()

    def go_away() -> Assignment | None:
        with transaction.atomic():
            held = claim_one(Slot("other"))
            went_away.set()
            assert may_commit.wait(WAIT_SECONDS)
        return held

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        lock_task(queued.task_id)
        other = pool.submit(in_own_connection, go_away)
        assert went_away.wait(WAIT_SECONDS)
        held = claim_one(Slot("one"))
        may_commit.set()
        assert other.result(WAIT_SECONDS) is None
    assert held is not None
    assert (held.pk, held.worker) == (queued.pk, "one")


def finish(held: Assignment) -> None:
    """Do one assignment as our own worker does, taking no other."""
    assert perform_and_record(held, Shift(Slot("planning"), ends=0.0)) is None


@pytest.fixture
def late(project: Project) -> tuple[Task, Agent, Hold]:
    """A task whose agent is about to hand in although its lease has run out."""
    task, agent = direct_task(project), new_agent("late")
    held = claim(task, agent)
    set_status(task, agent, "working")
    Assignment.objects.filter(pk=held.pk).update(lease_expires_at=timezone.now())
    return task, agent, Hold(held.pk, agent, held.lease_token)


@pytest.fixture
def project() -> Project:
    return new_project()


RESULT = {
    "status": "review",
    "output": {"title": "late work", "content": "finished after all"},
    "comment": "done",
}


def reclaim_and_give(task: Task, agent: Agent) -> None:
    """Take back the lease and let another agent have the task."""
    assert reclaim_expired_leases() == 1
    claim(task, agent)


def test_result_after_the_lease_was_taken_back_names_the_new_holder_and_is_kept(
    late: tuple[Task, Agent, Hold],
) -> None:
    task, agent, hold = late
    other = new_agent("next")
    _, rival = race(
        lambda: reclaim_and_give(task, other),
        lambda: submit_result(hold=hold, document=RESULT, actor=actor_of(agent)),
    )
    with pytest.raises(LeaseLost) as refused:
        rival.result()
    assert refused.value.code == "lease_lost"
    assert refused.value.extra["holder"] == "next"
    assert leases_of(task) == ["next"]
    kept = task.outputs.get()
    assert (kept.is_orphan, kept.title, kept.assignment_id) == (True, "late work", None)


def test_output_after_the_lease_was_taken_back_is_kept_too(late: tuple[Task, Agent, Hold]) -> None:
    task, agent, _ = late
    other = new_agent("next")
    document = OutputInput(title="work", content="finished after all")
    _, rival = race(
        lambda: reclaim_and_give(task, other),
        lambda: add_task_output(
            task_id=task.pk,
            document=document,
            data=b"finished after all",
            agent=agent,
            actor=actor_of(agent),
        ),
    )
    with pytest.raises(LeaseLost) as refused:
        rival.result()
    assert refused.value.extra["holder"] == "next"
    assert task.outputs.get().is_orphan


def test_sweep_that_comes_after_the_result_takes_nothing_back(
    late: tuple[Task, Agent, Hold],
) -> None:
    task, agent, hold = late
    recorded, rival = race(
        lambda: submit_result(hold=hold, document=RESULT, actor=actor_of(agent)),
        reclaim_expired_leases,
    )
    assert not recorded.is_repeat
    assert rival.result() == 0
    assert fresh(task).status == TaskStatus.DONE
    assert fresh(task).tries == 0
    assert not task.outputs.filter(is_orphan=True).exists()


def test_claim_waits_for_a_pause_and_is_refused(project: Project) -> None:
    task, agent = direct_task(project), new_agent()
    _, rival = race(
        lambda: pause_project(project_id=project.pk, actor=SIR), lambda: claim(task, agent)
    )
    with pytest.raises(ProjectSuspended):
        rival.result()
    assert fresh(task).status == TaskStatus.PENDING


def test_claim_by_seat_waits_for_a_pause_and_takes_nothing(project: Project) -> None:
    task, agent = direct_task(project), new_agent()
    _, rival = race(
        lambda: pause_project(project_id=project.pk, actor=SIR),
        lambda: claim_for_agent(agent=agent, wish=EXECUTOR, actor=actor_of(agent)),
    )
    assert rival.result() is None
    assert fresh(task).status == TaskStatus.PENDING


def test_pause_waits_for_a_claim_and_stops_its_clock(project: Project) -> None:
    task, agent = direct_task(project), new_agent()
    held, rival = race(
        lambda: claim(task, agent), lambda: pause_project(project_id=project.pk, actor=SIR)
    )
    rival.result()
    held.refresh_from_db()
    assert held.is_clock_stopped
    assert held.lease_remaining_seconds is not None
    resume_project(project_id=project.pk, actor=SIR)
    held.refresh_from_db()
    assert not held.is_clock_stopped


def test_pause_and_the_last_hand_in_get_along_in_either_order(project: Project) -> None:
    root = started_plan(project, agent_step("1"))
    task, agent = child(root, "1"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    hand_in(task, agent)
    _, rival = race(
        lambda: pause_project(project_id=project.pk, actor=SIR),
        lambda: set_status(task, agent, "review"),
    )
    rival.result()
    assert fresh(task).status == TaskStatus.DONE
    assert fresh(root).project.status == "suspended"
    # Who saw the pause leaves the verdict to the resume (rule 8); who did not has given it.
    resume_project(project_id=project.pk, actor=SIR)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_steps_are_claimed_again_after_each_is_executed(project: Project) -> None:
    limited = new_project(policy={"limits": {"parallel_children": 1}})
    root = started_plan(limited, agent_step("1"), agent_step("2"))
    execute(child(root, "1"), new_agent())
    execute(child(root, "2"), new_agent())
    assert fresh(root).status == TaskStatus.DONE
