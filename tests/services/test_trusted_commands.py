"""What may run on our machine: what agents propose or write never rides on somebody's trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from orchestration.contracts.results import DeviationInput
from orchestration.models import Agent, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, release_assignment, submit_result
from orchestration.services.deviations import record_deviation
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import SYSTEM, Actor
from orchestration.services.working import work_until_idle
from orchestration.states import Seat, TaskStatus
from tests.factories import (
    SLOT,
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db

PATCH = "--- a/t.sh\n+++ b/t.sh\n@@ -1 +1 @@\n-false\n+touch pwned\n"


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def judged() -> Project:
    """A project whose work an agent judges."""
    return new_project(policy={"seats": {"qa": ["external"]}})


def has_file(project: Project, name: str) -> bool:
    return (Path(project.workspace) / name).exists()


def write(project: Project, name: str, text: str) -> None:
    (Path(project.workspace) / name).write_text(text)


def find_defect(project: Project, severity: str, fix: dict[str, Any] | None) -> None:
    """Judge the one waiting step as an agent, with one defect."""
    judge = new_agent(project=project)
    held = claim_for_agent(agent=judge, wish=Wish([Seat.QA]), actor=actor_of(judge))
    assert held is not None
    defect = {"severity": severity, "title": "bad", "description": "d", "evidence": "e"}
    if fix is not None:
        defect |= {"proposed_fix": fix}  # type: ignore[dict-item]
    document = {"verdict": "fail", "artifact_digests": [], "defects": [defect]}
    hold = Hold(held.pk, judge, held.lease_token)
    submit_result(hold=hold, document=document, actor=actor_of(judge))
    drive(project)


def fixer_of(task: Task) -> str:
    return task.assignments.get(seat="fixer").backend


def test_commands_that_an_agent_proposes_do_not_ride_on_a_trusted_plan(judged: Project) -> None:
    root = submit_plan(judged, step("1"))
    drive(judged)
    find_defect(judged, "critical", {"description": "x", "commands": ["touch pwned"]})
    assert fixer_of(child(root, "1")) == "external"
    assert not has_file(judged, "pwned")


def test_a_patch_that_an_agent_proposes_is_not_applied_by_rule(judged: Project) -> None:
    write(judged, "t.sh", "false\n")
    root = submit_plan(judged, step("1", run=["ls t.sh"]))
    drive(judged)
    find_defect(judged, "critical", {"description": "x", "patch": PATCH})
    assert fixer_of(child(root, "1")) == "external"
    assert (Path(judged.workspace) / "t.sh").read_text() == "false\n"


@pytest.mark.parametrize("fix", [{"commands": ["touch signed"]}, {"patch": PATCH}])
def test_what_sir_signed_is_applied(judged: Project, fix: dict[str, Any]) -> None:
    write(judged, "t.sh", "false\n")
    root = submit_plan(judged, step("1"))
    drive(judged)
    find_defect(judged, "medium", {"description": "x", **fix})
    decide(open_decision_of(judged), "approve")
    drive(judged)
    assert fixer_of(child(root, "1")) == "command"
    is_patched = (Path(judged.workspace) / "t.sh").read_text() == "touch pwned\n"
    assert (has_file(judged, "signed"), is_patched) == ("commands" in fix, "patch" in fix)


def test_an_approved_command_of_one_step_is_not_approved_as_a_fix_of_another(
    judged: Project,
) -> None:
    root = submit_plan(
        judged, step("1"), step("2", run=["touch later"], after=["1"]), is_trusted=False
    )
    drive(judged)
    decide(open_decision_of(judged, "command_approval"), "approve")
    drive(judged)
    find_defect(judged, "critical", {"description": "now", "commands": ["touch later"]})
    assert fixer_of(child(root, "1")) == "external"
    assert not has_file(judged, "later")


def test_the_trusted_plans_own_fix_is_applied_by_rule(project: Project) -> None:
    write(project, "t.sh", "false\n")
    fix = {"description": "f", "patch": PATCH, "commands": ["touch ok"]}
    on_failure = {"severity": "critical", "fix": fix}
    root = submit_plan(project, step("1", run=["ls ok"], on_failure=on_failure))
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert fixer_of(child(root, "1")) == "command"


def test_the_patch_of_an_untrusted_plan_is_not_applied_unseen() -> None:
    project = new_project(policy={"commands": {"allow": ["ls"]}})
    write(project, "t.sh", "false\n")
    on_failure = {"severity": "high", "fix": {"description": "f", "patch": PATCH}}
    root = submit_plan(project, step("1", run=["ls ok"], on_failure=on_failure), is_trusted=False)
    drive(project)
    assert fixer_of(child(root, "1")) == "external"
    assert (Path(project.workspace) / "t.sh").read_text() == "false\n"


def deviate(root: Task, actor: Actor, *, is_sir: bool) -> None:
    fix = {"description": "d", "patch": PATCH}
    added = {
        "id": "9",
        "action": "check",
        "run": ["sh t.sh"],
        "on_failure": {"severity": "critical", "fix": fix},
    }
    document = {"change": "added", "reason": "r", "new_step": added}
    asked = DeviationInput.model_validate(document)
    record_deviation(task_id=root.pk, asked=asked, actor=actor, is_sir=is_sir)


def test_a_step_that_an_agent_added_is_not_trusted_with_its_plan() -> None:
    project = new_project(policy={"commands": {"allow": [["sh", "t.sh"]]}})
    write(project, "t.sh", "false\n")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    deviate(root, actor_of(new_agent(project=project)), is_sir=False)
    drive(project)
    assert fixer_of(child(root, "9")) == "external"
    assert not has_file(project, "pwned")


def test_a_step_that_sir_added_is_trusted_with_its_plan(project: Project) -> None:
    write(project, "t.sh", "false\n")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    deviate(root, Actor("human:sir"), is_sir=True)
    drive(project)
    assert fixer_of(child(root, "9")) == "command"
    assert has_file(project, "pwned")


def hold_direct_task(project: Project, agent: Agent) -> Hold:
    new = NewTask(text="one", route="direct")
    task = create_task(project_id=project.pk, new=new, actor=SYSTEM)
    held = claim(task, agent)
    write(project, "t.sh", "touch pwned\n")
    return Hold(held.pk, agent, held.lease_token)


HANDED_IN = {
    "status": "review",
    "output": {"type": "code", "title": "t.sh", "path": "t.sh"},
    "comment": "done",
}
FAILED = {"status": "failed", "detail": "gave up"}


@pytest.mark.parametrize("end", ["done", "failed", "released", "held"])
def test_code_of_an_agent_in_another_task_needs_a_sandbox(
    project: Project, end: str, settings: Any
) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    agent = new_agent(project=project)
    hold = hold_direct_task(project, agent)
    if end == "released":
        release_assignment(hold=hold, actor=actor_of(agent))
    elif end != "held":
        document = HANDED_IN if end == "done" else FAILED
        submit_result(hold=hold, document=document, actor=actor_of(agent))
    root = submit_plan(project, step("1", run=["sh t.sh"]))
    drive(project)
    assert child(root, "1").assignments.get().backend == "external"
    assert not has_file(project, "pwned")


def test_a_project_without_agents_work_needs_no_sandbox(project: Project) -> None:
    other = new_project()
    hold_direct_task(other, new_agent(project=other))
    write(project, "t.sh", "touch ran\n")
    root = submit_plan(project, step("1", run=["sh t.sh"]))
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert has_file(project, "ran")


def test_a_sandbox_is_missed_at_the_last_moment_too(project: Project, settings: Any) -> None:
    """The agent took its step after the command of the other one was queued for us."""
    settings.COUNTERSIGN_SANDBOX = "none"
    root = submit_plan(project, agent_step("1"), step("2", run=["sh t.sh"]))
    work_until_idle(SLOT, slice_seconds=0, project_id=project.pk)
    assert child(root, "2").assignments.get().backend == "command"
    claim(child(root, "1"), new_agent(project=project))
    write(project, "t.sh", "touch pwned\n")
    drive(project)
    assert not has_file(project, "pwned")
    assert "no sandbox" in child(root, "2").failure_context[0]["root_cause"]


STEAL = "cat '{data}/secret' > loot; echo $? > code; echo x > '{data}/planted'; touch ran"


def steal(project: Project) -> Path:
    """Write a script that reads and writes our data directory, and a secret for it to find."""
    data = Path(settings.COUNTERSIGN_DATA_DIR)
    (data / "secret").write_text("secret")
    (data / "planted").unlink(missing_ok=True)
    write(project, "t.sh", STEAL.format(data=data))
    return Path(project.workspace)


def test_code_of_an_agent_runs_in_a_sandbox(project: Project) -> None:
    hold_direct_task(project, new_agent(project=project))
    workspace = steal(project)
    root = submit_plan(project, step("1", run=["sh t.sh"]))
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert has_file(project, "ran")
    assert ((workspace / "loot").read_text(), (workspace / "code").read_text()) == ("", "1\n")
    assert not (Path(settings.COUNTERSIGN_DATA_DIR) / "planted").exists()


def test_verify_and_fix_commands_run_in_the_sandbox_too(project: Project) -> None:
    hold_direct_task(project, new_agent(project=project))
    workspace = steal(project)
    fix = {"description": "f", "commands": ["sh t.sh"]}
    on_failure = {"severity": "critical", "fix": fix}
    root = submit_plan(
        project, step("1", run=["ls ran"], verify=["sh t.sh"], on_failure=on_failure)
    )
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "1").verifications.filter(layer="L3", outcome="passed").exists()
    assert (workspace / "loot").read_text() == ""
    assert not (Path(settings.COUNTERSIGN_DATA_DIR) / "planted").exists()


def test_a_command_that_an_agent_planned_runs_in_the_sandbox() -> None:
    project = new_project(policy={"commands": {"allow": ["sh"]}})
    workspace = steal(project)
    root = submit_plan(project, step("1", run=["sh t.sh"]), is_trusted=False, backend="external")
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert (workspace / "loot").read_text() == ""


def test_a_command_that_an_agent_proposed_as_a_fix_runs_in_the_sandbox(judged: Project) -> None:
    workspace = steal(judged)
    submit_plan(judged, step("1"))
    drive(judged)
    find_defect(judged, "medium", {"description": "x", "commands": ["sh t.sh"]})
    decide(open_decision_of(judged), "approve")
    drive(judged)
    assert has_file(judged, "ran")
    assert (workspace / "loot").read_text() == ""


def test_a_trusted_command_before_any_agent_runs_with_our_own_rights(project: Project) -> None:
    workspace = steal(project)
    submit_plan(project, step("1", run=["sh t.sh"]))
    drive(project)
    assert (workspace / "loot").read_text() == "secret"


def test_the_operator_can_switch_the_sandbox_off(project: Project, settings: Any) -> None:
    settings.COUNTERSIGN_UNSANDBOXED = True
    hold_direct_task(project, new_agent(project=project))
    workspace = steal(project)
    submit_plan(project, step("1", run=["sh t.sh"]))
    drive(project)
    assert (workspace / "loot").read_text() == "secret"
