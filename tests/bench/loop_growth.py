"""How long the loop takes to decide after one verdict, in a project of so many roots.

`python -m tests.bench.loop_growth ROOTS` prints milliseconds as JSON: one a verdict, from the lock
of the root to the commit that holds package, control command and the start of the next root.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.core.management import call_command

from orchestration.models import Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.judging import judge_again
from orchestration.services.projects import pause_project
from orchestration.services.work import Actor
from tests import factories

VERDICTS = 15


def main(roots: int) -> int:
    """Build the project, let verdicts wait while it is paused, and time each one."""
    call_command("migrate", interactive=False, verbosity=0)
    sys.stdout.write(json.dumps(decisions(roots)) + "\n")
    return 0


def decisions(roots: int) -> list[float]:
    """Time the verdicts. Units: milliseconds."""
    sir = Actor("human:sir")
    project = factories.new_project(policy={"limits": {"concurrent_roots": VERDICTS}})
    agent = factories.new_agent()
    judged = [_light_root(project, number) for number in range(VERDICTS)]
    for task in judged:
        factories.claim(task, agent)
        factories.start(task, agent)
    pause_project(project_id=project.pk, actor=sir)
    for task in judged:
        factories.hand_in(task, agent)
        factories.set_status(task, agent, "review")
    factories.drive(project)
    Task.objects.bulk_create(
        [
            Task(
                project=project, number=VERDICTS + n, title=f"root {n}", description=f"root {n}",
                external_key=f"root-{n}", rank=VERDICTS + n, route="three_step",
                complexity="high", is_planned=True, is_assessed=True,
            )
            for n in range(1, roots + 1)
        ],
        batch_size=500,
    )  # fmt: skip
    # Resuming would judge them all at once; each is timed by itself.
    Project.objects.filter(pk=project.pk).update(status="active", task_sequence=VERDICTS + roots)
    took = []
    for task in judged:
        began = time.perf_counter()
        if not judge_again(task.pk):
            raise RuntimeError(f"{task} was not waiting for its verdict")
        took.append((time.perf_counter() - began) * 1000)
    return took


def _light_root(project: Project, number: int) -> Task:
    new = NewTask(text=f"judge {number}", external_key=f"judged-{number}", route="light_plan")
    return create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
