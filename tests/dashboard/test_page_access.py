"""Who may open what: Sir and viewers read every page, others none; nobody reads across projects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from django.test import Client
from django.urls import reverse

from orchestration.models import Artifact, Assignment, AuditEvent, Experience, Plan
from tests.dashboard.conftest import Waiting, furnish
from tests.factories import new_project

Address = Callable[[Waiting], str]


def page(name: str, *parts: str) -> Address:
    """The address of a page, its parts taken from a waiting project."""

    def build(held: Waiting) -> str:
        known = {
            "slug": held.project.slug,
            "root": held.root.pk,
            "step": held.step.pk,
            "decision": held.decision.pk,
            "a plan": Plan.objects.filter(task=held.root).first().pk,  # type: ignore[union-attr]
            "assignment": Assignment.objects.filter(project=held.project).first().pk,  # type: ignore[union-attr]
            "artifact": Artifact.objects.filter(project=held.project).first().pk,  # type: ignore[union-attr]
            "agent": "an-agent",
            "wiki": "a-page",
            "experience": Experience.objects.filter(project=held.project).first().pk,  # type: ignore[union-attr]
        }
        return reverse(f"dashboard:{name}", args=[known.get(part, part) for part in parts])

    return build


PAGES = {
    "overview": page("overview"),
    "inbox": page("inbox"),
    "history": page("inbox_history"),
    "decision": page("decision", "decision"),
    "projects": page("projects"),
    "board": page("board", "slug"),
    "archives": page("archives", "slug"),
    "replay": page("replay", "slug"),
    "task": page("task", "slug", "root"),
    "step": page("task", "slug", "step"),
    "plans": page("plans", "slug", "root"),
    "plan text": page("plan_text", "slug", "root", "a plan", "a plan"),
    "assignment": page("assignment", "slug", "assignment"),
    "artifact": page("artifact", "slug", "artifact"),
    "audit": page("audit"),
    "agents": page("agents"),
    "agent": page("agent", "agent"),
    "new work": page("new_work"),
    "search": page("search"),
    "knowledge": page("knowledge"),
    "wiki page": page("wiki_page", "slug", "wiki"),
    "experience": page("experience", "slug", "experience"),
    "insights": page("insights"),
    "policies": page("policy"),
    "policy": page("project_policy", "slug"),
    "event": page("audit_event", "1"),
}
FRAGMENTS = {
    "count": page("inbox_count"),
    "row": page("decision_row", "decision"),
    "pane": page("decision_pane", "decision"),
    "head": page("board_head", "slug"),
    "costs": page("costs", "slug"),
    "pipeline": page("pipeline", "slug"),
    "master": page("master", "slug"),
    "master row": page("master_row", "slug", "root"),
    "node": page("node", "slug", "step"),
    "graph": page("graph", "slug", "root"),
    "band": page("band", "slug", "root", "1"),
    "timeline": page("timeline", "slug", "root"),
    "log": page("log", "slug"),
    "changes": page("changes"),
    **{
        f"part {name}": page("task_part", "slug", "root", name)
        for name in (
            "state", "waiting", "plan", "steps", "outputs", "defects", "artifacts", "comments",
            "assignments", "progress", "locked", "handoff",
        )
    },
}  # fmt: skip
ACTIONS = {
    "decide": page("decide", "decision"),
    "draft": page("decision_draft", "decision"),
    "pause": page("pause", "slug"),
    "resume": page("resume", "slug"),
    "archive the project": page("project_archive", "slug"),
    "replan": page("replan", "slug", "root"),
    "comment": page("comment", "slug", "step"),
    "cancel": page("cancel", "slug", "root"),
    "new work": page("new_work"),
    "together": page("bulk"),
    "siblings": page("siblings", "decision"),
    "upload": page("new_work_upload"),
    "new agent": page("agent_new"),
    "agent's scopes": page("agent_change", "agent"),
    "rotate": page("agent_rotate", "agent"),
    "revoke": page("agent_revoke", "agent"),
    "review the policy": page("policy_review", "slug", "limits"),
    "save the policy": page("policy_save", "slug", "limits"),
    "new page": page("wiki_new", "slug"),
    "edit a page": page("wiki_edit", "slug", "wiki"),
    "review a page": page("wiki_review", "slug", "wiki"),
    "new experience": page("experience_new", "slug"),
    "review an experience": page("experience_review", "slug", "experience"),
}
READ = {**PAGES, **FRAGMENTS}


@pytest.fixture
def waiting(waiting: Waiting) -> Waiting:
    """A project that waits, with an agent, a page and an experience."""
    return furnish(waiting)


Statuses = dict[str, int]


def read_all(client: Client, pages: Mapping[str, Address], held: Waiting) -> Statuses:
    """Open each page and return its status."""
    return {name: client.get(build(held)).status_code for name, build in pages.items()}


def test_sir_reads_every_page_and_part(waiting: Waiting, sir_client: Client) -> None:
    assert read_all(sir_client, READ, waiting) == dict.fromkeys(READ, 200)


def test_viewer_reads_every_page_and_part(waiting: Waiting, viewer_client: Client) -> None:
    assert read_all(viewer_client, READ, waiting) == dict.fromkeys(READ, 200)


def test_head_answers_like_get_without_a_body(waiting: Waiting, sir_client: Client) -> None:
    answers = {name: sir_client.head(build(waiting)) for name, build in PAGES.items()}
    assert {name: one.status_code for name, one in answers.items()} == dict.fromkeys(PAGES, 200)
    assert not [name for name, one in answers.items() if one.content]


def test_anonymous_is_sent_to_sign_in(waiting: Waiting, client: Client) -> None:
    targets = {name: client.get(build(waiting)).headers["Location"] for name, build in READ.items()}
    assert not [name for name in READ if not targets[name].startswith("/accounts/login/?next=/")]


def test_anonymous_script_learns_it_by_status(waiting: Waiting, client: Client) -> None:
    answers = [
        client.get(build(waiting), headers={"HX-Request": "true"}) for build in FRAGMENTS.values()
    ]
    assert {(one.status_code, one.content) for one in answers} == {(403, b"")}


def test_person_without_a_role_sees_nothing(waiting: Waiting, stranger_client: Client) -> None:
    answers = {name: stranger_client.get(build(waiting)) for name, build in READ.items()}
    assert {one.status_code for one in answers.values()} == {403}
    assert not [n for n, one in answers.items() if waiting.root.title.encode() in one.content]


def act_all(client: Client, held: Waiting) -> Statuses:
    """Send every form and return its status."""
    sent = {"reason": "x", "body": "x", "text": "x", "project": held.project.slug}
    return {name: client.post(build(held), sent).status_code for name, build in ACTIONS.items()}


def test_viewer_changes_nothing(waiting: Waiting, viewer_client: Client) -> None:
    events = AuditEvent.objects.count()
    assert act_all(viewer_client, waiting) == dict.fromkeys(ACTIONS, 403)
    assert AuditEvent.objects.count() == events
    assert waiting.decision.status == "open"


def test_anonymous_changes_nothing(waiting: Waiting, client: Client) -> None:
    events = AuditEvent.objects.count()
    assert act_all(client, waiting) == dict.fromkeys(ACTIONS, 403)
    assert AuditEvent.objects.count() == events


def test_get_and_head_never_act(waiting: Waiting, sir_client: Client) -> None:
    names = (
        "decide", "pause", "resume", "replan", "comment", "draft", "upload", "rotate",
        "review the policy", "save the policy", "review a page", "review an experience",
    )  # fmt: skip
    urls = {name: ACTIONS[name](waiting) for name in names}
    asked = {"verdict": "approve", "reason": "x"}
    assert {sir_client.get(url, asked).status_code for url in urls.values()} == {405}
    assert {sir_client.head(url, asked).status_code for url in urls.values()} == {405}
    assert waiting.decision.status == "open"


ACROSS = {
    name: build
    for name, build in READ.items()
    if name in ("task", "step", "assignment", "artifact", "node", "master row", "graph", "timeline")
    or name.startswith("part ")
}


def test_other_project_hides_what_is_not_its_own(waiting: Waiting, sir_client: Client) -> None:
    other = new_project("other")
    mine, theirs = f"/{waiting.project.slug}/", f"/{other.slug}/"
    urls = {name: build(waiting).replace(mine, theirs) for name, build in ACROSS.items()}
    statuses = {name: sir_client.get(url).status_code for name, url in urls.items()}
    assert statuses == dict.fromkeys(ACROSS, 404)


UNKNOWN = (
    "/projects/nothing/",
    "/projects/hello/tasks/999999/",
    "/projects/hello/tasks/99999999999999999999/",
    "/inbox/999999/",
    "/inbox/999999/pane/",
    "/no/such/page/",
)


def test_unknown_things_are_404_in_the_shell(waiting: Waiting, sir_client: Client) -> None:
    answers = {path: sir_client.get(path) for path in UNKNOWN}
    assert {path: one.status_code for path, one in answers.items()} == dict.fromkeys(UNKNOWN, 404)
    assert not [path for path, one in answers.items() if b"Nothing here" not in one.content]
    assert not [path for path, one in answers.items() if b'class="side"' not in one.content]
