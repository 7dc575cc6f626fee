"""Play a whole simulated project and judge it: set-up, run, records, invariants, score."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User

from orchestration.models import Project
from orchestration.services.intake import NewTask, create_tasks
from orchestration.services.projects import create_project
from orchestration.services.work import SYSTEM
from orchestration.simulation.cast import new_player
from orchestration.simulation.crew import Crew, OwnThread
from orchestration.simulation.director import Director
from orchestration.simulation.invariants import broken_invariants
from orchestration.simulation.oracle import Oracle
from orchestration.simulation.records import Watcher
from orchestration.simulation.score import Score
from orchestration.simulation.script import Kind, ProjectScript

EXECUTORS = 4
BATCH = 100
SIR = "simulated-sir"
POLICY = {
    "seats": {
        "planner": ["external"],
        "executor": ["external"],
        "fixer": ["external"],
    },
    "limits": {"concurrent_roots": 1},
}
"""Agents plan, execute and fix; auditing, QA and validation stay with the rules."""
ROUTES = {
    Kind.THREE_STEP: "three_step",
    Kind.NESTED: "three_step",
    Kind.LIGHT: "light_plan",
    Kind.DIRECT: "direct",
    Kind.SPAWNING: "direct",
}


@dataclass(frozen=True, slots=True)
class Result:
    """How a simulation ended. Units: seconds of the wall clock."""

    project: Project
    score: Score
    broken: list[str]
    acts: int
    deaths: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether every command was right, and nothing is off."""
        return not self.broken and self.score.total == 100


def simulate(
    script: ProjectScript,
    *,
    slug: str,
    hire: Callable[[Project], Crew] = OwnThread,
    judge: ProjectScript | None = None,
) -> Result:
    """Play a script in a project of its own and judge what the engine made of it.

    Shape: `judge` is what the oracle believes was written; by default what is played.
    Errors: Broken when the engine accepts what it must refuse; Conflict when the slug is taken.
    """
    began = time.monotonic()
    project = create_project(slug=slug, name="Simulation", actor=SYSTEM, policy=POLICY)
    oracle = Oracle(judge or script)
    watcher = Watcher(project, oracle)
    director = Director(
        script=script,
        project=project,
        planner=new_player(project, "planner"),
        fixer=new_player(project, "fixer"),
        executors=[new_player(project, f"executor-{n}") for n in range(1, EXECUTORS + 1)],
        sir=_sir(),
        crew=hire(project),
        after_act=watcher.look,
        on_plan=watcher.planning,
        on_sir=watcher.decided,
    )
    try:
        _submit(project, script)
        director.crew.drive()
        director.play()
    finally:
        director.crew.close()
    watcher.look()
    broken = [*watcher.broken, *broken_invariants(project, oracle.script, oracle)]
    return Result(
        project=project,
        score=watcher.score(),
        broken=broken,
        acts=director.acts,
        deaths=director.crew.deaths,
        seconds=time.monotonic() - began,
    )


def _sir() -> User:
    user, _ = get_user_model().objects.get_or_create(username=SIR)
    user.groups.add(Group.objects.get_or_create(name="sir")[0])
    return user


def _submit(project: Project, script: ProjectScript) -> None:
    """Put the whole master list up, in batches."""
    rows = [
        NewTask(
            text=f"{root.kind} work of {root.key}",
            title=root.key,
            external_key=root.key,
            depends_on=root.after,
            route=ROUTES[root.kind],
            spec_id=f"SPEC-{root.rank}",
            rank=root.rank,
        )
        for root in script.roots.values()
    ]
    for start in range(0, len(rows), BATCH):
        create_tasks(project_id=project.pk, rows=rows[start : start + BATCH], actor=SYSTEM)
