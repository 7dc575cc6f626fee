"""A-50: one worker process plans again and again; nothing of an earlier job is in the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from orchestration.jobs import work_job
from orchestration.models import Assignment, Task
from orchestration.services.intake import NewTask, create_task
from tests.factories import new_project
from tests.races.contest import SIR, in_own_connection, on_both

pytestmark = on_both
TIMES = 20
TEXT = "1. look at the pages\n2. write the list"


def test_a_50_the_planner_runs_twenty_times_in_one_worker() -> None:
    project = new_project(policy={"limits": {"concurrent_roots": TIMES}})

    def plan() -> str:
        new = NewTask(text=TEXT, route="three_step")
        made = create_task(project_id=project.pk, new=new, actor=SIR)
        work_job.apply(throw=True)
        return str(Task.objects.get(pk=made.pk).status)

    with ThreadPoolExecutor(1) as worker:
        jobs = [worker.submit(plan) for _ in range(TIMES)]
        assert [one.result() for one in jobs] == ["working"] * TIMES
        worker.submit(in_own_connection, lambda: None).result()
    rows = Assignment.objects.filter(task__project=project, seat="planner")
    assert list(rows.values_list("status", flat=True)) == ["done"] * TIMES
