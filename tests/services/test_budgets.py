"""Usage and limits: 30 turns, 5 USD, the time of a depth; `budget_exceeded`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.contracts.results import Usage
from orchestration.errors import IllegalTransition, Invalid, MissingHandoff, MissingOutput
from orchestration.models import Agent, Assignment, AuditEvent, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, heartbeat_assignment, submit_result
from orchestration.services.intake import NewTask, create_task
from orchestration.services.sweeping import sweep
from orchestration.services.work import Actor
from orchestration.states import Route, Seat
from tests.factories import (
    actor_of,
    agent_step,
    child,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    submit_plan,
)

pytestmark = pytest.mark.django_db
DONE = {"status": "review", "output": {"title": "work", "content": "made"}, "comment": "done"}


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def agent(project: Project) -> Agent:
    return new_agent("worker", project=project)


@pytest.fixture
def held(project: Project, agent: Agent) -> Assignment:
    """The lease of a step, at work."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    row = claim_for_agent(agent=agent, wish=Wish(seats=[Seat.EXECUTOR]), actor=actor_of(agent))
    assert row is not None
    set_status(child(root, "1"), agent, "working")
    return row


def beat(held: Assignment, agent: Agent, **usage: Any) -> Assignment:
    hold = Hold(held.pk, agent, held.lease_token)
    return heartbeat_assignment(hold=hold, actor=actor_of(agent), usage=Usage(**usage))


def result(held: Assignment, agent: Agent, **usage: Any) -> None:
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=DONE, actor=actor_of(agent), usage=Usage(**usage))


def test_limits_stand_on_the_assignment(held: Assignment) -> None:
    assert held.limits == {"turns": 30, "cost_usd": 5.0, "timeout_seconds": 7200}
    assert set(held.hints) == {"model", "effort", "thinking"}


@pytest.mark.parametrize("usage", [{"turns": 30}, {"cost_usd": 5.0}, {"input_tokens": 10**9}, {}])
def test_work_within_its_limits_goes_on(
    held: Assignment, agent: Agent, usage: dict[str, Any]
) -> None:
    beat(held, agent, **usage)
    assert fresh(held.task).status == "working"


@pytest.mark.parametrize(
    ("usage", "name"), [({"turns": 31}, "turns"), ({"cost_usd": 5.01}, "cost_usd")]
)
def test_work_over_a_limit_stops_and_sir_is_asked(
    project: Project, held: Assignment, agent: Agent, usage: dict[str, Any], name: str
) -> None:
    row = beat(held, agent, **usage)
    assert (row.status, row.is_clock_stopped) == ("leased", True)
    assert fresh(held.task).status == "waiting_human"
    decision = open_decision_of(project, "budget_exceeded")
    assert decision.content["exceeded"] == {
        name: {"used": usage[name], "limit": 30 if name == "turns" else 5.0}
    }
    with pytest.raises(IllegalTransition):
        result(held, agent)


def test_unknown_figures_stay_unknown_and_known_ones_only_grow(
    held: Assignment, agent: Agent
) -> None:
    beat(held, agent, turns=20)
    row = beat(held, agent, turns=3, output_tokens=7)
    assert row.usage == {"turns": 20, "output_tokens": 7}


def test_waiting_for_sir_costs_no_time(held: Assignment, agent: Agent) -> None:
    beat(held, agent, turns=31)
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        sweep()
        assert fresh(held.task).status == "waiting_human"
        assert Assignment.objects.get(pk=held.pk).status == "leased"


@pytest.mark.parametrize(
    ("payload", "limit"), [({"turns": 60}, 60), ({"turns": "45"}, 45), ({}, 61)]
)
def test_raised_limit_lets_the_work_go_on(
    project: Project, held: Assignment, agent: Agent, payload: dict[str, Any], limit: int
) -> None:
    beat(held, agent, turns=31)
    decide(open_decision_of(project), "raise", reason="it is worth it", payload=payload)
    row = Assignment.objects.get(pk=held.pk)
    assert row.limits["turns"] == limit
    assert (row.is_clock_stopped, fresh(held.task).status) == (False, "working")
    beat(held, agent, turns=limit)
    result(held, agent, turns=limit)
    assert fresh(held.task).status == "done"


@pytest.mark.parametrize("turns", [30, -1, "many", 10**9, True, "nan"])
def test_limit_that_is_none_is_refused_and_nothing_moves(
    project: Project, held: Assignment, agent: Agent, turns: Any
) -> None:
    beat(held, agent, turns=31)
    with pytest.raises(Invalid):
        decide(open_decision_of(project), "raise", reason="go on", payload={"turns": turns})
    assert fresh(held.task).status == "waiting_human"
    assert open_decision_of(project).status == "open"


def test_aborted_work_fails(project: Project, held: Assignment, agent: Agent) -> None:
    beat(held, agent, cost_usd=9)
    decide(open_decision_of(project), "abort", reason="too dear")
    task = Task.objects.get(pk=held.task_id)
    assert task.status == "failed"
    assert task.failure_context[-1]["class"] == "budget"
    assert Assignment.objects.get(pk=held.pk).status == "cancelled"


def test_result_over_a_limit_waits_for_sir_and_is_taken_when_he_raises_it(
    project: Project, held: Assignment, agent: Agent
) -> None:
    result(held, agent, turns=44)
    row = Assignment.objects.get(pk=held.pk)
    assert (row.status, row.is_clock_stopped) == ("leased", True)
    assert (fresh(held.task).status, held.task.outputs.count()) == ("waiting_human", 0)
    decision = open_decision_of(project, "budget_exceeded")
    assert decision.content["is_finished"]
    assert decision.content["exceeded"]["turns"] == {"used": 44, "limit": 30}
    decide(decision, "raise", reason="it is done already")
    assert fresh(held.task).status == "done"
    assert held.task.outputs.get().content == "made"
    assert Assignment.objects.get(pk=held.pk).status == "done"
    result(held, agent, turns=44)
    assert held.task.outputs.count() == 1


def test_same_result_again_changes_nothing_while_it_is_held(
    project: Project, held: Assignment, agent: Agent
) -> None:
    result(held, agent, turns=44)
    result(held, agent, turns=44)
    assert open_decision_of(project, "budget_exceeded").status == "open"
    with pytest.raises(IllegalTransition):
        submit_result(
            hold=Hold(held.pk, agent, held.lease_token),
            document=DONE | {"comment": "another"},
            actor=actor_of(agent),
        )


def test_aborted_result_never_becomes_an_output(
    project: Project, held: Assignment, agent: Agent
) -> None:
    result(held, agent, cost_usd=9)
    decide(open_decision_of(project), "abort", reason="too dear")
    row = Assignment.objects.get(pk=held.pk)
    assert (fresh(held.task).status, row.status) == ("failed", "cancelled")
    assert held.task.outputs.count() == 0
    assert isinstance(row.result, dict)
    assert row.result["held"]["output"]["content"] == "made"


def test_malformed_result_over_a_limit_is_refused_and_not_held(
    project: Project, held: Assignment, agent: Agent
) -> None:
    hold = Hold(held.pk, agent, held.lease_token)
    with pytest.raises(Invalid):
        submit_result(
            hold=hold, document={"status": "perhaps"}, actor=actor_of(agent), usage=Usage(turns=44)
        )
    assert fresh(held.task).status == "working"


@pytest.mark.parametrize("missing", ["output", "comment"])
def test_unfinished_result_over_a_limit_is_refused_and_not_held(
    held: Assignment, agent: Agent, missing: str
) -> None:
    document = {name: part for name, part in DONE.items() if name != missing}
    with pytest.raises((MissingOutput, MissingHandoff)):
        submit_result(
            hold=Hold(held.pk, agent, held.lease_token),
            document=document,
            actor=actor_of(agent),
            usage=Usage(turns=44),
        )
    assert fresh(held.task).status == "working"


def test_failure_over_a_limit_is_taken_as_it_is(held: Assignment, agent: Agent) -> None:
    submit_result(
        hold=Hold(held.pk, agent, held.lease_token),
        document={"status": "failed", "detail": "cannot"},
        actor=actor_of(agent),
        usage=Usage(turns=44),
    )
    assert fresh(held.task).status == "pending"
    event = AuditEvent.objects.get(kind="assignment.over_budget")
    assert isinstance(event.after, dict)
    assert event.after["exceeded"]["turns"] == {"used": 44, "limit": 30}


def test_planner_over_budget_waits_and_goes_on(project: Project) -> None:
    project = new_project(policy={"seats": {"planner": ["external"]}})
    planner = new_agent("planner", project=project)
    root = submit_root(project)
    row = claim_for_agent(agent=planner, wish=Wish(seats=[Seat.PLANNER]), actor=actor_of(planner))
    assert row is not None
    beat(row, planner, turns=99)
    assert fresh(root).status == "waiting_human"
    decide(open_decision_of(project), "raise", reason="a large plan")
    assert fresh(root).status == "working"
    assert Assignment.objects.get(pk=row.pk).status == "leased"


def submit_root(project: Project) -> Task:
    new = NewTask(text="plan it", route=Route.THREE_STEP)
    return create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))


def test_assignment_beyond_its_time_fails_the_attempt(held: Assignment, agent: Agent) -> None:
    with time_machine.travel(timezone.now() + timedelta(hours=1, minutes=59)):
        beat(held, agent)
        sweep()
        assert fresh(held.task).status == "working"
    with time_machine.travel(timezone.now() + timedelta(hours=2, minutes=1)):
        sweep()
    row = Assignment.objects.get(pk=held.pk)
    assert row.status == "failed"
    assert fresh(held.task).failure_context[-1]["class"] == "timeout"


def test_raise_stands_where_the_held_file_is_gone_and_the_work_is_queued_again(
    project: Project, held: Assignment, agent: Agent
) -> None:
    made = Path(project.workspace) / "made.txt"
    made.write_text("made")
    document = DONE | {"output": {"title": "work", "path": "made.txt"}}
    hold = Hold(held.pk, agent, held.lease_token)
    submit_result(hold=hold, document=document, actor=actor_of(agent), usage=Usage(turns=44))
    made.unlink()
    decision = open_decision_of(project, "budget_exceeded")
    decide(decision, "raise", reason="it is done already")
    decision.refresh_from_db()
    row = Assignment.objects.get(pk=held.pk)
    assert (decision.status, row.status, fresh(held.task).status) == (
        "decided", "queued", "pending",
    )  # fmt: skip
    event = AuditEvent.objects.filter(subject=f"assignment:{row.pk}").latest("pk")
    assert "its held result was refused" in event.why
    assert held.task.outputs.count() == 0
