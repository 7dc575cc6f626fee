"""A defect of a locked artifact outlives the attempt: its root waits for it, nothing is dropped."""

from __future__ import annotations

import pytest

from orchestration.models import (
    Artifact,
    AuditEvent,
    ControlCommand,
    Decision,
    Defect,
    Project,
    Task,
    ValidationPackage,
    Verification,
)
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.integrity import check_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import SYSTEM, Actor
from orchestration.states import LayerOutcome, Seat
from tests.api.callers import Caller, agent_client, human_client
from tests.archive.test_archive import read
from tests.archive.test_locked_defects import fix, locked, report
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
GO = {"verdict": "GO", "basis": "read it all"}


@pytest.fixture
def project() -> Project:
    return new_project("demo")


@pytest.fixture
def reviewer(project: Project) -> Caller:
    return agent_client(project, name="reviewer", scopes=("observe", "review"))


@pytest.fixture
def root(project: Project) -> Task:
    """1 made and locked a file; 2 is an agent's and has not begun."""
    made = submit_plan(
        project,
        step("1", run=["sh -c 'echo hello > made.txt'"], expected_artifacts=["made.txt"]),
        agent_step("2", after=["1"]),
    )
    drive(project)
    return made


def fix_of(shown: dict[str, str]) -> Task:
    return Task.objects.get(fixes_id=int(shown["id"]), run=[])


def commands(project: Project) -> list[str]:
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("next_action", flat=True))


def finish_steps(root: Task) -> None:
    """Let the agent's step be done, so that the root is through."""
    execute(child(root, "2"), new_agent(project=root.project))
    drive(root.project)


def fail_step(root: Task) -> None:
    """Let the agent's step fail until its root's attempt ends, and plan it again."""
    for _ in range(2):
        agent = new_agent(project=root.project)
        claim(child(root, "2"), agent)
        set_status(child(root, "2"), agent, "failed", detail="no")
        drive(root.project)


def test_a_root_waits_for_sir_about_what_it_locked_and_for_the_fix(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "medium").json()
    finish_steps(root)
    assert (fresh(root).status, fresh(root).awaits_verdict) == ("review", True)
    assert (sweep()["judged"], commands(project)) == (0, [])
    decide(open_decision_of(project, "medium_defect"), "approve")
    drive(project)
    assert fresh(root).status == "review"
    fix(project, fix_of(shown), "hello world\n")
    assert Defect.objects.get().status == "verified"
    assert (fresh(root).status, fresh(root).attempt) == ("done", 1)
    assert commands(project) == ["TERMINATE_SUCCESS"]
    assert check_project(project_id=project.pk, actor=SYSTEM, source="test").faults == ()


def test_a_posted_go_waits_for_the_end_of_what_is_asked(
    project: Project, reviewer: Caller, root: Task
) -> None:
    report(reviewer, locked(root), "medium")
    finish_steps(root)
    sir = human_client()
    answer = sir.send(f"/api/projects/demo/tasks/{root.pk}/validation", GO)
    assert (answer.status_code, answer.json()["next_action"]) == (201, None)
    assert answer.json()["validation"]["concluded_at"] is None
    assert (fresh(root).status, fresh(root).awaits_verdict) == ("review", True)
    decide(open_decision_of(project, "medium_defect"), "accept_as_is", reason="good enough")
    held = ValidationPackage.objects.get(task=root)
    assert (held.verdict, held.posted_by, held.concluded_at is None) == ("GO", "human:sir", False)
    assert (fresh(root).status, fresh(root).attempt) == ("done", 1)
    assert commands(project) == ["TERMINATE_SUCCESS"]


def test_a_validators_go_waits_too_and_is_weighed_when_it_counts() -> None:
    project = new_project("demo", policy={"seats": {"validator": ["external"]}})
    reviewer = agent_client(project, name="reviewer", scopes=("observe", "review"))
    root = submit_plan(project, step("1", run=["sh -c 'echo hello > made.txt'"],
                                     expected_artifacts=["made.txt"]))  # fmt: skip
    drive(project)
    report(reviewer, locked(root), "medium")
    judge = new_agent(project=project)
    held = claim_for_agent(agent=judge, wish=Wish([Seat.VALIDATOR]), actor=actor_of(judge))
    assert held is not None
    hold = Hold(held.pk, judge, held.lease_token)
    submit_result(hold=hold, document=GO, actor=actor_of(judge))
    assert (fresh(root).status, commands(project)) == ("review", [])
    done = child(root, "1")
    Verification.objects.create(
        task=done, attempt=1, layer="L3", name="true", outcome=LayerOutcome.FAILED.value
    )
    decide(open_decision_of(project, "medium_defect"), "accept_as_is", reason="good enough")
    rows = ValidationPackage.objects.filter(task=root).order_by("pk")
    assert [(one.verdict, one.claimed) for one in rows] == [("GO", ""), ("NO-GO", "GO")]
    assert {one.agent_id for one in rows} == {judge.pk}
    assert not rows.filter(concluded_at__isnull=True).exists()
    assert (fresh(root).status, commands(project)) == ("failed", ["RESTART_FROM_STEP_2"])


def test_a_go_that_waits_counts_no_more_once_another_verdict_came(
    project: Project, reviewer: Caller, root: Task
) -> None:
    report(reviewer, locked(root), "medium")
    finish_steps(root)
    sir = human_client()
    path = f"/api/projects/demo/tasks/{root.pk}/validation"
    assert sir.send(path, GO).status_code == 201
    no_go = {**GO, "verdict": "NO-GO", "root_cause": "it is slow", "failed_cases": ["TC-1"]}
    assert sir.send(path, no_go).json()["next_action"] == "RESTART_FROM_STEP_2"
    assert fresh(root).status == "failed"
    assert not ValidationPackage.objects.filter(concluded_at__isnull=True).exists()


@pytest.mark.parametrize("verdict", ["accept_as_is", "reject"])
def test_a_root_is_judged_once_sir_leaves_what_it_locked(
    project: Project, reviewer: Caller, root: Task, verdict: str
) -> None:
    report(reviewer, locked(root), "medium")
    finish_steps(root)
    decide(open_decision_of(project, "medium_defect"), verdict, reason="good enough")
    assert (fresh(root).status, fresh(root).attempt) == ("done", 1)


def test_a_root_is_judged_once_the_fix_of_what_it_locked_is_cancelled(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "high").json()
    finish_steps(root)
    assert fresh(root).status == "review"
    cancel_task(task_id=fix_of(shown).pk, actor=SIR, reason="not worth it")
    assert Defect.objects.get().status == "void"
    assert fresh(root).status == "done"
    assert Project.objects.get(pk=project.pk).status == "completed"


def test_a_waived_fix_ends_its_defect_and_its_root_is_judged() -> None:
    project = new_project("demo", policy={"thresholds": {"max_retries": 1}})
    reviewer = agent_client(project, name="reviewer", scopes=("observe", "review"))
    root = submit_plan(project, step("1", run=["sh -c 'echo hello > made.txt'"],
                                     expected_artifacts=["made.txt"]), agent_step("2"))  # fmt: skip
    drive(project)
    shown = report(reviewer, locked(root), "high").json()
    finish_steps(root)
    agent = new_agent(project=project)
    claim(fix_of(shown), agent)
    set_status(fix_of(shown), agent, "failed", detail="no")
    assert fresh(fix_of(shown)).status == "fatal"
    decide(open_decision_of(project, "max_retries"), "waive", reason="it will do")
    assert (fresh(fix_of(shown)).status, Defect.objects.get().status) == ("done", "void")
    assert fresh(root).status == "done"
    assert Project.objects.get(pk=project.pk).status == "completed"


def test_the_end_of_an_attempt_drops_no_defect_of_what_was_locked(
    project: Project, reviewer: Caller, root: Task
) -> None:
    asked = report(reviewer, locked(root), "medium").json()
    shown = report(reviewer, locked(root), "high").json()
    fail_step(root)
    assert fresh(root).attempt == 2
    states = Defect.objects.order_by("pk").values_list("status", flat=True)
    assert list(states) == ["awaiting_sir", "fixing"]
    assert open_decision_of(project, "medium_defect").defect_id == int(asked["id"])
    fix(project, fix_of(shown), "hello world\n")
    assert fresh(fix_of(shown)).status == "done"
    assert locked(root).version == 2


def test_a_cancelled_root_takes_the_fixes_of_what_it_locked_with_it(
    project: Project, reviewer: Caller, root: Task
) -> None:
    report(reviewer, locked(root), "medium")
    shown = report(reviewer, locked(root), "high").json()
    claim(fix_of(shown), new_agent(project=project))
    cancel_task(task_id=root.pk, actor=SIR, reason="enough")
    assert set(Defect.objects.values_list("status", flat=True)) == {"void"}
    assert fresh(fix_of(shown)).status == "cancelled"
    asked = Decision.objects.filter(project=project, kind="medium_defect")
    assert [one.status for one in asked] == ["withdrawn"]
    assert check_project(project_id=project.pk, actor=SYSTEM, source="test").faults == ()


def test_a_fix_whose_defect_has_ended_locks_nothing_and_is_done(
    project: Project, reviewer: Caller, root: Task
) -> None:
    shown = report(reviewer, locked(root), "high").json()
    Defect.objects.update(status="void")
    fix(project, fix_of(shown), "hello world\n")
    assert fresh(fix_of(shown)).status == "done"
    assert Artifact.objects.filter(name="made.txt").count() == 1
    assert AuditEvent.objects.filter(kind="fix.unneeded").count() == 1
    finish_steps(root)
    document, _ = read(root)
    assert [(one.status, one.outcome) for one in document.audit.findings] == [("FIXED", "void")]


def test_c_44_a_fix_inherits_the_count_of_what_it_fixes(
    project: Project, reviewer: Caller, root: Task
) -> None:
    fail_step(root)
    assert fresh(root).failure_count == 1
    shown = report(reviewer, locked(root), "high").json()
    for _ in range(2):
        agent = new_agent(project=project)
        claim(fix_of(shown), agent)
        set_status(fix_of(shown), agent, "failed", detail="no")
        drive(project)
    found = fresh(fix_of(shown))
    assert (found.status, found.failure_count) == ("fatal", 3)
    assert open_decision_of(project, "max_retries").task_id == found.pk
    assert Project.objects.get(pk=project.pk).status == "suspended"
