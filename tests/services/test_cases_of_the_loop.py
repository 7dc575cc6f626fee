"""Cases from the field about retries and false completion, each by its number."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Decision, DeliveryArchive, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.intake import NewTask, create_task
from orchestration.services.prompts import build_prompt
from orchestration.services.work import Actor
from orchestration.states import Seat
from tests.api.callers import Caller, agent_client, problem
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
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
FIX = {"description": "same", "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}


def judge(project: Project) -> None:
    """Let an external QA find the same Medium defect, with the same fix."""
    qa = new_agent(project=project)
    held = claim_for_agent(agent=qa, wish=Wish([Seat.QA]), actor=actor_of(qa))
    assert held is not None
    defect = {"title": "bad", "description": "d", "evidence": "e", "severity": "medium"}
    submit_result(
        hold=Hold(held.pk, qa, held.lease_token),
        document={
            "verdict": "fail", "artifact_digests": [],
            "defects": [{**defect, "proposed_fix": FIX}],
        },
        actor=actor_of(qa),
    )  # fmt: skip


def test_c_19_a_rejected_fix_that_comes_back_leads_to_max_retries() -> None:
    project = new_project(policy={"seats": {"qa": ["external"]}})
    task = create_task(project_id=project.pk, new=NewTask(text="one", route="direct"), actor=SIR)
    agent = new_agent(project=project)
    execute(task, agent)
    judge(project)
    decide(open_decision_of(project, "medium_defect"), "reject", reason="no")
    assert fresh(task).failure_count == 1
    for number in (2, 3):
        execute(task, agent)
        judge(project)
        assert fresh(task).failure_count == number
        assert Decision.objects.filter(kind="medium_defect").count() == 1
    assert (fresh(task).status, fresh(task).project.status) == ("fatal", "suspended")
    shown = open_decision_of(project).content["failures"]
    assert [one["class"] for one in shown] == ["rejected_by_sir"] * 3


def test_c_49_what_a_failed_check_printed_reaches_the_next_attempt() -> None:
    project = new_project()
    root = submit_plan(project, step("1", run=["sh -c 'echo 3 of 9 are red; exit 1'"]))
    drive(project)
    assert fresh(root).status == "fatal"
    failures = open_decision_of(project, "max_retries").content["failures"]
    assert len(failures) == 3
    decide(open_decision_of(project, "max_retries"), "retry", reason="make them green")
    held = fresh(root).assignments.get(seat="planner", status="queued")
    task = Task.objects.select_related("project").get(pk=root.pk)
    prompt = build_prompt(
        task=task, seat=Seat.PLANNER, assignment=held, base_url="https://x", agent=None
    ).text
    assert "3 of 9 are red" in prompt


@pytest.fixture
def judged() -> Project:
    return new_project("demo", policy={"seats": {"validator": ["external"]}})


def test_a_07_and_a_08_steps_that_are_done_are_not_accepted_before_a_go(judged: Project) -> None:
    root = submit_plan(judged, agent_step("1"))
    drive(judged)
    maker = new_agent(project=judged)
    execute(child(root, "1"), maker)
    assert (child(root, "1").status, fresh(root).status) == ("done", "review")
    assert not DeliveryArchive.objects.exists()
    caller: Caller = agent_client(judged, name="validator")
    path = f"/api/projects/demo/tasks/{root.pk}"
    problem(caller.get(f"{path}/archive"), 409, "no_archive")
    body: dict[str, Any] = {"verdict": "GO", "basis": "I say so"}
    for flag in ("force", "yes", "override"):
        problem(caller.send(f"{path}/validation", {**body, flag: True}), 422, "package_invalid")
    assert not DeliveryArchive.objects.exists()
    assert caller.send(f"{path}/validation", body).status_code == 201
    assert fresh(root).status == "done"
    archive = caller.read(f"{path}/archive")
    assert archive["audit"]["checks"]
    assert [one["step"] for one in archive["problem"]["results"]] == ["1"]


def test_c_16_a_changed_plan_is_asked_about_again() -> None:
    """What was approved is one text; another needs another word of Sir."""
    project = new_project()
    root = submit_plan(project, step("1", run=["touch a"]), is_trusted=False)
    drive(project)
    first = open_decision_of(project, "command_approval")
    decide(first, "approve")
    drive(project)
    assert fresh(root).status == "done"
    second = submit_plan(project, step("1", run=["touch b"]), is_trusted=False)
    drive(project)
    again = open_decision_of(project, "command_approval")
    assert (again.pk != first.pk, again.digest != first.digest) == (True, True)
    assert child(second, "1").status == "pending"
    with pytest.raises(Exception, match="awaiting_command_approval"):
        claim(child(second, "1"), new_agent(project=project))
