"""Sir's inbox over REST: read, decide, bulk, seen, draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from orchestration.models import Decision, DecisionView, Project, Task
from orchestration.services.inbox import open_decision
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import DecisionKind
from tests.api.callers import Caller, events, human_client, problem, session_client
from tests.factories import agent_step, child, drive, step, submit_plan

INBOX = "/api/decisions/"
MEMBERS = {
    "id", "kind", "priority", "status", "version", "digest", "project", "task", "question",
    "content", "options", "evidence", "impact", "blocked_tasks", "deadline", "on_expiry",
    "created_at", "decided_by", "decided_at", "verdict", "reason",
}  # fmt: skip
FAILING = {"severity": "medium", "fix": {"description": "make it", "commands": ["touch fixed"]}}


@pytest.fixture
def defect(project: Project, sir: Caller) -> dict[str, Any]:
    """An open Medium defect on a step that another waits for."""
    test = ["python3", "-c", "import pathlib, sys; sys.exit(not pathlib.Path('fixed').exists())"]
    submit_plan(
        project,
        {"id": "a", "action": "do a", "run": [{"argv": test}], "on_failure": FAILING},
        step("b", after=["a"]),
    )
    drive(project)
    [found] = sir.read(INBOX, status="open")["results"]
    opened: dict[str, Any] = found
    return opened


@pytest.fixture
def question(project: Project, agent: Caller) -> Callable[[str], Decision]:
    """Make an agent ask Sir something about a task of its own."""

    def ask(text: str) -> Decision:
        made = agent.send("/api/projects/demo/tasks", {"title": text, "route": "direct"}).json()
        path = f"/api/projects/demo/tasks/{made['id']}"
        agent.send(f"{path}/claim")
        agent.send(f"{path}/status", {"status": "waiting_human", "detail": text})
        return Decision.objects.get(task=made["id"])

    return ask


def verdict(shown: Any, name: str, **more: Any) -> dict[str, Any]:
    """A verdict on exactly what was shown."""
    is_document = isinstance(shown, dict)
    version = shown["version"] if is_document else shown.version
    digest = shown["digest"] if is_document else shown.digest
    return {"verdict": name, "version": version, "digest": digest, **more}


def test_decision_has_every_member_that_clients_rely_on(
    sir: Caller, viewer: Caller, defect: dict[str, Any]
) -> None:
    assert defect.keys() >= MEMBERS
    one = sir.read(f"{INBOX}{defect['id']}/")
    assert {**one, "impact": []} == defect
    assert defect["blocked_tasks"] == 1
    assert [(one["step_key"], one["effect"]) for one in one["impact"]] == [("b", "freed")]
    option = defect["options"][0]
    assert option["verdict"] == "approve"
    assert option.keys() == {
        "verdict", "label", "consequences", "requires_reason", "destructive",
    }  # fmt: skip
    assert option["label"]["text"] == "Approve the fix"
    assert option["consequences"][0].keys() == {"code", "params", "text"}
    assert viewer.read(f"{INBOX}{defect['id']}/") == one


def test_texts_come_in_the_readers_language(sir: Caller, defect: dict[str, Any]) -> None:
    answer = sir.get(f"{INBOX}{defect['id']}/", headers={"Accept-Language": "zh-hans"})
    label = answer.json()["options"][0]["label"]
    assert label["code"] == "medium_defect.approve"
    assert label["text"] != "Approve the fix"
    assert answer.json()["digest"] == defect["digest"]


def test_approved_fix_is_applied_and_the_task_finishes(
    sir: Caller, project: Project, defect: dict[str, Any]
) -> None:
    answer = sir.send(f"{INBOX}{defect['id']}/decide", verdict(defect, "approve"))
    assert answer.status_code == 200
    decided = answer.json()
    assert (decided["status"], decided["verdict"], decided["decided_by"], decided["repeat"]) == (
        "decided", "approve", "sir", False,
    )  # fmt: skip
    drive(project)
    assert Task.objects.get(parent__isnull=True).status == "done"
    assert [one.actor for one in events("decision.decided")] == ["human:sir"]


def test_identical_repeat_is_200_and_another_verdict_gets_the_standing_one(
    sir: Caller, defect: dict[str, Any]
) -> None:
    path = f"{INBOX}{defect['id']}/decide"
    first = sir.send(path, verdict(defect, "accept_as_is", reason="good enough"))
    assert first.status_code == 200
    again = sir.send(path, verdict(defect, "accept_as_is", reason="good enough"))
    assert (again.status_code, again.json()["repeat"]) == (200, True)
    found = problem(sir.send(path, verdict(defect, "approve")), 409, "already_decided")
    assert found["standing"]["verdict"] == "accept_as_is"
    assert found["standing"]["decided_by"] == "sir"
    assert found["standing"]["decided_at"]
    other = human_client("second-sir")
    same = other.send(path, verdict(defect, "accept_as_is", reason="good enough"))
    problem(same, 409, "already_decided")
    assert len(events("decision.decided")) == 1


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"version": 9}, 412, "stale"),
        ({"digest": "0" * 64}, 412, "stale"),
        ({"verdict": "sign"}, 422, "invalid"),
        ({"verdict": "reject", "reason": "  "}, 422, "invalid"),
        ({"verdict": "request_changes"}, 422, "invalid"),
        ({"reason": "x" * 10_001}, 422, "invalid"),
        ({"decided_by": "sir"}, 422, "unknown_fields"),
        ({"version": "1"}, 422, "invalid"),
    ],
)
def test_verdict_that_cannot_stand_changes_nothing(
    sir: Caller, defect: dict[str, Any], change: dict[str, Any], status: int, code: str
) -> None:
    body = verdict(defect, "approve") | change
    problem(sir.send(f"{INBOX}{defect['id']}/decide", body), status, code)
    assert sir.read(f"{INBOX}{defect['id']}/")["status"] == "open"
    assert events("decision.decided") == []


@pytest.mark.parametrize("missing", ["version", "digest", "verdict"])
def test_verdict_without_what_was_seen_is_422(
    sir: Caller, defect: dict[str, Any], missing: str
) -> None:
    body = verdict(defect, "approve")
    del body[missing]
    found = problem(sir.send(f"{INBOX}{defect['id']}/decide", body), 422, "invalid")
    assert found["errors"] == [{"path": missing, "message": "is required"}]


def test_if_match_stands_above_the_body(sir: Caller, defect: dict[str, Any]) -> None:
    path = f"{INBOX}{defect['id']}/decide"
    problem(sir.send(path, verdict(defect, "approve"), If_Match='"7"'), 412, "stale")


def test_decided_comes_before_stale_and_expired_before_stale(
    sir: Caller, defect: dict[str, Any], question: Callable[[str], Decision]
) -> None:
    late = question("Which?")
    Decision.objects.filter(pk=late.pk).update(deadline=timezone.now())
    body = verdict(late, "answer", reason="Blue.") | {"version": 9}
    problem(sir.send(f"{INBOX}{late.pk}/decide", body), 409, "decision_closed")
    path = f"{INBOX}{defect['id']}/decide"
    sir.send(path, verdict(defect, "approve"))
    problem(sir.send(path, verdict(defect, "reject", reason="x") | {"version": 9}), 409,
            "already_decided")  # fmt: skip


def test_content_that_does_not_match_its_digest_cannot_be_signed(
    sir: Caller, defect: dict[str, Any]
) -> None:
    Decision.objects.update(question="Approve something else?")
    problem(sir.send(f"{INBOX}{defect['id']}/decide", verdict(defect, "approve")), 422, "invalid")


def test_session_with_csrf_decides_and_without_does_not(defect: dict[str, Any]) -> None:
    path = f"{INBOX}{defect['id']}/decide"
    signed_in = session_client(csrf=True)
    problem(signed_in.send(path, verdict(defect, "approve")), 403, "csrf_failed")
    signed_in.cookies["countersign_csrf"] = "a" * 32
    answer = signed_in.send(path, verdict(defect, "approve"), X_CSRFToken="a" * 32)
    assert answer.status_code == 200


def test_viewer_and_plain_token_read_but_never_decide(
    viewer: Caller, agent: Caller, defect: dict[str, Any]
) -> None:
    plain = human_client("sir", can_decide=False)
    path = f"{INBOX}{defect['id']}/"
    body = verdict(defect, "approve")
    bulk = {"verdict": "approve", "items": [{k: defect[k] for k in ("id", "version", "digest")}]}
    for caller, code in (
        (viewer, "sir_only"),
        (plain, "token_cannot_decide"),
        (agent, "humans_only"),
    ):
        problem(caller.send(f"{path}decide", body), 403, code)
        problem(caller.send(f"{INBOX}bulk", bulk), 403, code)
        problem(caller.put(f"{path}draft", {"text": "x"}, format="json"), 403, code)
    assert plain.get(path).status_code == viewer.get(path).status_code == 200
    problem(agent.get(path), 403, "humans_only")
    problem(agent.send(f"{path}seen"), 403, "humans_only")
    assert len(events("permission.refused")) == 11


@pytest.mark.parametrize("method", ["get", "head"])
def test_reading_decides_nothing(sir: Caller, defect: dict[str, Any], method: str) -> None:
    for name in ("", "decide", "seen", "draft", "bulk"):
        getattr(sir, method)(f"{INBOX}{defect['id']}/{name}", {"verdict": "approve"})
    assert sir.read(f"{INBOX}{defect['id']}/")["status"] == "open"
    assert not DecisionView.objects.exists()


def test_list_filters_and_shows_the_newest_first(
    sir: Caller, defect: dict[str, Any], question: Callable[[str], Decision]
) -> None:
    asked = question("Which?")
    ids = [one["id"] for one in sir.read(INBOX)["results"]]
    assert ids == [str(asked.pk), defect["id"]]
    by_kind = sir.read(INBOX, kind="medium_defect")["results"]
    assert [one["id"] for one in by_kind] == [defect["id"]]
    assert len(sir.read(INBOX, project="demo")["results"]) == 2
    assert sir.read(INBOX, status="decided")["results"] == []
    assert [one["id"] for one in sir.read(INBOX, task=str(asked.task_id))["results"]] == [
        str(asked.pk)
    ]
    assert sir.read(INBOX, task="²")["results"] == []
    for bad in ("status=done", "kind=letter"):
        problem(sir.get(f"{INBOX}?{bad}"), 422, "invalid")
    problem(sir.get(f"{INBOX}?project=nope"), 404, "not_found")
    problem(sir.get(f"{INBOX}999/"), 404, "not_found")


def test_list_costs_the_same_queries_for_any_number(
    sir: Caller, question: Callable[[str], Decision], django_assert_max_num_queries: Any
) -> None:
    for number in range(8):
        question(f"Which {number}?")
    with django_assert_max_num_queries(9):
        assert len(sir.read(INBOX)["results"]) == 8


def test_seen_and_draft_are_each_persons_own(
    sir: Caller, viewer: Caller, defect: dict[str, Any]
) -> None:
    path = f"{INBOX}{defect['id']}/"
    first = sir.send(f"{path}seen").json()
    assert first["seen_at"]
    assert sir.send(f"{path}seen").json()["seen_at"] == first["seen_at"]
    kept = sir.put(f"{path}draft", {"text": "还没写完"}, format="json").json()
    assert (kept["draft"], kept["seen_at"]) == ("还没写完", first["seen_at"])
    assert viewer.send(f"{path}seen").json()["draft"] == ""
    assert DecisionView.objects.count() == 2
    long = sir.put(f"{path}draft", {"text": "x" * 10_001}, format="json")
    problem(long, 422, "invalid")
    assert sir.read(path)["version"] == defect["version"]


def test_bulk_applies_what_it_can_and_reports_the_rest(
    sir: Caller, question: Callable[[str], Decision]
) -> None:
    asked = [question(f"Which {number}?") for number in range(5)]
    items = [{"id": str(one.pk), "version": 1, "digest": one.digest} for one in asked]
    items[1]["version"] = 7
    items[2]["digest"] = "0" * 64
    items[3]["id"] = "999999"
    items[4]["reason"] = "Green."
    body = {"verdict": "answer", "reason": "Blue.", "items": items}
    results = sir.send(f"{INBOX}bulk", body).json()["results"]
    assert [one["status"] for one in results] == [200, 412, 412, 404, 200]
    assert [one["problem"]["code"] for one in results[1:4]] == ["stale", "stale", "not_found"]
    assert results[0]["decision"]["verdict"] == "answer"
    reasons = dict(Decision.objects.values_list("pk", "reason"))
    assert [reasons[one.pk] for one in asked] == ["Blue.", "", "", "", "Green."]


def test_bulk_is_for_one_kind_and_each_item_once(
    sir: Caller, defect: dict[str, Any], question: Callable[[str], Decision]
) -> None:
    asked = question("Which?")
    one = {"id": str(asked.pk), "version": 1, "digest": asked.digest}
    other = {key: defect[key] for key in ("id", "version", "digest")}
    for items in ([one, other], [one, one], []):
        body = {"verdict": "approve", "items": items}
        problem(sir.send(f"{INBOX}bulk", body), 422, "invalid")
    assert Decision.objects.filter(status="open").count() == 2


def test_stops_are_never_decided_in_bulk(sir: Caller, project: Project) -> None:
    with unit_of_work(SYSTEM) as work:
        stop = open_decision(
            work, kind=DecisionKind.MAX_RETRIES, project=project, task=None,
            title="t", question="What now?", content={}, is_p0=True,
        )  # fmt: skip
    body = {
        "verdict": "abort",
        "reason": "enough",
        "items": [{"id": str(stop.pk), "version": 1, "digest": stop.digest}],
    }
    problem(sir.send(f"{INBOX}bulk", body), 422, "invalid")
    assert sir.read(f"{INBOX}{stop.pk}/")["priority"] == 1


def test_approval_of_commands_lets_them_run(sir: Caller, agent: Caller, project: Project) -> None:
    plan = {"summary": "s", "steps": [{"id": "1", "action": "touch", "run": ["touch made.txt"]}]}
    agent.send("/api/projects/demo/tasks", {"title": "t", "plan": plan})
    drive(project)
    [asked] = sir.read(INBOX)["results"]
    assert asked["kind"] == "command_approval"
    root = Task.objects.get(parent__isnull=True)
    leaf = agent.read(f"/api/projects/demo/tasks/{child(root, '1').pk}")
    assert leaf["not_ready_reason"] == "awaiting_command_approval"
    sir.send(f"{INBOX}{asked['id']}/decide", verdict(asked, "approve"))
    drive(project)
    assert child(root, "1").status == "done"


def test_every_open_row_is_in_the_list(
    sir: Caller, agent: Caller, project: Project, question: Callable[[str], Decision]
) -> None:
    question("One?")
    gone = question("Two?")
    root = submit_plan(project, agent_step("a"))
    drive(project)
    assert root.pk
    sir.send(f"/api/projects/demo/tasks/{gone.task_id}/cancel", {"reason": "no"})
    stored = set(Decision.objects.filter(status="open").values_list("pk", flat=True))
    listed = {int(one["id"]) for one in sir.read(INBOX, status="open")["results"]}
    assert listed == stored


def test_answer_to_a_question_says_that_it_needs_words(
    sir: Caller, question: Callable[[str], Decision]
) -> None:
    item = sir.read(f"/api/decisions/{question('Which colour?').pk}/")
    needs = {one["verdict"]: one["requires_reason"] for one in item["options"]}
    assert needs == {"answer": True, "approve": False, "reject": True, "abort": True}
    seen = {"version": item["version"], "digest": item["digest"]}
    bare = sir.send(f"/api/decisions/{item['id']}/decide", {"verdict": "answer", **seen})
    assert problem(bare, 422, "invalid")["errors"][0]["path"] == "reason"
    words = {"verdict": "answer", "reason": "Teal", **seen}
    assert sir.send(f"/api/decisions/{item['id']}/decide", words).status_code == 200
