"""A whole project with everything that goes wrong: the loop is right, and the judge can say no."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from orchestration.models import ControlCommand, Project
from orchestration.services.intake import NewTask, create_tasks
from orchestration.services.work import Actor
from orchestration.simulation.play import Result, simulate
from orchestration.simulation.script import ProjectScript, Rates, write_script
from tests.deployment.processes import ROOT, command_environment
from tests.factories import claim, drive, execute, fresh, new_agent, new_project
from tests.services_up import PostgresServer, RedisServer

HARD = Rates(
    fail=0.35, slow=0.2, timeouts=0.2, contradictions=0.2, kill_workers=0.2, handoffs=0.2,
    questions=0.2,
)  # fmt: skip
SIR = Actor("human:sir")


def problems(result: Result) -> list[str]:
    """Everything that was off."""
    wrong = [problem for part in result.score.parts for problem in part.wrong]
    return [*wrong, *result.broken]


def told(project: Project) -> list[Any]:
    """What the loop commanded, in order, without what is numbered by the database."""
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return [
        (one.next_action, (one.context_for_step_2 or {}).get("task_to_process")) for one in rows
    ]


@pytest.mark.django_db(transaction=True)
def test_loop_is_right_about_a_project_in_which_everything_goes_wrong() -> None:
    result = simulate(write_script(16, 5, HARD), slug="simulation-hard")
    assert problems(result) == []
    assert result.is_clean
    assert result.score.commands.checked > 10
    assert result.score.contexts.checked > 5
    assert result.deaths > 0


@pytest.mark.django_db(transaction=True)
def test_same_seed_plays_the_same_run() -> None:
    script = write_script(6, 3, Rates())
    runs = [simulate(script, slug=f"simulation-{n}") for n in (1, 2)]
    assert [problems(one) for one in runs] == [[], []]
    assert runs[0].acts == runs[1].acts
    assert told(runs[0].project) == told(runs[1].project)


@pytest.mark.django_db(transaction=True)
def test_judge_says_no_where_the_loop_did_not_do_what_was_written() -> None:
    script = write_script(8, 2, Rates(fail=0.5))
    failing = next(one for one in script.roots.values() if one.failures and one.is_planned)
    believed = ProjectScript(
        script.seed, {**script.roots, failing.key: replace(failing, failures=(), sir=None)}
    )
    result = simulate(script, slug="simulation-judged", judge=believed)
    assert not result.is_clean
    assert any(
        f"{failing.key}: NO-GO, scripted was the opposite" in one for one in problems(result)
    )
    assert result.score.total < 100


@pytest.mark.django_db(transaction=True)
def test_command_prints_the_score_of_the_source() -> None:
    out = io.StringIO()
    call_command(
        "simulate", tasks=4, seed=1, fail=0.3, stdout=out, among_others=True, verbosity=0,
    )  # fmt: skip
    said = out.getvalue()
    assert re.search(r"control commands +50 % +100\.00 of 100", said)
    assert re.search(r"master list +30 % +100\.00 of 100", said)
    assert "contexts           20 %" in said
    assert "Every invariant holds." in said


@pytest.mark.django_db
def test_command_refuses_a_database_that_holds_other_projects() -> None:
    new_project("precious")
    with pytest.raises(CommandError, match="other projects \\(precious\\)"):
        call_command("simulate", tasks=2)
    assert Project.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tasks": 0}, "at least 1"),
        ({"tasks": 1, "fail": 1.0}, "share"),
        ({"tasks": 1, "slow": -0.1}, "share"),
    ],
)
def test_command_refuses_what_makes_no_project(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("simulate", **options)


@pytest.mark.django_db
def test_command_after_go_names_the_root_that_was_sent_to_planning() -> None:
    """Small work in somebody's hands, higher on the list, does not hide it."""
    project = new_project()
    rows = [
        NewTask(text="打开首页", external_key="small", route="direct"),
        NewTask(text="look it up", external_key="light", route="light_plan"),
        NewTask(text="the big one", external_key="big", route="three_step", depends_on=("light",)),
    ]
    small, light, big = create_tasks(project_id=project.pk, rows=rows, actor=SIR)
    claim(small, new_agent())
    execute(light, new_agent())
    drive(project)
    assert fresh(big).status == "working"
    command = ControlCommand.objects.get(project=project)
    assert command.next_action == "PROCEED_TO_NEXT_TASK"
    assert command.context_for_step_2 is not None
    assert command.context_for_step_2["task_to_process"] == "big"


@pytest.mark.faults
def test_killed_worker_processes_do_no_harm(
    private_postgres: PostgresServer, private_redis: RedisServer, tmp_path: Path
) -> None:
    """Scaled out: two workers, of which some die by SIGKILL over the check of a step."""
    environment = {
        "DATABASE_URL": private_postgres.create_database("simulated"),
        "REDIS_URL": f"{private_redis.url}/0",
    }
    arguments = ["--tasks", "10", "--seed", "4", "--processes", "2", "--kill-workers", "0.4"]
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "manage.py", "simulate", *arguments],
        cwd=ROOT,
        env=command_environment(tmp_path / "data", environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every invariant holds." in done.stdout
    deaths = re.search(r"(\d+) dead workers", done.stdout)
    assert deaths is not None
    assert json.loads(deaths[1]) > 0
