"""What grows with a project: the loop's decision after one verdict, and the integrity check.

`python -m tests.bench.loop_growth ROOTS` prints JSON. `decisions`: milliseconds, one a GO, from the
lock of the root to the commit that holds package, control command and the start of the next root.
`restarts`: the same for a posted NO-GO, from its package to the commit of the re-plan.
`check`: seconds of one integrity check of the whole project. One root in a hundred is planned: its
three steps are done, with their edges, seals and locked artifacts; one in ten waits for another.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.core.management import call_command

from orchestration.contracts.validation import parse_package
from orchestration.models import ControlCommand, Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.importing import import_master_list
from orchestration.services.intake import NewTask, create_task
from orchestration.services.integrity import check_project
from orchestration.services.judging import judge_again
from orchestration.services.loop import replan_due_roots
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.validation import Posted, post_package
from orchestration.services.work import SYSTEM, Actor
from tests import factories

VERDICTS = 15
NO_GO = {
    "verdict": "NO-GO", "at": "2026-01-01T00:00:00Z", "basis": "the tests", "summary": [],
    "root_cause": "it does not do what it should", "failure_class": "check_failed",
}  # fmt: skip
AT_ONCE = 2_500


def main(roots: int) -> int:
    """Build the project, let verdicts wait while it is paused, and time each one."""
    call_command("migrate", interactive=False, verbosity=0)
    project = factories.new_project(policy={"limits": {"concurrent_roots": 2 * VERDICTS}})
    taken, restarted = decisions(project, roots)
    measured = {"decisions": taken, "restarts": restarted, "check": check(project)}
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


def decisions(project: Project, roots: int) -> tuple[list[float], list[float]]:
    """Time the verdicts. Shape: those of GO, those of NO-GO. Units: milliseconds."""
    sir = Actor("human:sir")
    agent = factories.new_agent()
    _planned_roots(project, roots // 100)
    judged = [_light_root(project, number) for number in range(2 * VERDICTS)]
    for task in judged:
        factories.claim(task, agent)
        factories.start(task, agent)
    pause_project(project_id=project.pk, actor=sir)
    for task in judged:
        factories.hand_in(task, agent)
        factories.set_status(task, agent, "review")
    factories.drive(project)
    for first in range(0, roots, AT_ONCE):
        entries = {f"root-{n}": _entry(n) for n in range(first, min(first + AT_ONCE, roots))}
        import_master_list(project_id=project.pk, document=entries, actor=sir)
    # Resuming would judge them all at once; each is timed by itself.
    Task.objects.filter(pk__in=[one.pk for one in judged]).update(awaits_verdict=False)
    resume_project(project_id=project.pk, actor=sir)
    Task.objects.filter(pk__in=[one.pk for one in judged]).update(awaits_verdict=True)
    # What the work left to seal is sealed within half a second of it.
    seal_events()
    good, bad = judged[:VERDICTS], judged[VERDICTS:]
    known = ControlCommand.objects.filter(project=project).count()
    took = [_timed(partial(_pass, task)) for task in good]
    restarted = [_timed(partial(_restart, task)) for task in bad]
    _require_decided(project, judged, known)
    return took, restarted


def _timed(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def _pass(task: Task) -> None:
    if not judge_again(task.pk):
        raise RuntimeError(f"{task} was not waiting for its verdict")


def _restart(task: Task) -> None:
    """Post a NO-GO and let its re-plan begin."""
    posted = Posted(package=parse_package(NO_GO), is_loop_state=True)
    judged = post_package(task_id=task.pk, posted=posted, actor=Actor("human:sir"))
    if judged.command is None or replan_due_roots(task.project_id) != 1:
        raise RuntimeError(f"{task} was not planned again")


def _require_decided(project: Project, judged: Sequence[Task], known: int) -> None:
    """Require that each verdict was acted on, and that none stopped the project."""
    project.refresh_from_db()
    rows = Task.objects.filter(pk__in=[one.pk for one in judged])
    done, again = rows.filter(status="done").count(), rows.filter(attempt=2).count()
    commands = ControlCommand.objects.filter(project=project).count() - known
    if (project.status, done, again, commands) != ("active", VERDICTS, VERDICTS, 2 * VERDICTS):
        told = f"{done} done, {again} again, {commands} commands"
        raise RuntimeError(f"project {project.status}, {told}")


def _planned_roots(project: Project, count: int) -> None:
    """Plan and do some roots of three steps; each step locks what it made."""
    steps = [factories.step("1"), *(factories.step(k, after=[b]) for k, b in ("21", "32"))]
    roots = [factories.submit_plan(project, *steps, text=f"planned {n}") for n in range(count)]
    factories.drive(project)
    done = Task.objects.filter(pk__in=[one.pk for one in roots], status="done").count()
    if done != count:
        raise RuntimeError(f"{done} of {count} planned roots are done")


def _entry(number: int) -> dict[str, Any]:
    """One imported root; one in ten waits for the one before it."""
    entry: dict[str, Any] = {"status": "PENDING", "title": f"root {number}"}
    return entry | ({"depends_on": [f"root-{number - 1}"]} if number % 10 == 9 else {})


def _light_root(project: Project, number: int) -> Task:
    new = NewTask(text=f"judge {number}", external_key=f"judged-{number}", route="light_plan")
    return create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
