"""Mail over REST: who sends, what is refused and how, mailboxes, waiting, shared documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from channels.db import database_sync_to_async
from django.core.asgi import get_asgi_application

from orchestration.api.long_poll import LongPoll
from orchestration.broadcast import publisher
from orchestration.contracts.mail import MailInput
from orchestration.models import Agent, Mail, Project, Task
from orchestration.services.agents import create_agent
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import SYSTEM, Actor
from tests.api.callers import Caller, agent_client, events, problem
from tests.factories import new_project, post

MAIL = "/api/mail/"


@pytest.fixture
def bob(project: Project) -> Caller:
    return agent_client(project, name="bob")


@pytest.fixture
def medium(project: Project) -> str:
    """The path of a medium task that waits for an agent."""
    new = NewTask(text="Tidy the report", route="light_plan")
    made = create_task(project_id=project.pk, new=new, actor=Actor("human:sir"))
    return f"/api/projects/demo/tasks/{made.pk}"


def inform(**rest: Any) -> dict[str, Any]:
    return {"type": "inform", "to": "bob", "message_id": "m-1", "content": "hello", **rest}


def test_a_mail_is_stored_read_and_audited(agent: Caller, bob: Caller) -> None:
    sent = agent.send(MAIL, inform(content="重构 now"))
    assert sent.status_code == 201
    document = sent.json()
    assert document["sender"] == "agent:worker"
    assert document["to"] == ["agent:bob"]
    assert document["complexity"] == document["metadata"]["complexity"] == "high"
    assert document["expects_reply"] is False
    assert document["repeat"] is False
    (read,) = bob.read(MAIL, box="in")["results"]
    assert read["id"] == document["id"]
    assert read["content"] == "重构 now"
    assert bob.read(MAIL, box="out")["results"] == []
    (event,) = events("mail.sent")
    assert event.actor == "agent:worker"


@pytest.mark.parametrize("field", ["from", "sender", "sender_agent", "digest", "round"])
def test_the_sender_comes_from_the_token_and_never_from_the_body(
    agent: Caller, bob: Caller, field: str
) -> None:
    refused = agent.send(MAIL, inform(**{field: "agent:bob"}))
    assert problem(refused, 422, "unknown_fields")["errors"][0]["path"] == field
    assert not Mail.objects.exists()


def test_both_spellings_of_the_path(agent: Caller, bob: Caller) -> None:
    assert agent.send("/api/mail", inform()).status_code == 201
    assert len(bob.read("/api/mail")["results"]) == 1


def test_a_repeat_is_200_and_another_body_409(agent: Caller, bob: Caller) -> None:
    first = agent.send(MAIL, inform()).json()
    again = agent.send(MAIL, inform())
    assert again.status_code == 200
    assert again.json()["id"] == first["id"]
    assert again.json()["repeat"] is True
    problem(agent.send(MAIL, inform(content="other")), 409, "message_conflict")
    problem(bob.send(MAIL, inform(to="worker")), 409, "message_conflict")
    assert Mail.objects.count() == 1
    assert len(events("mail.sent")) == 1


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"message_id": ""}, "message_id"),
        ({"message_id": "a\nb"}, "message_id"),
        ({"message_id": "x" * 201}, "message_id"),
        ({"type": "shout"}, "type"),
        ({"to": ["bob", "nobody"]}, "to.1"),
        ({"content": "x" * 100_001}, "content"),
        ({"parts": [{"kind": "text"}]}, "parts.0"),
        ({"parts": [{"text": "a", "data": 1}]}, "parts.0"),
        ({"metadata": {"complexity": "huge"}}, ""),
        ({"wait": 31}, "wait"),
        ({"task": "DEMO-999"}, "task"),
        ({"in_reply_to": "unknown"}, "in_reply_to"),
        ({"project": "elsewhere"}, "project"),
        ({"assertions": [{"claim": "x", "confidence": "verified"}]}, "assertions.0"),
    ],
)
def test_what_is_wrong_is_named(
    agent: Caller, bob: Caller, body: dict[str, Any], path: str
) -> None:
    new_project("elsewhere")
    refused = problem(agent.send(MAIL, inform(**body)), 422, "invalid")
    assert path in [one["path"] for one in refused["errors"]]
    assert not Mail.objects.exists()


def test_a_reader_and_a_stranger_send_nothing(project: Project, bob: Caller) -> None:
    looker = agent_client(project, name="looker", scopes=("observe",))
    problem(looker.send(MAIL, inform()), 403, "scope_missing")
    assert Caller().send(MAIL, inform()).status_code == 401


def test_mail_of_another_project_is_not_there(
    agent: Caller, bob: Caller, outsider: Caller, viewer: Caller
) -> None:
    agent.send(MAIL, inform(message_id="m-1"))
    third = agent_client(Project.objects.get(slug="demo"), name="third")
    for stranger in (outsider, third):
        assert stranger.read(MAIL)["results"] == []
    answer = {"type": "inform", "to": "bob", "message_id": "m-2", "content": "x"}
    refused = third.send(MAIL, {**answer, "in_reply_to": "m-1"})
    assert problem(refused, 422, "invalid")["errors"][0]["path"] == "in_reply_to"
    assert len(viewer.read(MAIL)["results"]) == 1


def test_id_that_another_project_uses_is_free_here(
    project: Project, agent: Caller, bob: Caller, outsider: Caller
) -> None:
    agent_client(Project.objects.get(slug="elsewhere"), name="carol")
    assert agent.send(MAIL, inform()).status_code == 201
    there = outsider.send(MAIL, inform(to="carol", content="another text"))
    assert there.status_code == 201, there.content
    assert outsider.send(MAIL, inform(to="carol", content="another text")).status_code == 200
    problem(agent.send(MAIL, inform(content="another text")), 409, "message_conflict")
    assert Mail.objects.filter(message_id="m-1").count() == 2
    # Each answers the one of its own project.
    answer = inform(to="worker", message_id="m-2", in_reply_to="m-1")
    assert bob.send(MAIL, answer).json()["in_reply_to"] == "m-1"
    mine = Mail.objects.get(message_id="m-2")
    assert mine.in_reply_to is not None
    assert mine.in_reply_to.project_id == mine.project_id == project.pk


def test_who_sees_two_mails_of_one_id_names_the_project(
    project: Project, agent: Caller, bob: Caller, outsider: Caller, sir: Caller
) -> None:
    agent_client(Project.objects.get(slug="elsewhere"), name="carol")
    agent.send(MAIL, inform())
    outsider.send(MAIL, inform(to="carol"))
    answer = inform(to="carol", message_id="r", in_reply_to="m-1")
    refused = problem(sir.send(MAIL, answer), 422, "invalid")
    assert refused["errors"][0]["path"] == "in_reply_to"
    assert sir.send(MAIL, {**answer, "project": "elsewhere"}).status_code == 201
    stored = Mail.objects.select_related("in_reply_to__project").get(message_id="r")
    assert stored.in_reply_to is not None
    assert stored.in_reply_to.project.slug == "elsewhere"


@pytest.mark.parametrize(
    ("complexity", "hint", "expected"),
    [("medium", {}, "medium"), ("high", {}, "high"), ("", {}, "low"),
     ("medium", {"metadata": {"complexity": "high"}}, "high")],
)  # fmt: skip
def test_mail_about_a_task_has_its_complexity(
    agent: Caller, bob: Caller, task: str, complexity: str, hint: dict[str, Any], expected: str
) -> None:
    Task.objects.update(complexity=complexity)
    key = task.rpartition("/")[2]
    made = agent.send(MAIL, inform(type="request", task=key, **hint)).json()
    assert made["complexity"] == expected
    reply = {"type": "reply", "message_id": "r", "in_reply_to": "m-1", "content": "重构 架构"}
    assert bob.send(MAIL, reply).json()["complexity"] == expected


def test_sir_writes_and_gets_an_answer(agent: Caller, bob: Caller, sir: Caller) -> None:
    body = inform(type="request", message_id="s-1", project="demo")
    assert sir.send(MAIL, body).json()["sender"] == "human:sir"
    reply = {"type": "reply", "message_id": "b-1", "in_reply_to": "s-1", "content": "yes"}
    assert bob.send(MAIL, reply).json()["to"] == ["human:sir"]
    assert [one["content"] for one in sir.read(MAIL, box="in")["results"]] == ["yes"]
    assert bob.read(MAIL, unanswered="true")["results"] == []


def test_a_person_does_not_answer_an_intent_by_mail(
    agent: Caller, medium: str, sir: Caller
) -> None:
    agent.send(f"{medium}/claim")
    agent.send(MAIL, intent(medium, questions=["Which?"]))
    body = {"type": "intent_ack", "message_id": "a", "in_reply_to": "i-1", "status": "confirmed"}
    problem(sir.send(MAIL, body), 403, "decide_instead")


def intent(path: str, **rest: Any) -> dict[str, Any]:
    return {
        "type": "intent_confirmation",
        "message_id": "i-1",
        "task": path.rpartition("/")[2],
        "understanding": {
            "scope": "user-service 的 API 延迟问题",
            "approach": "查看监控 → 定位慢接口",
            "output_format": "根因分析",
            "assumptions": ["重点关注 P99 延迟"],
        },
        **rest,
    }


def test_the_whole_handshake_over_rest(agent: Caller, medium: str, sir: Caller) -> None:
    claimed = agent.send(f"{medium}/claim").json()
    assert claimed["handshake_required"] is True
    refused = agent.send(f"{medium}/status", {"status": "working"})
    assert problem(refused, 409, "handshake_required")["handshake"] is None
    early = agent.send(
        f"/api/assignments/{claimed['id']}/result",
        {"lease_token": claimed["lease_token"], "status": "review",
         "output": {"title": "x", "content": "y"}, "comment": "done"},
    )  # fmt: skip
    problem(early, 409, "handshake_required")
    sent = agent.send(MAIL, intent(medium, questions=["需要关注特定时间段吗？"])).json()
    assert sent["handshake"]["status"] == "awaiting_sir"
    assert sent["details"]["scope"] == ["user-service 的 API 延迟问题"]
    refused = agent.send(f"{medium}/status", {"status": "working"})
    assert problem(refused, 409, "handshake_required")["handshake"] == "awaiting_sir"
    (item,) = sir.read("/api/decisions/")["results"]
    assert item["kind"] == "clarification"
    verdict = {
        "verdict": "confirmed_with_correction",
        "reason": "也要看吞吐量",
        "version": item["version"],
        "digest": item["digest"],
    }
    assert sir.send(f"/api/decisions/{item['id']}/decide", verdict).status_code == 200
    (ack,) = agent.read(MAIL, in_reply_to="i-1")["results"]
    assert ack["type"] == "intent_ack"
    assert ack["details"]["corrections"] == ["也要看吞吐量"]
    begin = {
        "type": "execution_start",
        "message_id": "e-1",
        "in_reply_to": ack["message_id"],
        "expected_output": "延迟+吞吐量双维度分析",
    }
    assert agent.send(MAIL, begin).status_code == 201
    assert agent.read(medium)["status"] == "working"
    (assignment,) = [
        one for one in agent.read(medium, expand="all")["assignments"] if one["seat"] == "executor"
    ]
    assert assignment["corrections"] == ["也要看吞吐量"]


def test_a_low_claim_says_that_no_handshake_is_due(agent: Caller, task: str) -> None:
    claimed = agent.send(f"{task}/claim").json()
    assert claimed["handshake_required"] is False
    assert claimed["corrections"] == []


def test_pages_of_mail_are_whole(agent: Caller, bob: Caller) -> None:
    for n in range(7):
        agent.send(MAIL, inform(message_id=f"m-{n}"))
    found: list[str] = []
    url = f"{MAIL}?page_size=3"
    while url:
        page = bob.read(url)
        found += [one["message_id"] for one in page["results"]]
        url = page["next"]
    assert found == [f"m-{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("query", "path"),
    [("box=up", "box"), ("type=x", "type"), ("unanswered=1", "unanswered"), ("cursor=x", "cursor")],
)
def test_a_bad_filter_is_named(agent: Caller, query: str, path: str) -> None:
    refused = problem(agent.get(f"{MAIL}?{query}"), 422, "invalid")
    assert [one["path"] for one in refused["errors"]] == [path]


def test_mail_is_taken_in_a_paused_project_and_refused_in_an_archived_one(
    project: Project, agent: Caller, bob: Caller, sir: Caller
) -> None:
    sir.send("/api/projects/demo/pause")
    assert agent.send(MAIL, inform()).status_code == 201
    Project.objects.filter(pk=project.pk).update(status="archived")
    problem(agent.send(MAIL, inform(message_id="m-2")), 409, "project_archived")


def test_a_mention_in_a_comment_is_in_the_mailbox(agent: Caller, bob: Caller, task: str) -> None:
    agent.send(f"{task}/comments", {"body": "@bob the tests are yours"})
    (mail,) = bob.read(MAIL)["results"]
    assert (mail["type"], mail["expects_reply"]) == ("inform", False)
    assert mail["details"]["comment_type"] == "general"


def test_a_shared_document_is_written_with_if_match(
    agent: Caller, bob: Caller, task: str, outsider: Caller
) -> None:
    path = f"{task}/shared/design.md"
    made = agent.put(path, {"content": "one"}, format="json")
    assert made.status_code == 201
    assert made["ETag"] == '"1"'
    second = bob.put(path, {"content": "two"}, format="json", headers={"If-Match": '"1"'})
    assert second.status_code == 200
    stale = agent.put(path, {"content": "mine"}, format="json", headers={"If-Match": '"1"'})
    assert problem(stale, 412, "stale")["version"] == 2
    assert agent.read(path)["content"] == "two"
    assert agent.read(path, version="1")["author"] == "agent:worker"
    versions = agent.read(f"{path}/versions")["results"]
    assert [one["author"] for one in versions] == ["agent:worker", "agent:bob"]
    assert [one["name"] for one in agent.read(f"{task}/shared")["results"]] == ["design.md"]
    problem(outsider.get(path), 404, "not_found")
    problem(agent.get(f"{task}/shared/none"), 404, "not_found")
    unknown = agent.put(path, {"content": "x", "author": "bob"}, format="json")
    problem(unknown, 422, "unknown_fields")


# --- Waiting for a reply --------------------------------------------------------------------------


@pytest.fixture
async def door() -> AsyncIterator[LongPoll]:
    publisher.bind_loop(asyncio.get_running_loop())
    yield LongPoll(get_asgi_application())
    publisher.unbind_loop()


@database_sync_to_async
def reply_as_bob(message_id: str) -> None:
    bob = Agent.objects.get(name="bob")
    rows = Mail.objects.select_related("conversation", "project", "sender_agent")
    asked = rows.get(message_id=message_id)
    document = MailInput.model_validate(
        {"type": "reply", "message_id": "r-1", "content": "in fsm.go"}
    )
    post(document, bob, answered=asked)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k-1"}])
async def test_a_query_waits_for_its_reply(door: LongPoll, headers: dict[str, str]) -> None:
    token = await database_sync_to_async(make_two)()
    transport = httpx.ASGITransport(app=door)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=60,
        headers={"Authorization": f"Bearer {token}", **headers},
    ) as client:  # fmt: skip
        body = {"type": "request", "mode": "query", "to": "bob", "message_id": "q-1",
                "content": "which file?", "wait": 30}  # fmt: skip
        asking = asyncio.create_task(client.post("/api/mail/", json=body))
        await asyncio.wait_for(door.bell.listening.wait(), 10)
        await reply_as_bob("q-1")
        answer = await asyncio.wait_for(asking, 20)
        assert answer.status_code == 201
        document = answer.json()
        assert document["reply"]["content"] == "in fsm.go"
        assert document["conversation"]["status"] == "closed"
        assert "countersign-wait" not in answer.headers
        again = await client.post("/api/mail/", json=body)
        assert again.json()["reply"]["content"] == "in fsm.go"
    assert await Mail.objects.acount() == 2


def make_two() -> str:
    project = new_project("demo")
    create_agent(name="bob", projects=[project], actor=SYSTEM)
    return create_agent(name="alice", projects=[project], actor=SYSTEM)[1]


def test_no_task_is_left_without_a_project(agent: Caller, bob: Caller, medium: str) -> None:
    sent = agent.send(MAIL, inform(task=str(Task.objects.latest("pk")))).json()
    assert sent["task"] == medium.rpartition("/")[2]
