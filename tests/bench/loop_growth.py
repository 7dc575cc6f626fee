"""What grows with a project: the loop's decision after one verdict, and the integrity check.

`python -m tests.bench.loop_growth ROOTS` prints JSON. `decisions`: milliseconds, one a verdict,
from the lock of the root to the commit that holds package, control command and the start of the
next root. `check`: seconds of one integrity check of the whole project.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.core.management import call_command

from orchestration.models import ControlCommand, Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.importing import import_master_list
from orchestration.services.intake import NewTask, create_task
from orchestration.services.integrity import check_project
from orchestration.services.judging import judge_again
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.work import SYSTEM, Actor
from tests import factories

VERDICTS = 15
AT_ONCE = 2_500


def main(roots: int) -> int:
    """Build the project, let verdicts wait while it is paused, and time each one."""
    call_command("migrate", interactive=False, verbosity=0)
    project = factories.new_project(policy={"limits": {"concurrent_roots": VERDICTS}})
    measured = {"decisions": decisions(project, roots), "check": check(project)}
    sys.stdout.write(json.dumps(measured) + "\n")
    return 0


def check(project: Project) -> float:
    """Time one check that finds nothing. Units: seconds."""
    seal_events()
    began = time.perf_counter()
    checked = check_project(project_id=project.pk, actor=SYSTEM, source="bench")
    took = time.perf_counter() - began
    if checked.faults:
        raise RuntimeError(f"the project is not whole: {checked.faults[:3]}")
    return took


def decisions(project: Project, roots: int) -> list[float]:
    """Time the verdicts. Units: milliseconds."""
    sir = Actor("human:sir")
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
    for first in range(0, roots, AT_ONCE):
        entries = {
            f"root-{first + n}": {"status": "PENDING", "title": f"root {first + n}"}
            for n in range(min(AT_ONCE, roots - first))
        }
        import_master_list(project_id=project.pk, document=entries, actor=sir)
    # Resuming would judge them all at once; each is timed by itself.
    Task.objects.filter(pk__in=[one.pk for one in judged]).update(awaits_verdict=False)
    resume_project(project_id=project.pk, actor=sir)
    Task.objects.filter(pk__in=[one.pk for one in judged]).update(awaits_verdict=True)
    took = []
    for task in judged:
        began = time.perf_counter()
        if not judge_again(task.pk):
            raise RuntimeError(f"{task} was not waiting for its verdict")
        took.append((time.perf_counter() - began) * 1000)
    _require_decided(project, judged)
    return took


def _require_decided(project: Project, judged: Sequence[Task]) -> None:
    """Require that each verdict was acted on, and that none stopped the project."""
    project.refresh_from_db()
    done = Task.objects.filter(pk__in=[one.pk for one in judged], status="done").count()
    commands = ControlCommand.objects.filter(project=project).count()
    if (project.status, done, commands) != ("active", VERDICTS, VERDICTS):
        raise RuntimeError(f"project {project.status}, {done} done, {commands} commands")


def _light_root(project: Project, number: int) -> Task:
    new = NewTask(text=f"judge {number}", external_key=f"judged-{number}", route="light_plan")
    return create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
