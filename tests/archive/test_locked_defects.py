"""Locked means locked: a defect of a locked artifact makes a new version; who read the old one is
verified again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.models import Agent, Artifact, Defect, Project, StaleConsumer, Task
from orchestration.services.integrity import check_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import add_task_comment, add_task_output
from orchestration.services.work import SYSTEM
from orchestration.states import CommentType
from tests.api.callers import Caller, agent_client, human_client, problem
from tests.factories import (
    actor_of,
    child,
    claim,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project("demo", policy={"commands": {"allow": [["grep"]]}})


@pytest.fixture
def reviewer(project: Project) -> Caller:
    return agent_client(project, name="reviewer", scopes=("observe", "review"))


@pytest.fixture
def root(project: Project) -> Task:
    """1 makes a file; 2 reads it and has a check; 3 reads it and has none; all is done."""
    made = submit_plan(
        project,
        step("1", run=["sh -c 'echo hello > made.txt'"], expected_artifacts=["made.txt"]),
        step("2", run=["cp made.txt copy.txt"], after=["1"], expected_artifacts=["copy.txt"],
             verify=["grep -q hello made.txt"]),
        step("3", after=["1"]),
    )  # fmt: skip
    drive(project)
    assert fresh(made).status == "done"
    return made


def locked(root: Task, key: str = "1", name: str = "made.txt") -> Artifact:
    """The newest version of an artifact."""
    rows = Artifact.objects.filter(task=child(root, key), name=name).order_by("version")
    found = rows.last()
    assert found is not None
    return found


def report(caller: Caller, artifact: Artifact, severity: str, **rest: Any) -> Any:
    path = f"/api/projects/demo/artifacts/{artifact.pk}/defects"
    return caller.send(path, {"severity": severity, "title": "it greets nobody", **rest})


def fix(project: Project, task: Task, text: str) -> None:
    """Fix the file as an agent, and hand it in."""
    agent = new_agent(project=project)
    claim(task, agent)
    set_status(task, agent, "working")
    (Path(project.workspace) / "made.txt").write_text(text)
    hand_in_path(task, agent)
    set_status(task, agent, "review")
    drive(project)


def hand_in_path(task: Task, agent: Agent) -> None:
    """Hand in the file of the workspace, with a hand-off."""
    data = (Path(task.project.workspace) / "made.txt").read_bytes()
    document = OutputInput(title="made.txt", path="made.txt")
    add_task_output(task_id=task.pk, document=document, data=data, agent=agent,
                    actor=actor_of(agent))  # fmt: skip
    comment = CommentInput(comment_type=CommentType.HANDOFF, body="fixed")
    add_task_comment(task_id=task.pk, document=comment, agent=agent, actor=actor_of(agent))


def test_a_critical_defect_makes_a_new_version_and_verifies_its_readers_again(
    project: Project, reviewer: Caller, root: Task
) -> None:
    old = locked(root)
    answer = report(reviewer, old, "critical")
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert shown["status"] == "fixing"
    assert {one["step_key"]: one["effect"] for one in shown["impact"]} == {
        "2": "to_reverify", "3": "to_reverify",
    }  # fmt: skip
    assert "copy.txt v1" in next(o for o in shown["impact"] if o["step_key"] == "2")["artifacts"]
    assert fresh(root).project.status == "active"
    fix(project, Task.objects.get(pk=int(shown["fix_task"])), "hello world\n")
    new = locked(root)
    assert (new.version, new.task_id) == (2, old.task_id)
    assert bytes(new.content.data) == b"hello world\n"
    assert bytes(Artifact.objects.get(pk=old.pk).content.data) == b"hello\n"
    assert child(root, "1").status == "done"
    assert Defect.objects.get(pk=int(shown["id"])).status == "verified"
    states = dict(StaleConsumer.objects.values_list("task__step_key", "state"))
    assert states == {"2": "verified", "3": "unchecked"}
    assert open_decision_of(project, "high_notice").content["consumers"][0]["step_key"] == "3"
    assert Project.objects.get(pk=project.pk).status == "completed"
    found = check_project(project_id=project.pk, actor=SYSTEM, source="test")
    assert found.faults == ()


def test_a_reader_that_fails_with_the_new_version_has_a_defect_of_its_own(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "critical").json()
    fix(project, Task.objects.get(pk=int(shown["fix_task"])), "good bye\n")
    assert StaleConsumer.objects.get(task=child(root, "2")).state == "failed"
    follow = Defect.objects.get(task=child(root, "2"))
    assert (follow.severity, follow.status) == ("high", "fixing")
    assert follow.artifact is not None
    assert Task.objects.get(fixes=follow, run=[]).status == "pending"
    assert child(root, "2").status == "done"


def test_a_medium_defect_waits_for_sir_who_sees_its_reach(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "medium").json()
    assert (shown["status"], shown["fix_task"]) == ("awaiting_sir", None)
    sweep()
    item = open_decision_of(project, "medium_defect")
    assert {one["step_key"] for one in item.content["impact"]} == {"2", "3"}
    assert [one["verdict"] for one in item.options] == ["approve", "accept_as_is", "reject"]
    decide(item, "approve")
    made = Task.objects.get(fixes_id=int(shown["id"]))
    assert (made.status, made.route) == ("pending", "direct")
    assert Defect.objects.get(pk=int(shown["id"])).status == "fixing"


@pytest.mark.parametrize(
    ("verdict", "state"), [("accept_as_is", "accepted_as_is"), ("reject", "rejected")]
)
def test_sir_may_leave_it(
    project: Project, reviewer: Caller, root: Task, verdict: str, state: str
) -> None:
    report(reviewer, locked(root), "medium")
    decide(open_decision_of(project, "medium_defect"), verdict, reason="as it should be")
    assert Defect.objects.get().status == state
    assert not Task.objects.filter(fixes__isnull=False).exists()
    assert child(root, "1").status == "done"


def test_a_low_defect_is_accepted_or_fixed_as_its_reporter_says(
    project: Project, reviewer: Caller, root: Task
) -> None:
    assert report(reviewer, locked(root), "low").json()["status"] == "accepted_as_is"
    assert report(reviewer, locked(root), "low", low_defects="fix").json()["status"] == "fixing"


def test_the_same_bytes_are_no_fix(project: Project, reviewer: Caller, root: Task) -> None:
    shown = report(reviewer, locked(root), "critical").json()
    fix(project, Task.objects.get(pk=int(shown["fix_task"])), "hello\n")
    assert locked(root).version == 1
    assert Defect.objects.get(pk=int(shown["id"])).status == "fixing"
    assert fresh(Task.objects.get(pk=int(shown["fix_task"]))).status == "pending"


def test_a_cancelled_fix_leaves_the_version_as_it_is(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "critical").json()
    path = f"/api/projects/demo/tasks/{shown['fix_task']}/cancel"
    assert human_client().send(path, {"reason": "not worth it"}).status_code == 200
    assert Defect.objects.get(pk=int(shown["id"])).status == "void"
    assert Project.objects.get(pk=project.pk).status == "completed"


def test_only_the_newest_version_takes_a_defect(
    project: Project, reviewer: Caller, root: Task
) -> None:
    old = locked(root)
    shown = report(reviewer, old, "critical").json()
    fix(project, Task.objects.get(pk=int(shown["fix_task"])), "hello world\n")
    refused = problem(report(reviewer, old, "high"), 409, "version_replaced")
    assert refused["newest"] == str(locked(root).pk)


def test_who_may_report(project: Project, root: Task) -> None:
    artifact = locked(root)
    worker = agent_client(project, name="hand", scopes=("observe", "execute"))
    problem(report(worker, artifact, "low"), 403, "scope_missing")
    problem(report(human_client("eve", "viewer"), artifact, "low"), 403, "sir_only")
    stranger = agent_client(new_project("other"), name="stranger")
    assert report(stranger, artifact, "low").status_code == 404
    assert report(human_client(), artifact, "low").status_code == 201
    bad = report(human_client(), artifact, "awful")
    assert bad.status_code == 422
