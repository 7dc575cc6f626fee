"""Who may do what: the whole table of endpoints against every kind of caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from orchestration.access import role_of, visible_decisions, visible_projects
from orchestration.models import AuditEvent, Project
from tests.api.callers import Caller, agent_client, human_client, person, problem
from tests.factories import new_project

T = "/api/projects/demo/tasks/DEMO-1"
WRITES: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "create project": ("POST", "/api/projects/", frozenset({"sir"})),
    "change project": ("PATCH", "/api/projects/demo/", frozenset({"sir"})),
    "archive": ("POST", "/api/projects/demo/archive", frozenset({"sir"})),
    "pause": ("POST", "/api/projects/demo/pause", frozenset({"sir"})),
    "resume": ("POST", "/api/projects/demo/resume", frozenset({"sir"})),
    "message": ("POST", "/api/projects/demo/messages", frozenset({"sir", "orchestrate"})),
    "create task": ("POST", "/api/projects/demo/tasks", frozenset({"sir", "orchestrate"})),
    "import": ("POST", "/api/projects/demo/tasks/import", frozenset({"sir", "orchestrate"})),
    "claim task": ("POST", f"{T}/claim", frozenset({"execute"})),
    "heartbeat": ("POST", f"{T}/heartbeat", frozenset({"execute"})),
    "release": ("POST", f"{T}/release", frozenset({"execute"})),
    "status": ("POST", f"{T}/status", frozenset({"execute"})),
    "output": ("POST", f"{T}/outputs", frozenset({"execute"})),
    "progress": ("POST", f"{T}/progress", frozenset({"execute"})),
    "comment": (
        "POST", f"{T}/comments", frozenset({"sir", "execute", "plan", "review", "orchestrate"}),
    ),
    "deviation": ("POST", f"{T}/deviations", frozenset({"sir", "plan"})),
    "package": ("POST", f"{T}/validation", frozenset({"sir", "review", "orchestrate"})),
    "experience": (
        "POST", "/api/projects/demo/experiences",
        frozenset({"sir", "execute", "plan", "review", "orchestrate"}),
    ),
    "wiki page": (
        "POST", "/api/projects/demo/wiki",
        frozenset({"sir", "execute", "plan", "review", "orchestrate"}),
    ),
    "cancel": ("POST", f"{T}/cancel", frozenset({"sir"})),
    "replan": ("POST", f"{T}/replan", frozenset({"sir"})),
    "verify": ("POST", "/api/projects/demo/audit/verify", frozenset({"sir", "viewer"})),
    "decide": ("POST", "/api/decisions/1/decide", frozenset({"sir"})),
    "draft": ("PUT", "/api/decisions/1/draft", frozenset({"sir"})),
    "bulk": ("POST", "/api/decisions/bulk", frozenset({"sir"})),
    "seen": ("POST", "/api/decisions/1/seen", frozenset({"sir", "viewer"})),
}  # fmt: skip
CALLERS = ("sir", "viewer", "observe", "execute", "plan", "review", "orchestrate")
READS = (
    "/api/projects/",
    "/api/projects/demo/",
    "/api/projects/demo/tasks",
    "/api/projects/demo/tasks?view=master",
    "/api/projects/demo/events",
    "/api/projects/demo/audit",
    "/api/projects/demo/artifacts",
    "/api/projects/demo/control-commands",
    f"{T}/validation",
    "/api/projects/demo/experiences",
    "/api/projects/demo/wiki",
    f"{T}/bootstrap",
)


@pytest.fixture
def caller_of(project: Project) -> Callable[[str], Caller]:
    """Make one of the callers by its name; the project has one task and no decision."""
    agent_client(project, name="author").send(
        "/api/projects/demo/messages", {"text": "Implement it"}
    )

    def make(kind: str) -> Caller:
        if kind in ("sir", "viewer"):
            return human_client(kind, kind)
        return agent_client(project, name=f"only-{kind}", scopes=[kind])

    return make


@pytest.mark.parametrize("kind", CALLERS)
@pytest.mark.parametrize("action", WRITES)
def test_only_those_in_the_table_may_write(
    caller_of: Callable[[str], Caller], action: str, kind: str
) -> None:
    method, path, allowed = WRITES[action]
    caller = caller_of(kind)
    before = AuditEvent.objects.exclude(kind="agent.created").count()
    answer = caller.generic(method, path, "{}", "application/json")
    if kind in allowed:
        assert answer.status_code != 403, answer.content
        return
    assert answer.status_code == 403, answer.content
    after = AuditEvent.objects.exclude(kind__in=["agent.created", "permission.refused"]).count()
    assert after == before
    assert AuditEvent.objects.filter(kind="permission.refused").count() == 1


@pytest.mark.parametrize("kind", CALLERS)
@pytest.mark.parametrize("path", READS)
def test_every_caller_reads_its_projects(
    caller_of: Callable[[str], Caller], path: str, kind: str
) -> None:
    assert caller_of(kind).get(path).status_code == 200


@pytest.mark.parametrize("path", READS[1:])
def test_outsider_gets_404_everywhere(outsider: Caller, path: str) -> None:
    problem(outsider.get(path), 404, "not_found")


@pytest.mark.parametrize("action", [name for name in WRITES if "/demo/" in WRITES[name][1]])
def test_outsider_gets_404_for_every_write(
    caller_of: Callable[[str], Caller], outsider: Caller, action: str
) -> None:
    method, path, _ = WRITES[action]
    problem(outsider.generic(method, path, "{}", "application/json"), 404, "not_found")


@pytest.mark.parametrize("path", ["/api/decisions/", "/api/decisions/1/"])
def test_agents_do_not_even_read_the_inbox(agent: Caller, path: str) -> None:
    problem(agent.get(path), 403, "humans_only")


def test_person_without_a_role_sees_nothing(project: Project) -> None:
    nobody = human_client("nobody", "")
    assert nobody.read("/api/projects/")["results"] == []
    problem(nobody.get("/api/projects/demo/"), 404, "not_found")
    problem(nobody.get("/api/decisions/"), 403, "no_role")


@pytest.mark.parametrize("seat", ["executor", "planner", "auditor"])
def test_claim_of_a_seat_needs_its_scope(project: Project, seat: str) -> None:
    needed = {"executor": "execute", "planner": "plan", "auditor": "review"}[seat]
    for scope in ("observe", "execute", "plan", "review", "orchestrate"):
        caller = agent_client(project, name=f"a-{scope}", scopes=[scope])
        answer = caller.send("/api/assignments/claim", {"seats": [seat]})
        if scope == needed:
            assert answer.status_code == 204
        else:
            assert problem(answer, 403, "scope_missing")["scope"] == needed


def test_token_without_seats_claims_nothing(project: Project) -> None:
    reader = agent_client(project, name="reader", scopes=["observe"])
    problem(reader.send("/api/assignments/claim"), 403, "scope_missing")


def test_people_claim_nothing(sir: Caller, project: Project) -> None:
    problem(sir.send("/api/assignments/claim"), 403, "agents_only")


def test_deactivated_account_is_nobody(project: Project) -> None:
    client = human_client("gone")
    user = person("gone", "sir")
    assert client.get("/api/projects/demo/").status_code == 200
    user.is_active = False
    user.save()
    problem(client.get("/api/projects/demo/"), 401, "token_invalid")
    assert role_of(user) is None
    assert not visible_projects(user).exists()
    assert not visible_decisions(user).exists()


def test_agent_without_projects_named_sees_every_one(project: Project) -> None:
    everywhere = agent_client(name="roaming")
    new_project("later")
    slugs = [one["slug"] for one in everywhere.read("/api/projects/")["results"]]
    assert slugs == ["demo", "later"]
