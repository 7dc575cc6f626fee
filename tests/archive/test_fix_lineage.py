"""A fix of what was locked is of the lineage of what it fixes: nobody judges his own there."""

from __future__ import annotations

import pytest

from orchestration.models import Agent, Assignment, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent, is_independent
from orchestration.states import Seat
from tests.api.callers import Caller, agent_client
from tests.archive.test_locked_defects import locked, report
from tests.factories import (
    actor_of,
    agent_step,
    child,
    drive,
    execute,
    new_agent,
    new_project,
    submit_plan,
)

pytestmark = pytest.mark.django_db
JUDGING = (Seat.AUDITOR, Seat.QA, Seat.CROSS_VERIFIER, Seat.VALIDATOR)


@pytest.fixture
def project() -> Project:
    return new_project("demo", policy={"seats": {"validator": ["external"], "qa": ["external"]}})


@pytest.fixture
def reviewer(project: Project) -> Caller:
    return agent_client(project, name="reviewer", scopes=("observe", "review"))


@pytest.fixture
def maker(project: Project) -> Agent:
    return new_agent("maker", project=project)


@pytest.fixture
def root(project: Project, maker: Agent, reviewer: Caller) -> Task:
    """A step that an agent executed, reviewed and locked; its root is not judged yet."""
    made = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    execute(child(made, "1"), maker)
    judge(reviewer)
    drive(project)
    return made


def judge(reviewer: Caller) -> None:
    """Let the reviewer pass what waits for it."""
    held = reviewer.send("/api/assignments/claim", {"seats": ["qa"]}).json()
    body = {"lease_token": held["lease_token"], "verdict": "pass", "defects": []}
    answer = reviewer.send(f"/api/assignments/{held['id']}/result", body)
    assert answer.status_code == 200, answer.content


@pytest.fixture
def fixed(project: Project, root: Task, reviewer: Caller) -> Task:
    """The fix task of a defect of what the step locked."""
    shown = report(reviewer, locked(root, name="work"), "critical").json()
    drive(project)
    return Task.objects.get(pk=int(shown["fix_task"]))


def test_who_made_the_fix_judges_neither_the_step_nor_its_root(
    project: Project, root: Task, fixed: Task
) -> None:
    fixer = new_agent("fixer", project=project)
    assert is_independent(fixer, root, Seat.VALIDATOR)
    execute(fixed, fixer, "mended")
    for seat in JUDGING:
        assert not is_independent(fixer, root, seat)
        assert not is_independent(fixer, child(root, "1"), seat)
        assert is_independent(fixer, child(root, "2"), seat), "a sibling is another lineage"


def test_who_made_the_step_does_not_review_its_fix(
    project: Project, maker: Agent, fixed: Task, reviewer: Caller
) -> None:
    execute(fixed, new_agent("fixer", project=project), "mended")
    assert Assignment.objects.filter(task=fixed, seat="qa", status="queued").exists()
    wish = Wish(seats=(Seat.QA,))
    assert claim_for_agent(agent=maker, wish=wish, actor=actor_of(maker)) is None
    judge(reviewer)
