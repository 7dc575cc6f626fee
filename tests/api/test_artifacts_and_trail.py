"""Artifacts, the event feed, the audit trail and the probes over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.enqueue import broker_answers
from orchestration.models import ArtifactRead, AuditSeal, Canary, Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.health import answer_canary
from tests.api.callers import Caller, events, problem
from tests.factories import agent_step, child, drive, execute, new_agent, submit_plan
from tests.services_up import RedisServer

ARTIFACTS = "/api/projects/demo/artifacts"
EVENTS = "/api/projects/demo/events"
AUDIT = "/api/projects/demo/audit"


@pytest.fixture
def root(project: Project) -> Task:
    """A plan whose first step is done with a locked artifact; the second waits for an agent."""
    planned = submit_plan(project, agent_step("a"), agent_step("b"))
    drive(project)
    execute(child(planned, "a"), new_agent("maker", project=project), "the <b>text</b> 文本")
    drive(project)
    return planned


def test_artifact_is_listed_and_downloaded_as_it_was_locked(agent: Caller, root: Task) -> None:
    [shown] = agent.read(ARTIFACTS)["results"]
    assert (shown["name"], shown["version"], shown["task"]) == (
        "work", 1, str(child(root, "a").pk),
    )  # fmt: skip
    answer = agent.get(shown["content_url"])
    assert answer.content.decode() == "the <b>text</b> 文本"
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert answer["ETag"] == f'"{shown["sha256"]}"'
    again = agent.get(shown["content_url"], headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


def test_lists_narrow_by_task_and_name(agent: Caller, root: Task) -> None:
    assert len(agent.read(ARTIFACTS, task=str(child(root, "a").pk))["results"]) == 1
    assert agent.read(ARTIFACTS, task=str(child(root, "b").pk))["results"] == []
    assert len(agent.read(ARTIFACTS, name="work")["results"]) == 1
    assert agent.read(ARTIFACTS, name="other")["results"] == []


def test_agents_read_is_recorded_for_what_it_works_on(
    agent: Caller, sir: Caller, root: Task
) -> None:
    [shown] = agent.read(ARTIFACTS)["results"]
    agent.get(shown["content_url"])
    sir.get(shown["content_url"])
    assert not ArtifactRead.objects.exists()
    held = agent.send("/api/assignments/claim").json()
    for _ in range(2):
        agent.get(f"{shown['content_url']}?assignment={held['id']}")
    read = ArtifactRead.objects.get()
    assert (read.task_id, read.assignment_id) == (child(root, "b").pk, int(held["id"]))
    assert [one.actor for one in events("artifact.read")] == ["agent:worker"]


def test_outsider_reads_no_artifact(agent: Caller, outsider: Caller, root: Task) -> None:
    [shown] = agent.read(ARTIFACTS)["results"]
    problem(outsider.get(shown["content_url"]), 404, "not_found")


def test_feed_gives_every_event_once_and_in_order(agent: Caller, root: Task) -> None:
    seal_events()
    position, found = 0, []
    while True:
        page = agent.read(EVENTS, after=str(position), page_size="7")
        found += [one["position"] for one in page["results"]]
        position = page["position"]
        if page["next"] is None:
            break
        assert f"after={position}" in page["next"]
    stored = AuditSeal.objects.filter(event__project=root.project_id).order_by("position")
    assert found == list(stored.values_list("position", flat=True))
    assert agent.read(EVENTS, after=str(position)) == {
        "results": [], "next": None, "previous": None, "position": position,
    }  # fmt: skip
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    seal_events()
    fresh = agent.read(EVENTS, after=str(position))["results"]
    assert min(one["position"] for one in fresh) > position


@pytest.mark.parametrize("after", ["-1", "x", "9" * 30, "1.5", "²"])
def test_feed_after_nothing_is_422(agent: Caller, after: str) -> None:
    problem(agent.get(f"{EVENTS}?after={after}"), 422, "invalid")


def test_events_of_other_projects_are_not_in_the_feed(
    agent: Caller, outsider: Caller, root: Task
) -> None:
    outsider.send("/api/projects/elsewhere/messages", {"text": "Implement it"})
    seal_events()
    projects = {one["project"] for one in agent.read(EVENTS, page_size="200")["results"]}
    assert projects == {str(root.project_id)}


def test_trail_is_newest_first_and_narrows(agent: Caller, root: Task) -> None:
    seal_events()
    page = agent.read(AUDIT, page_size="5")
    positions = [one["position"] for one in page["results"]]
    assert positions == sorted(positions, reverse=True)
    older = agent.read(page["next"])
    assert older["results"][0]["position"] < positions[-1]
    assert agent.read(older["previous"])["results"] == page["results"]
    moves = agent.read(AUDIT, kind="task.done", page_size="200")["results"]
    assert [one["task"] for one in moves] == [str(child(root, "a").pk)]
    assert {one["kind"].partition(".")[0] for one in agent.read(AUDIT, kind="task")["results"]} == {
        "task"
    }
    mine = agent.read(AUDIT, actor="agent:maker", page_size="200")["results"]
    assert "task.claimed" in {one["kind"] for one in mine}
    about = agent.read(AUDIT, task=str(root.pk), page_size="200")["results"]
    assert {one["task"] for one in about} == {str(root.pk)}


def test_chain_is_proved_by_people(agent: Caller, viewer: Caller, root: Task) -> None:
    seal_events()
    proof = viewer.send(f"{AUDIT}/verify").json()
    assert (proof["valid"], proof["fault"]) == (True, None)
    assert proof["checked"] == AuditSeal.objects.count()
    problem(agent.send(f"{AUDIT}/verify"), 403, "humans_only")


def test_archived_project_is_still_read_and_proved(sir: Caller, agent: Caller, root: Task) -> None:
    seal_events()
    Project.objects.filter(pk=root.project_id).update(status="archived")
    assert sir.send(f"{AUDIT}/verify").json()["valid"] is True
    assert agent.get(EVENTS).status_code == 200
    path = f"/api/projects/demo/tasks/{root.pk}/comments"
    problem(agent.send(path, {"body": "x"}), 409, "project_archived")


# --- Probes ---------------------------------------------------------------------------------------


def test_alive_says_nothing_else(client: Any) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})
    assert answer["Cache-Control"] == "no-store"
    assert client.post("/healthz").status_code == 405


def test_ready_when_everything_answers(client: Any, db: None) -> None:
    answer_canary()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    checks = answer.json()["checks"]
    assert checks.keys() == {"database", "broker", "canary", "sealer", "sandbox"}
    assert all(check["ok"] for check in checks.values())


def test_probe_tells_which_sandbox_holds(client: Any, db: None, settings: Any) -> None:
    answer_canary()
    told = client.get("/readyz").json()["checks"]["sandbox"]
    assert told["mechanism"] in ("bubblewrap", "uid", "landlock")
    assert told["mechanism"] not in told["tried"]
    settings.COUNTERSIGN_SANDBOX = "none"
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["sandbox"]["mechanism"]) == (200, None)


@pytest.mark.parametrize("age", [61, 3600, None])
def test_deaf_worker_turns_the_probe_red(client: Any, db: None, age: int | None) -> None:
    if age is not None:
        answered = timezone.now() - timedelta(seconds=age)
        Canary.objects.create(name="workers", answered_at=answered)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "not_ready"
    assert answer.json()["checks"]["canary"]["ok"] is False
    assert answer.json()["checks"]["database"]["ok"] is True


def test_lagging_sealer_turns_the_probe_red(client: Any, agent: Caller) -> None:
    answer_canary()
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    assert client.get("/readyz").status_code == 200
    # Events are never changed, so time has to pass instead.
    with time_machine.travel(timezone.now() + timedelta(seconds=45), tick=False):
        answer_canary()
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["sealer"]["lag_seconds"] > 30


@pytest.mark.faults
def test_broker_answers_until_it_is_gone(private_redis: RedisServer) -> None:
    url = f"{private_redis.url}/0"
    assert broker_answers(url)
    private_redis.kill()
    assert not broker_answers(url)
    assert broker_answers()


def test_metrics_count_rows_and_refusals(client: Any, agent: Caller) -> None:
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    agent.send("/api/projects/demo/messages", {"text": ""})
    text = client.get("/metrics").content.decode()
    assert 'countersign_tasks{status="pending"} 1.0' in text
    assert 'countersign_projects{status="archived"} 0.0' in text
    assert 'countersign_api_refusals_total{code="invalid",status="422"}' in text
    assert "countersign_canary_age_seconds -1.0" in text
    assert "demo" not in text
