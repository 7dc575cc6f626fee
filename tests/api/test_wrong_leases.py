"""A token that ended, a token that never was, and what is kept of what came too late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Assignment, Comment, Mail, Output, Project, Task
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, agent_client, problem
from tests.api.test_assignments_api import here, lease

DONE = {
    "status": "review",
    "output": {"title": "work", "content": "made"},
    "comment": "Took the batch call. @second should watch the keys.",
}


@pytest.fixture
def claimed(agent: Caller, task: str) -> dict[str, Any]:
    """A task that the agent claimed."""
    document: dict[str, Any] = agent.send(f"{task}/claim").json()
    return document


@pytest.mark.parametrize("call", ["heartbeat", "release", "result"])
@pytest.mark.parametrize("guess", ["guess", "1.guess", "99.guess", "９.guess"])
def test_token_that_was_never_given_is_told_as_such(
    agent: Caller, claimed: dict[str, Any], call: str, guess: str
) -> None:
    body = {**lease(claimed), **(DONE if call == "result" else {}), "lease_token": guess}
    problem(agent.send(here(claimed, call), body), 409, "wrong_lease_token")
    # The lease lives, and nothing was taken for late.
    assert not Output.objects.exists()
    assert Assignment.objects.get(pk=claimed["id"]).status == "leased"
    assert agent.send(here(claimed, "heartbeat"), lease(claimed)).status_code == 200


@pytest.mark.parametrize("path", ["heartbeat", "outputs", "release"])
def test_board_tells_a_wrong_token_too(
    agent: Caller, task: str, claimed: dict[str, Any], path: str
) -> None:
    body = {"title": "t", "content": "c"} if path == "outputs" else {}
    answer = agent.send(f"{task}/{path}", body, X_Lease_Token="guess")
    problem(answer, 409, "wrong_lease_token")
    assert not Output.objects.exists()


def test_token_of_an_earlier_lease_ended(agent: Caller, task: str, claimed: dict[str, Any]) -> None:
    assert agent.send(here(claimed, "release"), lease(claimed)).status_code == 200
    again = agent.send(f"{task}/claim").json()
    assert again["id"] == claimed["id"]
    for call in ("heartbeat", "release"):
        problem(agent.send(here(claimed, call), lease(claimed)), 409, "lease_lost")
    old = agent.send(f"{task}/heartbeat", {}, X_Lease_Token=claimed["lease_token"])
    problem(old, 409, "lease_lost")
    late = agent.send(here(claimed, "result"), lease(claimed, **DONE))
    assert problem(late, 409, "lease_lost")["holder"] == "worker"
    assert Output.objects.get().is_orphan
    assert agent.send(here(again, "heartbeat"), lease(again)).status_code == 200


def test_words_of_a_late_handoff_are_kept_and_hand_nothing_over(
    project: Project, agent: Caller, task: str, claimed: dict[str, Any]
) -> None:
    agent.send(here(claimed, "log"), lease(claimed, text="half done\n"))
    with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
        sweep()
        second = agent_client(project, name="second")
        taken = second.send(f"{task}/claim").json()
        for _ in range(2):
            problem(agent.send(here(claimed, "result"), lease(claimed, **DONE)), 409, "lease_lost")
        [kept] = Comment.objects.all()
        assert (kept.body, kept.author, kept.comment_type) == (DONE["comment"], "worker", "general")
        assert kept.assignment_id is None
        assert not Mail.objects.exists()
        # It hands nothing over for whoever works there now.
        second.send(f"{task}/status", {"status": "working"})
        second.send(f"{task}/outputs", {"title": "t", "content": "c"})
        missing = second.send(f"{task}/status", {"status": "review"})
        problem(missing, 409, "missing_handoff")
        assert DONE["comment"] in second.read(f"{task}/bootstrap")["text"]
        assert second.send(here(taken, "result"), lease(taken, **DONE)).status_code == 200
    assert Task.objects.get().status == "done"
