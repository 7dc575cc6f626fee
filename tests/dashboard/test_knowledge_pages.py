"""Knowledge: read, found in both languages, written with versions, accepted; hostile text."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import AuditEvent, Experience, Project, WikiPage
from orchestration.services.knowledge import PageText, write_experience, write_page
from orchestration.services.work import SYSTEM, Actor
from tests.factories import new_agent, new_project

HOSTILE = "# Build\n\n<script>alert(1)</script> [x](javascript:alert(1)) ![y](http://evil/x.png)"


@pytest.fixture
def project(db: None) -> Project:
    return new_project("lore")


def by_agent(project: Project, name: str = "build", body: str = HOSTILE) -> WikiPage:
    agent = new_agent(f"writer-{name}", project=project)
    return write_page(
        project=project, name=name, text=PageText(body), agent=agent,
        actor=Actor(f"agent:{agent.name}"),
    )  # fmt: skip


def words_of(client: Client, **query: str) -> str:
    answer = client.get("/knowledge/", {"project": "lore", **query})
    assert answer.status_code == 200
    return answer.content.decode()


def test_search_finds_both_languages(sir: User, sir_client: Client, project: Project) -> None:
    for name, title in (("db", "数据库迁移先备份"), ("lease", "Renew a lease by heartbeat")):
        write_page(project=project, name=name, text=PageText("x", title=title), actor=SYSTEM)
    write_experience(project=project, title="租约过期要续租", body="", actor=SYSTEM)
    assert "数据库" in words_of(sir_client, q="迁移")
    assert "Renew" not in words_of(sir_client, q="迁移")
    assert "Renew" in words_of(sir_client, q="heartbeats")
    assert "租约" in words_of(sir_client, kind="experiences", q="续租")
    assert "Nothing matches" in words_of(sir_client, q="量子")


def test_agents_page_is_marked_until_sir_accepts_it(
    sir: User, sir_client: Client, project: Project
) -> None:
    page = by_agent(project)
    url = reverse("dashboard:wiki_page", args=["lore", "build"])
    assert "nobody has reviewed it" in sir_client.get(url).content.decode()
    assert "Not reviewed" in words_of(sir_client, only="unreviewed")
    review = reverse("dashboard:wiki_review", args=["lore", "build"])
    stale = sir_client.post(review, {"verdict": "accept", "version": page.version + 1})
    assert stale.status_code == 412
    assert (
        sir_client.post(review, {"verdict": "accept", "version": page.version}).status_code == 303
    )
    assert "nobody has reviewed it" not in sir_client.get(url).content.decode()
    event = AuditEvent.objects.get(kind="wiki.accepted")
    assert (event.actor, event.before) == ("human:sir", {"status": "unreviewed"})
    assert sir_client.post(review, {"verdict": "burn", "version": 1}).status_code == 404


def test_hostile_text_is_shown_and_never_runs(
    sir: User, sir_client: Client, project: Project
) -> None:
    by_agent(project)
    page = sir_client.get(reverse("dashboard:wiki_page", args=["lore", "build"])).content.decode()
    article = page.partition("<article")[2].partition("</article>")[0]
    assert "<script" not in article
    assert "javascript:" not in article.replace("javascript:alert(1))", "")
    assert "<img" not in article
    assert "&lt;script&gt;" in article


def test_sir_writes_a_page_and_every_version_stays(
    sir: User, sir_client: Client, project: Project
) -> None:
    new = reverse("dashboard:wiki_new", args=["lore"])
    made = sir_client.post(new, {"name": "构建.说明", "title": "How", "summary": "", "body": "one"})
    assert made.status_code == 303
    edit = reverse("dashboard:wiki_edit", args=["lore", "构建.说明"])
    sent = {"title": "How", "summary": "s", "body": "two", "version": "1"}
    assert sir_client.post(edit, sent).status_code == 303
    page = WikiPage.objects.get()
    assert (page.version, page.body, page.status) == (2, "two", "accepted")
    url = reverse("dashboard:wiki_page", args=["lore", "构建.说明"])
    old = sir_client.get(url, {"version": "1"}).content.decode()
    assert "You read version 1; the newest is 2." in old
    assert "<p>one</p>" in old
    assert sir_client.get(url, {"version": "9"}).status_code == 404
    again = sir_client.post(edit, sent | {"body": "three"})
    assert again.status_code == 412
    assert ">three</textarea>" in again.content.decode()
    assert WikiPage.objects.get().body == "two"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"name": "no spaces"}, "Letters of any script"), ({"name": ""}, "This field is required"),
        ({"body": ""}, "This field is required"), ({"name": "taken"}, "a page of this name"),
    ],
)  # fmt: skip
def test_refused_page_keeps_what_was_written(
    sent: dict[str, str], words: str, sir: User, sir_client: Client, project: Project
) -> None:
    write_page(project=project, name="taken", text=PageText("x"), actor=SYSTEM)
    new = reverse("dashboard:wiki_new", args=["lore"])
    answer = sir_client.post(new, {"name": "fine", "title": "My title", "body": "text", **sent})
    assert answer.status_code in (409, 422)
    assert words in answer.content.decode()
    assert 'value="My title"' in answer.content.decode()
    assert WikiPage.objects.count() == 1


def test_experience_is_written_and_rejected(
    sir: User, sir_client: Client, project: Project
) -> None:
    new = reverse("dashboard:experience_new", args=["lore"])
    made = sir_client.post(new, {"title": "Cold caches lie", "body": "Warm them"})
    assert made.status_code == 303
    row = Experience.objects.get()
    assert row.status == "accepted"
    assert "Cold caches" in words_of(sir_client, kind="experiences")
    url = reverse("dashboard:experience_review", args=["lore", row.pk])
    sir_client.post(url, {"verdict": "reject", "version": row.version})
    assert "Cold caches" not in words_of(sir_client, kind="experiences")
    page = sir_client.get(reverse("dashboard:experience", args=["lore", row.pk]))
    assert b"Rejected" in page.content


def test_viewer_reads_and_writes_nothing(viewer_client: Client, project: Project) -> None:
    by_agent(project)
    assert (
        viewer_client.get(reverse("dashboard:wiki_page", args=["lore", "build"])).status_code == 200
    )
    assert "New page" not in words_of(viewer_client)
    sent = {"name": "x", "title": "x", "body": "x", "verdict": "accept", "version": "1"}
    paths = [
        reverse("dashboard:wiki_new", args=["lore"]),
        reverse("dashboard:wiki_edit", args=["lore", "build"]),
        reverse("dashboard:wiki_review", args=["lore", "build"]),
        reverse("dashboard:experience_new", args=["lore"]),
    ]
    assert {viewer_client.post(path, sent).status_code for path in paths} == {403}
    assert WikiPage.objects.get().status == "unreviewed"


def test_page_of_another_project_is_not_here(
    sir: User, sir_client: Client, project: Project
) -> None:
    row = write_experience(project=new_project("other"), title="x", body="", actor=SYSTEM)
    path = reverse("dashboard:experience", args=["lore", row.pk])
    assert sir_client.get(path).status_code == 404


def test_empty_knowledge_says_what_to_do(sir: User, sir_client: Client) -> None:
    assert b"No projects yet" in sir_client.get("/knowledge/").content
    new_project("lore")
    assert "No pages yet" in words_of(sir_client)
    assert "No experiences yet" in words_of(sir_client, kind="experiences")
