"""`Idempotency-Key`: the work is done once, its answer is given again."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from orchestration.errors import Conflict
from orchestration.models import IdempotencyRecord, Project, Task
from orchestration.services.idempotency import (
    GIVEN_UP_AFTER,
    KEPT_FOR,
    Answer,
    begin_request,
    forget_old_answers,
)
from orchestration.services.work import COMMITTED, Actor, unit_of_work
from tests.api.callers import Caller, agent_client, events, problem

MESSAGES = "/api/projects/demo/messages"
BODY = {"text": "Implement it"}
ACTOR = Actor("agent:worker")


def test_repeat_gets_the_same_answer_and_does_nothing(agent: Caller) -> None:
    first = agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    again = agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert Task.objects.count() == 1


def test_order_of_the_fields_does_not_matter_but_their_values_do(agent: Caller) -> None:
    path = "/api/projects/demo/tasks"
    agent.send(path, {"title": "a", "spec_id": "s"}, Idempotency_Key="k1")
    again = agent.send(path, {"spec_id": "s", "title": "a"}, Idempotency_Key="k1")
    assert again["Idempotent-Replayed"] == "true"
    other = agent.send(path, {"title": "b", "spec_id": "s"}, Idempotency_Key="k1")
    problem(other, 422, "idempotency_mismatch")
    elsewhere = agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    problem(elsewhere, 422, "idempotency_mismatch")
    assert Task.objects.count() == 1


def test_keys_belong_to_their_caller(project: Project, agent: Caller) -> None:
    other = agent_client(project, name="other")
    agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    assert "Idempotent-Replayed" not in other.send(MESSAGES, BODY, Idempotency_Key="k1")
    assert Task.objects.count() == 2


def test_refused_request_frees_its_key(agent: Caller) -> None:
    problem(agent.send(MESSAGES, {"text": ""}, Idempotency_Key="k1"), 422, "invalid")
    assert not IdempotencyRecord.objects.exists()
    assert agent.send(MESSAGES, BODY, Idempotency_Key="k1").status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "schlüssel"])
def test_key_that_is_none_is_422(agent: Caller, key: str) -> None:
    problem(agent.send(MESSAGES, BODY, Idempotency_Key=key), 422, "invalid")
    assert not Task.objects.exists()


def test_second_request_while_the_first_is_under_way_is_409(project: Project) -> None:
    begin_request(actor=ACTOR, key="k1", digest="d")
    with pytest.raises(Conflict) as refused:
        begin_request(actor=ACTOR, key="k1", digest="d")
    assert refused.value.code == "in_progress"
    assert refused.value.extra["retry_after"] == 1


def test_request_under_way_is_answered_with_retry_after(agent: Caller) -> None:
    agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    IdempotencyRecord.objects.update(status=None, body="")
    answer = agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    problem(answer, 409, "in_progress")
    assert answer["Retry-After"] == "1"


def test_request_whose_process_died_before_it_committed_is_done_by_the_next(
    agent: Caller,
) -> None:
    record = begin_request(actor=ACTOR, key="k1", digest="d")
    with time_machine.travel(timezone.now() + GIVEN_UP_AFTER + timedelta(seconds=1), tick=False):
        assert begin_request(actor=ACTOR, key="k1", digest="d") == record
        with pytest.raises(Conflict, match="under way"):
            begin_request(actor=ACTOR, key="k1", digest="d")


def test_request_whose_process_died_after_it_committed_is_never_done_again(
    agent: Caller,
) -> None:
    record = begin_request(actor=ACTOR, key="k1", digest="d")
    assert isinstance(record, int)
    with unit_of_work(Actor("agent:worker", record_id=record)) as work:
        work.record("test.done", subject="test:1", project_id=None)
    assert IdempotencyRecord.objects.get(pk=record).status == COMMITTED
    later = timezone.now() + GIVEN_UP_AFTER + timedelta(seconds=1)
    with time_machine.travel(later, tick=False), pytest.raises(Conflict) as refused:
        begin_request(actor=ACTOR, key="k1", digest="d")
    assert refused.value.code == "answer_lost"
    assert len(events("test.done")) == 1


def test_claim_that_found_nothing_may_be_asked_again_with_its_key(agent: Caller) -> None:
    claim = "/api/assignments/claim"
    assert agent.send(claim, {}, Idempotency_Key="k1").status_code == 204
    agent.send(MESSAGES, {"text": "Implement the greeting"})
    first = agent.send(claim, {}, Idempotency_Key="k1")
    again = agent.send(claim, {}, Idempotency_Key="k1")
    assert first.status_code == 200
    assert first.json()["lease_token"] == again.json()["lease_token"]


def test_answers_are_forgotten_after_a_day(agent: Caller) -> None:
    agent.send(MESSAGES, BODY, Idempotency_Key="k1")
    assert forget_old_answers() == 0
    with time_machine.travel(timezone.now() + KEPT_FOR + timedelta(seconds=1), tick=False):
        assert forget_old_answers() == 1
    assert not isinstance(begin_request(actor=ACTOR, key="k1", digest="d"), Answer)
