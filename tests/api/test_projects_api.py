"""Projects over REST: create, change, pause, resume."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Assignment, Project
from tests.api.callers import Caller, events, human_client, problem, session_client
from tests.factories import new_project

FIVE = {"thresholds": {"max_retries": 5}}
NONE = {"thresholds": {"max_retries": 0}}
SHOP = {"slug": "shop", "name": "Shop", "description": "sells", "policy": FIVE}


def test_created_project_is_readable_and_has_its_policy(sir: Caller) -> None:
    answer = sir.send("/api/projects/", SHOP)
    assert answer.status_code == 201
    made = answer.json()
    assert isinstance(made["id"], str)
    assert (made["slug"], made["status"], made["key_prefix"]) == ("shop", "active", "SHOP")
    assert made["policy"]["thresholds"]["max_retries"] == 5
    assert made["policy"]["thresholds"]["step_attempts"] == 2
    assert sir.read("/api/projects/shop/") == made
    assert events("project.created")[0].actor == "human:sir"


@pytest.mark.parametrize(
    ("change", "status", "code", "path"),
    [
        ({"slug": "Not A Slug"}, 422, "invalid", "slug"),
        ({"slug": ""}, 422, "invalid", "slug"),
        ({"policy": NONE}, 422, "policy_invalid", "thresholds.max_retries"),
        ({"policy": {"nope": 1}}, 422, "policy_invalid", "nope"),
        ({"nope": 1}, 422, "unknown_fields", "nope"),
        ({"language": "tlh"}, 422, "invalid", "language"),
        ({"workspace": "/etc"}, 422, "workspace", None),
        ({"workspace": "../outside"}, 422, "workspace", None),
    ],
)
def test_bad_project_is_refused_whole(
    sir: Caller, change: dict[str, Any], status: int, code: str, path: str | None
) -> None:
    found = problem(sir.send("/api/projects/", SHOP | change), status, code)
    if path is not None:
        assert found["errors"][0]["path"] == path
    assert not Project.objects.filter(slug="shop").exists()


def test_taken_slug_is_409(sir: Caller, project: Project) -> None:
    problem(sir.send("/api/projects/", {"slug": "demo"}), 409, "slug_taken")


def test_policy_patch_merges_and_is_versioned(sir: Caller, project: Project) -> None:
    path = "/api/projects/demo/"
    seen = sir.get(path)
    tag = seen["ETag"]
    patch = {"policy": {"thresholds": {"fix_rounds": 7}}, "name": "Renamed"}
    changed = sir.patch(path, patch, format="json", headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["name"] == "Renamed"
    assert changed.json()["policy"]["thresholds"]["fix_rounds"] == 7
    assert changed.json()["policy_version"] == 2
    stale = sir.patch(path, {"name": "Again"}, format="json", headers={"If-Match": tag})
    assert problem(stale, 412, "stale")["version"] == 2
    body = {"name": "Again", "version": 1}
    problem(sir.patch(path, body, format="json"), 412, "stale")
    assert sir.read(path)["name"] == "Renamed"
    before = events("project.policy_changed")
    assert len(before) == 1
    assert before[0].after == {"thresholds": {"fix_rounds": 7}}


@pytest.mark.parametrize("tag", ['"x"', "nonsense", '"99999999999999999999"'])
def test_if_match_that_is_no_version_is_412(sir: Caller, project: Project, tag: str) -> None:
    answer = sir.patch(
        "/api/projects/demo/", {"name": "n"}, format="json", headers={"If-Match": tag}
    )
    problem(answer, 412, "stale")


def test_patch_changes_all_or_nothing(sir: Caller, project: Project) -> None:
    body = {"name": "New", "policy": {"thresholds": {"fix_rounds": "many"}}}
    problem(sir.patch("/api/projects/demo/", body, format="json"), 422, "policy_invalid")
    problem(sir.patch("/api/projects/demo/", {"name": " "}, format="json"), 422, "invalid")
    problem(sir.patch("/api/projects/demo/", {"language": "xx"}, format="json"), 422, "invalid")
    assert sir.read("/api/projects/demo/")["name"] == "demo"
    assert sir.read("/api/projects/demo/")["version"] == 1


def test_token_that_may_not_decide_does_not_change_the_policy(project: Project) -> None:
    plain = human_client("sir", can_decide=False)
    path = "/api/projects/demo/"
    assert plain.patch(path, {"name": "n"}, format="json").status_code == 200
    widen = {"policy": {"commands": {"allow": [["rm"]]}}}
    problem(plain.patch(path, widen, format="json"), 403, "token_cannot_decide")
    widened = {"slug": "new", **widen}
    problem(plain.send("/api/projects/", widened), 403, "token_cannot_decide")
    assert plain.send("/api/projects/", {"slug": "new"}).status_code == 201


def test_pause_and_resume_are_harmless_to_repeat(sir: Caller, project: Project) -> None:
    pause, resume = "/api/projects/demo/pause", "/api/projects/demo/resume"
    paused = sir.send(pause, {"reason": "lunch"}).json()
    assert (paused["status"], paused["status_reason"]) == ("suspended", "lunch")
    assert sir.send(pause).json()["version"] == paused["version"]
    assert sir.send(resume).json()["status"] == "active"
    assert sir.send(resume).json()["status"] == "active"
    assert len(events("project.suspended")) == len(events("project.active")) == 1
    problem(sir.send(pause, {"version": 1}), 412, "stale")


def test_suspended_project_takes_messages_and_lets_nothing_start(
    sir: Caller, agent: Caller, project: Project
) -> None:
    sir.send("/api/projects/demo/pause")
    made = agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    assert made.status_code == 201
    task = made.json()["task"]
    assert (task["ready"], task["not_ready_reason"]) == (False, "suspended")
    refused = agent.send(f"/api/projects/demo/tasks/{task['id']}/claim")
    assert problem(refused, 409, "project_suspended")["project_status"] == "suspended"
    assert agent.send("/api/assignments/claim").status_code == 204
    sir.send("/api/projects/demo/resume")
    assert agent.send(f"/api/projects/demo/tasks/{task['id']}/claim").status_code == 200


def test_suspended_project_says_that_it_still_drains(
    sir: Caller, agent: Caller, project: Project
) -> None:
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    agent.send("/api/assignments/claim")
    assert sir.send("/api/projects/demo/pause").json()["draining"] == 1
    assert sir.read("/api/projects/")["results"][0]["draining"] == 1


@pytest.mark.parametrize("status", ["completed", "archived", "safe_stop"])
def test_project_in_another_state_is_not_paused_or_resumed(
    sir: Caller, project: Project, status: str
) -> None:
    Project.objects.update(status=status)
    answer = sir.send("/api/projects/demo/resume")
    assert answer.status_code == 409
    if status != "completed":
        problem(answer, 409, f"project_{status}")
        problem(sir.send("/api/projects/demo/messages", {"text": "x"}), 409, f"project_{status}")
        problem(
            sir.patch("/api/projects/demo/", {"name": "n"}, format="json"), 409, f"project_{status}"
        )


def test_list_shows_what_the_caller_may_see_with_counts(
    sir: Caller, agent: Caller, outsider: Caller, project: Project
) -> None:
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    assert [one["slug"] for one in agent.read("/api/projects/")["results"]] == ["demo"]
    assert [one["slug"] for one in outsider.read("/api/projects/")["results"]] == ["elsewhere"]
    shown = sir.read("/api/projects/")["results"]
    assert [one["slug"] for one in shown] == ["demo", "elsewhere"]
    assert shown[0]["task_counts"] == {"pending": 1}
    assert "policy" not in shown[0]


def test_list_costs_the_same_queries_for_any_number(
    sir: Caller, project: Project, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        new_project(f"p{number}")
    with django_assert_max_num_queries(8):
        assert len(sir.read("/api/projects/")["results"]) == 13


def test_session_needs_the_csrf_token(project: Project) -> None:
    signed_in = session_client(csrf=True)
    problem(signed_in.send("/api/projects/demo/pause"), 403, "csrf_failed")
    assert Project.objects.get(slug="demo").status == "active"
    signed_in.cookies["countersign_csrf"] = "a" * 32
    answer = signed_in.send("/api/projects/demo/pause", X_CSRFToken="a" * 32)
    assert answer.status_code == 200


def test_leases_stand_still_while_the_project_is_paused(
    sir: Caller, agent: Caller, project: Project
) -> None:
    agent.send("/api/projects/demo/messages", {"text": "Implement it"})
    held = agent.send("/api/assignments/claim").json()
    sir.send("/api/projects/demo/pause")
    beat = agent.send(
        f"/api/assignments/{held['id']}/heartbeat", {"lease_token": held["lease_token"]}
    ).json()
    assert (beat["is_clock_stopped"], beat["lease_expires_at"]) == (True, None)
    sir.send("/api/projects/demo/resume")
    assert Assignment.objects.get(pk=held["id"]).lease_expires_at is not None
