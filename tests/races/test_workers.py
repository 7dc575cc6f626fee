"""Our own workers in threads: slots never overbooked, every phase ends, nothing runs twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from functools import partial

import pytest
from django.db import connections

from orchestration.models import Artifact, Assignment, AuditEvent, Task
from orchestration.models.statements import running_children
from orchestration.services.sweeping import sweep
from orchestration.services.work import Slot
from orchestration.services.working import work_until_idle
from orchestration.states import AssignmentStatus, Seat, TaskStatus
from tests.effects import append, effect_lines, effects
from tests.factories import child, drive, fresh, new_project, step, submit_plan
from tests.races.contest import WAIT_SECONDS, on_both, rivals

pytestmark = on_both
THREADS = 4
SEED = 20


class Census(threading.Thread):
    """Count a plan's running steps again and again; each look is one consistent statement."""

    def __init__(self, root: Task) -> None:
        super().__init__()
        self.root = root
        self.most = 0
        self.looks = 0
        self.is_over = threading.Event()

    def run(self) -> None:
        """Look until told to stop."""
        while not self.is_over.is_set():
            self.most = max(self.most, running_children(self.root.pk))
            self.looks += 1
        connections.close_all()

    def __enter__(self) -> Census:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.is_over.set()
        self.join()


def assert_done(root: Task) -> None:
    """The root is done; else show what is not, and who was on it."""
    tree = Task.objects.filter(root=root) | Task.objects.filter(pk=root.pk)
    open_rows = [
        (row.step_key, row.status, [(one.seat, one.status, one.error) for one in seats])
        for row in tree.exclude(status=TaskStatus.DONE.value).order_by("pk")
        for seats in [row.assignments.order_by("pk")]
    ]
    assert open_rows == []


def work_together(root: Task, threads: int = THREADS) -> None:
    """Let some executor slots work, and look for work again, until a root has ended."""
    ends = time.monotonic() + WAIT_SECONDS * 3

    def work(slot: Slot) -> None:
        while fresh(root).status == TaskStatus.WORKING and time.monotonic() < ends:
            work_until_idle(slot, slice_seconds=60, project_id=root.project_id)

    with rivals(threads) as fire:
        fire(*[partial(work, Slot(f"thread:{n}")) for n in range(threads)])


@pytest.mark.parametrize(("limit", "threads"), [(1, 4), (2, 4), (10, 12)])
def test_running_steps_never_exceed_the_slots(limit: int, threads: int) -> None:
    project = new_project(policy={"limits": {"parallel_children": limit}})
    keys = [str(n) for n in range(3 * threads)]
    # A verify command keeps a step in review, where it holds no slot, while a worker judges it.
    root = submit_plan(project, *[step(key, run=["true"], verify=["true"]) for key in keys])
    with Census(root) as census:
        work_together(root, threads)
    assert_done(root)
    assert 0 < census.most <= limit
    assert census.looks > len(keys)


def test_c_55_phase_of_thirty_with_failures_and_retries_ends() -> None:
    project = new_project()
    failing = set(random.Random(SEED).sample(range(30), 12))
    first = [step(f"s{n}", run=append(f"s{n}", fails_first=n in failing)) for n in range(30)]
    root = submit_plan(project, *first, step("join", run=append("join"), phase=2))
    work_together(root)
    assert_done(root)
    assert effects(project) == Counter([f"s{n}" for n in range(30)] + ["join"])
    attempts = {row.step_key: row.attempt for row in root.children.all()}
    assert {key for key, attempt in attempts.items() if attempt == 2} == {f"s{n}" for n in failing}
    assert not set(Assignment.objects.values_list("status", flat=True)) - {"done", "failed"}
    assert sweep()["stranded"] == 0


def test_c_56_second_phase_starts_after_every_step_of_the_first_has_ended() -> None:
    project = new_project()
    root = submit_plan(
        project,
        *[step(f"s{n}", run=append(f"s{n}")) for n in range(8)],
        *[step(f"t{n}", run=append(f"t{n}"), phase=2) for n in range(4)],
    )
    work_together(root)
    assert_done(root)
    lines = effect_lines(project)
    assert {line[0] for line in lines[:8]} == {"s"}
    assert sorted(lines[8:]) == ["t0", "t1", "t2", "t3"]


def test_each_step_is_executed_and_locked_once() -> None:
    project = new_project()
    chain = [f"c{n}" for n in range(6)]
    steps = [step(key, run=append(key), after=chain[:n][-1:]) for n, key in enumerate(chain)]
    for key in (f"w{n}" for n in range(8)):
        made = f"sh -c 'echo made by {key} > {key}.txt'"
        steps.append(step(key, run=[*append(key), made], expected_artifacts=[f"{key}.txt"]))
    root = submit_plan(project, *steps)
    work_together(root)
    assert_done(root)
    assert set(effects(project).values()) == {1}
    for task in root.children.all():
        done = Assignment.objects.filter(task=task, seat=Seat.EXECUTOR.value)
        assert [row.status for row in done] == [AssignmentStatus.DONE]
        names = list(Artifact.objects.filter(task=task).values_list("name", flat=True))
        assert len(names) == len(set(names)) > 0
        moves = AuditEvent.objects.filter(task=task, kind="task.done")
        assert moves.count() == 1


def test_threads_that_find_one_step_run_it_once() -> None:
    project = new_project()
    root = submit_plan(project, step("only", run=append("only")))
    work_together(root)
    drive(project)
    assert effects(project) == {"only": 1}
    assert child(root, "only").status == TaskStatus.DONE
