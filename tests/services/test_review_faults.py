"""Faults of the review that were found once: what rules found is lost, files change, loops."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.errors import Conflict, MissingHandoff
from orchestration.models import Agent, Assignment, Decision, Project, Task
from orchestration.rules.diffs import parse_diff
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.intake import NewTask, create_task
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import add_task_comment, add_task_output
from orchestration.services.work import SYSTEM
from orchestration.services.working import work_until_idle
from orchestration.states import CommentType, Seat, TaskStatus
from tests.factories import (
    SLOT,
    actor_of,
    child,
    claim,
    decide,
    drive,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db

PASS = {"verdict": "pass", "artifact_digests": [], "defects": []}


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def judged() -> Project:
    """A project whose work an agent judges."""
    return new_project(policy={"seats": {"qa": ["external"]}})


def take(project: Project, seat: Seat) -> tuple[Assignment, Agent]:
    """Take the next assignment of a seat as a new agent."""
    agent = new_agent(project=project)
    held = claim_for_agent(agent=agent, wish=Wish([seat]), actor=actor_of(agent))
    assert held is not None
    return held, agent


def answer(project: Project, seat: Seat, document: dict[str, Any]) -> Assignment:
    """Take a seat's assignment, answer it, and let our workers go on."""
    held, agent = take(project, seat)
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=document, actor=actor_of(agent))
    drive(project)
    return held


def file_of(project: Project, name: str) -> Path:
    return Path(project.workspace) / name


def test_what_the_rules_found_stands_beside_an_agents_pass(judged: Project) -> None:
    root = submit_plan(judged, step("1", verify=["ls ok"]))
    drive(judged)
    held = answer(judged, Seat.QA, PASS)
    assert [one["source_key"] for one in held.input["findings"]] == ["verify:0"]
    task = child(root, "1")
    assert task.status == TaskStatus.REVIEW
    defect = task.defects.get()
    assert (defect.severity, defect.status, defect.raised_by) == ("high", "fixing", "rules")
    assert task.reviews.get().verdict == "fail"


def test_a_defect_of_the_rules_that_sir_accepts_locks_after_the_agents_review(
    judged: Project,
) -> None:
    on_failure = {"severity": "medium"}
    root = submit_plan(judged, step("1", run=["ls ok"], on_failure=on_failure))
    drive(judged)
    answer(judged, Seat.QA, PASS)
    decide(open_decision_of(judged), "accept_as_is", reason="known")
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "1").reviews.count() == 1


def test_a_low_finding_of_the_rules_does_not_spare_the_agents_review(judged: Project) -> None:
    root = submit_plan(judged, step("1", run=["ls ok"], on_failure={"severity": "low"}))
    drive(judged)
    assert child(root, "1").status == TaskStatus.REVIEW
    answer(judged, Seat.QA, PASS)
    task = child(root, "1")
    assert task.status == TaskStatus.DONE
    assert task.defects.get().status == "accepted_as_is"


def test_a_fix_of_what_rules_found_is_reviewed_by_an_agent_again(judged: Project) -> None:
    fix = {"description": "f", "commands": ["touch ok"]}
    on_failure = {"severity": "high", "fix": fix}
    root = submit_plan(judged, step("1", run=["ls ok"], on_failure=on_failure))
    drive(judged)
    answer(judged, Seat.QA, PASS)
    assert child(root, "1").defects.get().status == "fixed"
    answer(judged, Seat.QA, PASS)
    assert child(root, "1").defects.get().status == "verified"
    assert child(root, "1").status == TaskStatus.DONE


def test_sirs_word_on_a_seat_that_nobody_filled_is_no_review(judged: Project) -> None:
    root = submit_plan(judged, step("1", verify=["ls ok"]))
    drive(judged)
    for _ in range(3):
        held, _ = take(judged, Seat.QA)
        late = timezone.now() - timedelta(minutes=5)
        Assignment.objects.filter(pk=held.pk).update(lease_expires_at=late)
        sweep()
    decide(open_decision_of(judged, "waiting_human"), "approve")
    drive(judged)
    assert child(root, "1").status == TaskStatus.REVIEW
    answer(judged, Seat.QA, PASS)
    assert child(root, "1").defects.get().source_key == "verify:0"


def test_a_file_that_is_gone_at_the_lock_is_redone_once(project: Project) -> None:
    """It used to be read again at once, for ever."""
    run = ["sh -c 'echo hi > out.txt; false'"]
    on_failure = {"severity": "medium"}
    root = submit_plan(
        project, step("1", run=run, expected_artifacts=["out.txt"], on_failure=on_failure)
    )
    drive(project)
    file_of(project, "out.txt").unlink()
    decide(open_decision_of(project, "medium_defect"), "accept_as_is", reason="fine")
    assert work_until_idle(SLOT, slice_seconds=20, project_id=project.pk) < 10
    task = child(root, "1")
    assert (task.attempt, task.tries, task.status) == (2, 1, TaskStatus.REVIEW)
    assert "out.txt" in task.failure_context[0]["root_cause"]
    decide(open_decision_of(project, "medium_defect"), "accept_as_is", reason="fine")
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE


def test_what_changed_after_its_review_is_not_locked(judged: Project) -> None:
    run = ["sh -c 'echo good > out.txt'"]
    root = submit_plan(judged, step("1", run=run, expected_artifacts=["out.txt"]))
    drive(judged)
    held, agent = take(judged, Seat.QA)
    file_of(judged, "out.txt").write_text("evil")
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=PASS, actor=actor_of(agent))
    drive(judged)
    task = child(root, "1")
    assert not task.artifacts.exists()
    assert "changed since its review: out.txt" in task.failure_context[0]["root_cause"]
    answer(judged, Seat.QA, PASS)
    output = child(root, "1").outputs.filter(path="out.txt").latest("pk")
    assert child(root, "1").artifacts.get(name="out.txt").content_id == output.sha256


def test_what_changed_after_the_review_of_a_fix_is_not_locked(judged: Project) -> None:
    fix = {"description": "f", "commands": ["sh -c 'echo fixed > out.txt; touch ok'"]}
    on_failure = {"severity": "high", "fix": fix}
    run = ["sh -c 'test -e out.txt || echo first > out.txt; test -e ok'"]
    root = submit_plan(
        judged, step("1", run=run, expected_artifacts=["out.txt"], on_failure=on_failure)
    )
    drive(judged)
    answer(judged, Seat.QA, PASS)
    held, agent = take(judged, Seat.QA)
    file_of(judged, "out.txt").write_text("evil")
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=PASS, actor=actor_of(agent))
    drive(judged)
    assert not child(root, "1").artifacts.exists()
    assert child(root, "1").attempt == 2


def test_a_verdict_on_other_outputs_is_refused(judged: Project) -> None:
    root = submit_plan(judged, step("1"))
    drive(judged)
    held, agent = take(judged, Seat.QA)
    hold = Hold(held.pk, agent, held.lease_token)
    with pytest.raises(Conflict, match="not what was judged"):
        submit_result(
            hold=hold,
            document={**PASS, "artifact_digests": ["f" * 64]},
            actor=actor_of(agent),
        )
    assert child(root, "1").status == TaskStatus.REVIEW
    digests = list(child(root, "1").outputs.values_list("sha256", flat=True))
    submit_result(hold=hold, document={**PASS, "artifact_digests": digests}, actor=actor_of(agent))
    drive(judged)
    assert child(root, "1").status == TaskStatus.DONE


def test_a_redo_ends_the_defects_of_the_attempt(project: Project) -> None:
    """The fixed defect of the redone attempt used to hold the next one in review for ever."""
    count = "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n"
    work = "if [ $n = 2 ]; then rm -f out.txt; else echo hi > out.txt; fi; test -e ok"
    fix = {"description": "d", "commands": ["touch ok"]}
    root = submit_plan(
        project,
        step(
            "1",
            run=[f"sh -c '{count}; {work}'"],
            expected_artifacts=["out.txt"],
            on_failure={"severity": "high", "fix": fix},
        ),
    )
    drive(project)
    task = child(root, "1")
    assert (task.status, task.attempt) == (TaskStatus.DONE, 2)
    assert task.defects.get().status == "void"


def test_a_file_that_is_too_large_is_missing_evidence_and_runs_once_a_try(
    project: Project,
) -> None:
    run = ["sh -c 'echo run >> log; truncate -s 60M big.bin'"]
    root = submit_plan(project, step("1", run=run, expected_artifacts=["big.bin"]))
    drive(project)
    task = child(root, "1")
    assert "big.bin" in task.failure_context[0]["root_cause"]
    assert "holds more than" in task.failure_context[0]["root_cause"]
    runs = task.assignments.filter(seat="executor")
    assert set(runs.values_list("status", "transient_count")) == {("done", 0)}


def test_a_strangers_hand_off_hands_nothing_over(project: Project) -> None:
    new = NewTask(text="one", route="direct")
    task: Task = create_task(project_id=project.pk, new=new, actor=SYSTEM)
    maker, stranger = new_agent(project=project), new_agent(project=project)
    claim(task, maker)
    output = OutputInput(title="x", content="c")
    add_task_output(task_id=task.pk, document=output, data=b"c", agent=maker, actor=actor_of(maker))
    words = CommentInput(comment_type=CommentType.HANDOFF, body="done")
    add_task_comment(task_id=task.pk, document=words, agent=stranger, actor=actor_of(stranger))
    with pytest.raises(MissingHandoff):
        set_status(task, maker, "review")
    add_task_comment(task_id=task.pk, document=words, agent=maker, actor=actor_of(maker))
    assert set_status(task, maker, "review").status == TaskStatus.DONE


def ask_to_have_it_fixed(project: Project) -> Task:
    root = submit_plan(project, step("1", run=["ls ok"], on_failure={"severity": "medium"}))
    drive(project)
    decide(open_decision_of(project), "approve")
    return root


def notice_of(project: Project) -> Decision:
    return open_decision_of(project, "high_notice")


@pytest.mark.parametrize("output", [{"path": "ok"}, {"content": "made\n"}])
def test_a_fix_that_sir_asked_for_comes_back_as_a_notice(
    project: Project, output: dict[str, str]
) -> None:
    ask_to_have_it_fixed(project)
    file_of(project, "ok").write_text("made\n")
    document = {
        "status": "review",
        "output": {"type": "code", "title": "ok", **output},
        "comment": "done",
        "change_note": "made ok",
    }
    answer(project, Seat.FIXER, document)
    notice = notice_of(project)
    fix = notice.content["fix"]
    assert fix["description"] == "made ok"
    assert [one.new_path for one in parse_diff(fix["patch"]).files] == ["ok"]
    assert "+made" in fix["patch"]
    decide(notice, "acknowledge")


def test_a_fix_without_an_output_comes_back_in_its_fixers_words(project: Project) -> None:
    ask_to_have_it_fixed(project)
    file_of(project, "ok").write_text("made\n")
    answer(project, Seat.FIXER, {"status": "review", "comment": "done", "change_note": "made ok"})
    assert notice_of(project).content["fix"] == {"description": "made ok"}


@pytest.mark.parametrize("patch", ["--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "no diff at all"])
def test_a_fixers_own_diff_is_shown_where_we_know_none(project: Project, patch: str) -> None:
    ask_to_have_it_fixed(project)
    document = {
        "status": "review",
        "comment": "done",
        "change_note": "made ok",
        "proposed_fix": {"description": "d", "patch": patch},
    }
    answer(project, Seat.FIXER, document)
    assert ("patch" in notice_of(project).content["fix"]) == patch.startswith("---")
    decide(notice_of(project), "acknowledge")
