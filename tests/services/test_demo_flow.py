"""A plan from submission to done: parallel steps, a Medium defect and its four verdicts."""

from __future__ import annotations

import pytest

from orchestration.errors import AlreadyDecided, Invalid, Stale
from orchestration.models import Artifact, ArtifactRead, AuditEvent, Decision, Project, Task
from orchestration.services.audit import seal_events, verify_chain
from orchestration.services.decisions import Verdict, decide_decision
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
from tests.factories import (
    child,
    decide,
    drive,
    fresh,
    new_project,
    new_sir,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db

FIX = {"description": "make the file", "commands": ["touch missing.txt"]}


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def root(project: Project) -> Task:
    """A plan whose second step fails until its fix has run."""
    return submit_plan(
        project,
        step("1", run=["touch made.txt"], expected_artifacts=["made.txt"]),
        step(
            "2",
            run=["ls missing.txt"],
            after=["1"],
            on_failure={"severity": "medium", "fix": FIX},
        ),
        step("3", after=["2"]),
    )


def test_empty_artifact_is_unusable_and_uses_up_the_tries(project: Project, root: Task) -> None:
    drive(project)
    assert child(root, "1").failure_context[0]["class"] == "check_failed"


@pytest.fixture
def waiting(project: Project) -> Task:
    root = submit_plan(
        project,
        step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
        step(
            "2",
            run=["ls missing.txt"],
            after=["1"],
            on_failure={"severity": "medium", "fix": FIX},
        ),
        step("3", after=["2"]),
    )
    drive(project)
    return root


def test_medium_defect_waits_for_sir_and_holds_what_is_behind_it(
    project: Project, waiting: Task
) -> None:
    assert child(waiting, "1").status == TaskStatus.DONE
    assert child(waiting, "2").status == TaskStatus.REVIEW
    assert child(waiting, "3").status == TaskStatus.PENDING
    decision = open_decision_of(project)
    assert decision.kind == "medium_defect"
    assert decision.content["evidence"]["exit_code"] == 2
    assert decision.content["fix"]["description"] == "make the file"


def test_approve_applies_the_fix_reruns_and_finishes(project: Project, waiting: Task) -> None:
    decide(open_decision_of(project), "approve")
    drive(project)
    assert fresh(waiting).status == TaskStatus.DONE
    assert fresh(waiting).project.status == "completed"
    step2 = child(waiting, "2")
    assert step2.defects.get().status == "verified"
    assert step2.fix_round == 1
    assert step2.reviews.count() == 2
    seal_events()
    assert verify_chain()[1] is None


def test_accept_as_is_locks_with_a_named_exception(project: Project, waiting: Task) -> None:
    decide(open_decision_of(project), "accept_as_is", reason="known, harmless")
    drive(project)
    assert fresh(waiting).status == TaskStatus.DONE
    note = Artifact.objects.get(task=child(waiting, "2")).exception_note
    assert note.startswith("medium: do 2")


def test_reject_fails_the_step_and_replans_then_refuses_the_same_fix(
    project: Project, waiting: Task
) -> None:
    decide(open_decision_of(project), "reject", reason="not like this")
    drive(project)
    root = fresh(waiting)
    assert root.status == TaskStatus.FATAL
    assert root.failure_count == 3
    assert root.project.status == "suspended"
    assert open_decision_of(project).kind == "max_retries"
    assert Task.objects.filter(parent=waiting, step_key="1").count() == 1


def test_request_changes_goes_to_the_fixer_and_comes_back_as_a_new_item(
    project: Project, waiting: Task
) -> None:
    first = open_decision_of(project)
    decide(first, "request_changes", reason="do not touch that file")
    drive(project)
    queued = child(waiting, "2").assignments.get(seat="fixer")
    assert queued.backend == "external"
    assert queued.input["guidance"] == "do not touch that file"
    assert not Decision.objects.filter(project=project, status="open").exists()


def test_the_second_verdict_learns_who_won_and_an_identical_repeat_succeeds(
    project: Project, waiting: Task
) -> None:
    decision = open_decision_of(project)
    assert not decide(decision, "approve").is_repeat
    assert decide(decision, "approve").is_repeat
    with pytest.raises(AlreadyDecided) as refused:
        decide(decision, "reject", reason="no")
    assert refused.value.extra["standing"]["verdict"] == "approve"
    assert AuditEvent.objects.filter(kind="decision.decided", project=project).count() == 1


def test_an_old_digest_is_stale_and_writes_nothing(project: Project, waiting: Task) -> None:
    decision = open_decision_of(project)
    sir = new_sir()
    with pytest.raises(Stale):
        decide_decision(
            decision_id=decision.pk,
            verdict=Verdict("approve", decision.version, "0" * 64),
            actor=Actor("human:sir"),
            user_id=sir.pk,
        )
    decision.refresh_from_db()
    assert decision.status == "open"


def test_a_reason_is_required_for_everything_but_a_clean_yes(
    project: Project, waiting: Task
) -> None:
    for verdict in ("request_changes", "accept_as_is", "reject"):
        with pytest.raises(Invalid, match="needs a reason"):
            decide(open_decision_of(project), verdict)


def test_steps_read_locked_artifacts_of_what_they_depend_on(
    project: Project, waiting: Task
) -> None:
    reads = ArtifactRead.objects.filter(task=child(waiting, "2"))
    assert {read.artifact.name for read in reads} == {"made.txt", "Run record"}
