"""Experiences and wiki: written, found in both languages, reviewed by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from orchestration.models import KnowledgeTerm, Project, WikiVersion
from tests.api.callers import Caller, agent_client, events, facts, problem

EXPERIENCES = "/api/projects/demo/experiences"
WIKI = "/api/projects/demo/wiki"


def written(caller: Caller, title: str, body: str = "") -> dict[str, Any]:
    answer = caller.send(EXPERIENCES, {"title": title, "body": body})
    assert answer.status_code == 201, answer.content
    document: dict[str, Any] = answer.json()
    return document


def found(caller: Caller, words: str, path: str = EXPERIENCES) -> list[str]:
    return [row["title"] for row in caller.read(path, q=words)["results"]]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("数据库迁移", ["数据库的迁移要先备份"]),
        ("备份", ["数据库的迁移要先备份"]),
        ("租", ["租约过期要续租"]),
        ("leases", ["A lease needs a heartbeat"]),
        ("HEARTBEAT leasing", ["A lease needs a heartbeat"]),
        ("ＬＥＡＳＥ", ["A lease needs a heartbeat"]),
        ("续租 lease", ["租约过期要续租", "A lease needs a heartbeat"]),
        ("量子计算", []),
        ("the of", []),
        ("100%_", []),
    ],
)
def test_search_finds_chinese_and_english(agent: Caller, words: str, wanted: Sequence[str]) -> None:
    for title in ("数据库的迁移要先备份", "租约过期要续租", "A lease needs a heartbeat"):
        written(agent, title)
    assert sorted(found(agent, words)) == sorted(wanted)


def test_best_answer_comes_first_and_the_newer_of_two_alike(agent: Caller) -> None:
    written(agent, "Cache keys", "lease")
    written(agent, "Lease renewal", "lease lease heartbeat")
    written(agent, "Lease one", "tea")
    written(agent, "Lease two", "tea")
    assert found(agent, "lease") == ["Lease renewal", "Lease two", "Lease one", "Cache keys"]


def test_agents_words_are_unreviewed_until_somebody_else_accepts_them(
    agent: Caller, project: Project, sir: Caller
) -> None:
    one = written(agent, "Retry with a key")
    assert (one["status"], one["author"]) == ("unreviewed", "agent:worker")
    review = f"{EXPERIENCES}/{one['id']}/review"
    problem(agent.send(review, {"verdict": "accept"}), 403, "own_words")
    reviewer = agent_client(project, name="reviewer", scopes=["review"])
    accepted = reviewer.send(review, {"verdict": "accept", "version": one["version"]})
    assert accepted.status_code == 200, accepted.content
    assert accepted.json()["status"] == "accepted"
    assert accepted.json()["reviewed_by"] == "agent:reviewer"
    [event] = events("experience.accepted")
    assert (event.actor, event.before) == ("agent:reviewer", {"status": "unreviewed"})
    sir.send(review, {"verdict": "accept"})
    assert len(events("experience.accepted")) == 1


@pytest.mark.parametrize("scope", ["observe", "execute", "plan", "orchestrate"])
def test_only_sir_and_reviewers_review(
    agent: Caller, project: Project, viewer: Caller, scope: str
) -> None:
    one = written(agent, "Retry with a key")
    other = agent_client(project, name="other", scopes=[scope])
    for caller in (other, viewer):
        answer = caller.send(f"{EXPERIENCES}/{one['id']}/review", {"verdict": "accept"})
        assert answer.status_code == 403, answer.content


def test_rejected_is_found_no_more_stays_readable_and_can_come_back(
    agent: Caller, sir: Caller
) -> None:
    one = written(agent, "Never test on Fridays")
    review = f"{EXPERIENCES}/{one['id']}/review"
    refused = problem(sir.send(review, {"verdict": "reject"}), 422, "invalid")
    assert refused["errors"][0]["path"] == "reason"
    sir.send(review, {"verdict": "reject", "reason": "superstition"})
    assert found(agent, "Fridays") == []
    assert agent.read(EXPERIENCES)["results"] == []
    assert agent.read(f"{EXPERIENCES}/{one['id']}")["status"] == "rejected"
    assert len(agent.read(EXPERIENCES, status="rejected")["results"]) == 1
    assert events("experience.rejected")[0].why == "superstition"
    sir.send(review, {"verdict": "accept"})
    assert found(agent, "Fridays") == ["Never test on Fridays"]


def test_what_sir_writes_counts_at_once(project: Project, sir: Caller) -> None:
    assert written(sir, "Serve tea")["status"] == "accepted"


def test_every_version_of_a_page_stays_with_its_author(agent: Caller, sir: Caller) -> None:
    page = sir.send(WIKI, {"name": "支付-guide", "title": "Payments", "body": "one client"})
    assert page.status_code == 201, page.content
    path = f"{WIKI}/支付-guide"
    edited = agent.put(path, {"body": "two clients"}, headers={"If-Match": page["ETag"]})
    assert edited.status_code == 200, edited.content
    assert edited.json() | {"status": "unreviewed", "version": 2} == edited.json()
    assert edited.json()["title"] == "Payments"
    stale = agent.put(path, {"body": "three"}, headers={"If-Match": page["ETag"]})
    problem(stale, 412, "stale")
    versions = agent.read(f"{path}/versions")["results"]
    assert [(row["author"], row["body"]) for row in versions] == [
        ("human:sir", "one client"), ("agent:worker", "two clients"),
    ]  # fmt: skip
    assert found(agent, "two clients", WIKI) == ["Payments"]
    assert found(agent, "one", WIKI) == []
    sir.send(f"{path}/review", {"verdict": "accept", "version": 2})
    assert agent.read(path)["status"] == "accepted"
    problem(sir.send(f"{path}/review", {"verdict": "accept", "version": 1}), 412, "stale")


def test_a_page_name_is_taken_once(agent: Caller) -> None:
    assert agent.send(WIKI, {"name": "a", "body": "x"}).status_code == 201
    problem(agent.send(WIKI, {"name": "a", "body": "y"}), 409, "page_taken")
    assert WikiVersion.objects.count() == 1


@pytest.mark.parametrize("name", ["", "a/b", "a b", "x" * 201, "../etc", "a\n", ".", ".."])
def test_a_page_name_is_an_address(agent: Caller, name: str) -> None:
    problem(agent.send(WIKI, {"name": name, "body": "x"}), 422, "invalid")


def test_unknown_fields_and_empty_titles_are_refused(agent: Caller) -> None:
    answer = agent.send(EXPERIENCES, {"title": "x", "colour": "red"})
    assert problem(answer, 422, "unknown_fields")["errors"][0]["path"] == "colour"
    problem(agent.send(EXPERIENCES, {"title": "  "}), 422, "invalid")
    problem(agent.get(f"{EXPERIENCES}?status=new"), 422, "invalid")


def test_repeat_of_a_keyed_write_is_one_experience(agent: Caller) -> None:
    answers = [
        agent.send(EXPERIENCES, {"title": "Once"}, Idempotency_Key="k1").json()["id"]
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(events("experience.written")) == 1


def test_experience_names_the_task_it_comes_from(agent: Caller, task: str) -> None:
    key = agent.read(task)["key"]
    one = agent.send(EXPERIENCES, {"title": "From it", "task": key}).json()
    assert one["task"] == agent.read(task)["id"]
    assert facts(events("experience.written")[0])["title"] == "From it"
    problem(agent.send(EXPERIENCES, {"title": "From it", "task": "DEMO-99"}), 404, "not_found")


def test_outsider_sees_and_finds_nothing(agent: Caller, outsider: Caller) -> None:
    one = written(agent, "Secret tea")
    agent.send(WIKI, {"name": "a", "body": "Secret tea"})
    for path in (
        EXPERIENCES,
        f"{EXPERIENCES}/{one['id']}",
        WIKI,
        f"{WIKI}/a",
        f"{WIKI}/a/versions",
    ):
        problem(outsider.get(path), 404, "not_found")
    problem(outsider.send(EXPERIENCES, {"title": "x"}), 404, "not_found")
    problem(outsider.send(f"{WIKI}/a/review", {"verdict": "accept"}), 404, "not_found")
    elsewhere = "/api/projects/elsewhere/experiences"
    assert outsider.read(elsewhere, q="tea")["results"] == []
    problem(outsider.get(f"{elsewhere}/{one['id']}"), 404, "not_found")


def test_observers_and_viewers_only_read(project: Project, viewer: Caller) -> None:
    observer = agent_client(project, name="observer", scopes=["observe"])
    for caller in (observer, viewer):
        assert caller.read(EXPERIENCES)["results"] == []
        assert caller.send(EXPERIENCES, {"title": "x"}).status_code == 403
        assert caller.send(WIKI, {"name": "x", "body": "x"}).status_code == 403


def test_index_holds_terms_for_what_is_there_only(agent: Caller, sir: Caller) -> None:
    agent.send(WIKI, {"name": "a", "body": "lease renewal"})
    agent.put(f"{WIKI}/a", {"body": "tea"})
    terms = set(KnowledgeTerm.objects.values_list("term", flat=True))
    assert "tea" in terms
    assert "renewal" not in terms
