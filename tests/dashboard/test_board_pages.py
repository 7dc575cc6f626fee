"""The project board: list, graph, folded phases, log, pause and resume, what a hint refetches."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.boards import make_master_row
from orchestration.models import LogChunk, Project, Task
from orchestration.selectors.master import MasterTask
from orchestration.services.audit import seal_events
from orchestration.services.inbox import open_decision
from orchestration.services.intake import submit_message
from orchestration.services.work import SYSTEM, Actor, unit_of_work
from orchestration.states import DecisionKind
from tests.dashboard.conftest import Waiting
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    new_agent,
    new_project,
    set_status,
    step,
    submit_plan,
)

NODE = re.compile(r'data-node="([^"]+)"')
SCRIPT = {"HX-Request": "true"}


def board(client: Client, project: Project, **query: str) -> str:
    """Read a project's board."""
    return client.get(reverse("dashboard:board", args=[project.slug]), query).content.decode()


def test_board_shows_phases_nodes_and_what_they_wait_for(
    waiting: Waiting, sir_client: Client
) -> None:
    page = board(sir_client, waiting.project)
    assert NODE.findall(page) == ["1", "2", "3"]
    assert "needs 2" in page
    assert "Waiting for you" in page
    assert "open, 1 of 3" in page


def test_blocked_step_names_its_blocker(sir: User, sir_client: Client) -> None:
    project, agent = new_project("blocked"), new_agent("coder")
    root = submit_plan(project, agent_step("a"), agent_step("b"))
    drive(project)
    claim(child(root, "b"), agent)
    set_status(child(root, "b"), agent, "working")
    set_status(
        child(root, "b"), agent, "blocked", detail="a first", blocked_by=(str(child(root, "a").pk),)
    )
    node = sir_client.get(reverse("dashboard:node", args=["blocked", child(root, "b").pk]))
    assert b"by a" in node.content
    assert b"Blocked" in node.content


@pytest.mark.parametrize(
    ("outcome", "failures", "passing", "note"),
    [
        ("NO-GO: TC-1 failed", 1, 0, "NO-GO, re-plan 2 of 3"),
        ("INDETERMINATE: the network is down", 0, 4, "INDETERMINATE, re-plan 1 of 3"),
        ("failed: it broke", 2, 0, "attempt 3 of 3"),
        # Sir has let it be tried again: what failed before counts no more.
        ("NO-GO: TC-1 failed", 0, 0, ""),
    ],
)
@pytest.mark.parametrize("status", ["failed", "working"])
def test_list_says_what_the_loop_said_and_which_attempt_it_is(
    outcome: str, failures: int, passing: int, note: str, status: str
) -> None:
    task = Task(
        pk=1, project=Project(pk=1, slug="x", key_prefix="X"), number=1, status=status, attempt=4,
        last_outcome=outcome, failure_count=failures, transient_failures=passing,
    )  # fmt: skip
    assert make_master_row(MasterTask(task), task.project).note == note


def test_node_by_itself_leads_where_the_whole_graph_leads(sir: User, sir_client: Client) -> None:
    project = new_project("alone")
    chain = [agent_step("a"), agent_step("b"), agent_step("c", after=["a", "b"])]
    root = submit_plan(project, *chain, agent_step("d", after=["c"], phase=2))
    drive(project)
    leads = re.compile(r'data-node="(\w)" data-next="([\w ]*)" data-previous="([\w ]*)"')
    whole = leads.findall(board(sir_client, project))
    assert ("c", "d", "a b") in whole
    alone = [
        reverse("dashboard:node", args=["alone", child(root, key).pk]) for key, *_rest in whole
    ]
    found = [leads.findall(sir_client.get(url).content.decode())[0] for url in alone]
    assert found == whole


PROJECT_TABS = re.compile(r'<nav class="tabs[^>]*aria-label="Project">.*?</nav>', re.DOTALL)


@pytest.mark.parametrize("name", ["board", "replay", "archives", "project_policy"])
def test_tabs_are_the_same_on_each_page_of_a_project(
    name: str, waiting: Waiting, sir_client: Client
) -> None:
    page = sir_client.get(reverse(f"dashboard:{name}", args=[waiting.project.slug]))
    (tabs,) = PROJECT_TABS.findall(page.content.decode())
    links = re.findall(r"<a href=\"([^\"]*)\"( aria-current=\"page\")?[^>]*>(\w+)</a>", tabs)
    assert [word for _url, _current, word in links] == ["Board", "Replay", "Archive", "Policy"]
    assert [url for url, current, _word in links if current] == [page.request["PATH_INFO"]]


def test_same_steps_as_a_table(waiting: Waiting, sir_client: Client) -> None:
    page = board(sir_client, waiting.project, view="table")
    assert NODE.findall(page) == []
    assert page.count('<td class="mono quiet">') == 6


def test_plan_of_many_steps_is_folded_and_one_phase_can_be_opened(
    sir: User, sir_client: Client
) -> None:
    project = new_project("many")
    steps = [agent_step(f"s{n}", phase=1 + n // 100) for n in range(250)]
    root = submit_plan(project, *steps)
    drive(project)
    folded = board(sir_client, project)
    assert NODE.findall(folded) == []
    assert folded.count("Show the steps") == 3
    opened = board(sir_client, project, phase="3")
    assert len(NODE.findall(opened)) == 50
    band = sir_client.get(reverse("dashboard:band", args=["many", root.pk, 2]))
    assert b"band-summary" in band.content


def test_folded_phase_lists_what_waits_for_sir(sir: User, sir_client: Client) -> None:
    project = new_project("many")
    bad = step("bad", run=["false"], on_failure={"severity": "medium"})
    submit_plan(project, bad, *(agent_step(f"s{n}") for n in range(220)))
    drive(project)
    assert NODE.findall(board(sir_client, project)) == ["bad"]


def test_graph_is_fetched_again_only_when_its_layout_changed(
    waiting: Waiting, sir_client: Client
) -> None:
    page = board(sir_client, waiting.project)
    url = re.search(r'data-fragment="([^"]+/graph/[^"]+)"', page)
    assert url is not None
    address = url.group(1).replace("&amp;", "&")
    assert sir_client.get(address, headers=SCRIPT).status_code == 304
    older = re.sub(r"version=\d+", "version=1", address)
    assert NODE.findall(sir_client.get(older, headers=SCRIPT).content.decode()) == ["1", "2", "3"]


def test_master_list_pages_with_a_true_total(sir: User, sir_client: Client) -> None:
    project = new_project("long")
    for number in range(103):
        submit_plan(project, agent_step("1"), text=f"task {number}")
    page = board(sir_client, project)
    assert "103 tasks" in page
    assert page.count('class="master-row"') == 100
    assert board(sir_client, project, page="2").count('class="master-row"') == 3


def test_master_list_is_filtered_by_state_and_words(waiting: Waiting, sir_client: Client) -> None:
    assert 'class="master-row"' in board(sir_client, waiting.project, status="working")
    assert "No task matches the filter" in board(sir_client, waiting.project, status="done")
    assert 'class="master-row"' in board(sir_client, waiting.project, q="HELLO-1")
    assert "No task matches the filter" in board(sir_client, waiting.project, q="farewell")


def test_pipeline_counts_traffic_beside_the_expected_shares(sir: User, sir_client: Client) -> None:
    project = new_project("traffic")
    for text in ("谢谢", "ok", "design the whole system, then migrate all of it step by step"):
        submit_message(project_id=project.pk, text=text, actor=Actor("human:sir"))
    page = board(sir_client, project)
    assert "direct 67 %" in page
    assert "expected 60" in page


def test_board_shows_the_task_that_waits_for_sir_before_others(
    sir: User, sir_client: Client
) -> None:
    project = new_project("busy")
    submit_plan(project, step("done"), text="first and finished")
    drive(project)
    submit_plan(project, agent_step("idle"), text="second waits for an agent")
    third = submit_plan(project, agent_step("asked"), text="third asks")
    drive(project)
    head = re.compile(r'id="plan-head"><a [^>]*>(.*?)</a>')
    assert head.findall(board(sir_client, project)) == ["second waits for an agent"]
    with unit_of_work(SYSTEM) as work:
        open_decision(
            work, kind=DecisionKind.CLARIFICATION, project=project, task=third, title="Which?",
            question="Which?", content={"reason": "question"},
        )  # fmt: skip
    page = board(sir_client, project)
    assert head.findall(page) == ["third asks"]
    assert page.count("1 waits for you") >= 1


def test_done_root_says_so_once(sir: User, sir_client: Client) -> None:
    project = new_project("once")
    submit_plan(project, step("1"))
    drive(project)
    page = board(sir_client, project)
    state = re.search(r'class="master-state">(.*?)</a>', page, re.DOTALL)
    assert state is not None
    assert re.sub(r"<[^>]+>", " ", state.group(1)).split() == ["Done"], state.group(1)


def test_empty_board_says_how_to_begin(sir: User, sir_client: Client) -> None:
    page = board(sir_client, new_project("empty"))
    assert "No tasks yet" in page
    assert reverse("dashboard:new_work") in page


def test_pause_and_resume_are_forms(waiting: Waiting, sir_client: Client) -> None:
    assert sir_client.post(reverse("dashboard:pause", args=["hello"])).status_code == 303
    waiting.project.refresh_from_db()
    assert waiting.project.status == "suspended"
    assert "Resume" in board(sir_client, waiting.project)
    assert sir_client.post(reverse("dashboard:resume", args=["hello"])).status_code == 303
    waiting.project.refresh_from_db()
    assert waiting.project.status == "active"


def test_refused_pause_says_why_in_the_shell(sir: User, sir_client: Client) -> None:
    project = new_project("done")
    submit_plan(project, step("1"))
    drive(project)
    answer = sir_client.post(reverse("dashboard:pause", args=["done"]))
    assert answer.status_code == 409
    assert b'role="alert"' in answer.content


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:x"])
def test_pause_sends_its_reader_nowhere_else(
    target: str, waiting: Waiting, sir_client: Client
) -> None:
    answer = sir_client.post(reverse("dashboard:pause", args=["hello"]), {"next": target})
    assert answer["Location"] == "/projects/hello/"


# --- Log and catch-up -----------------------------------------------------------------------------


def log_lines(client: Client, after: str) -> tuple[list[str], str]:
    """The texts of the lines after a cursor, and the next cursor."""
    answer = client.get(reverse("dashboard:log", args=["hello"]), {"after": after}, headers=SCRIPT)
    texts = re.findall(r'<span class="log-text">(.*?)</span>', answer.content.decode())
    return texts, answer["X-Log-After"]


def test_log_gives_each_line_once(waiting: Waiting, sir_client: Client) -> None:
    first, cursor = log_lines(sir_client, "")
    assert [line for line in first if line.startswith("QA found")] != []
    assert log_lines(sir_client, cursor)[0] == []
    step_two: Task = waiting.step
    for text in ("one\ntwo\n", "three\n"):
        LogChunk.objects.create(project=waiting.project, task=step_two, source="x", text=text)
    fresh, following = log_lines(sir_client, cursor)
    assert fresh == ["one", "two", "three"]
    assert log_lines(sir_client, following)[0] == []


def test_log_finds_a_row_that_became_visible_late(waiting: Waiting, sir_client: Client) -> None:
    _, cursor = log_lines(sir_client, "")
    rows = [
        LogChunk(project=waiting.project, task=waiting.step, source="x", text=text)
        for text in ("early", "late")
    ]
    late_id = (LogChunk.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
    rows[0].pk, rows[1].pk = late_id + 1, late_id
    rows[0].save(force_insert=True)
    seen, following = log_lines(sir_client, cursor)
    rows[1].save(force_insert=True)
    assert (seen, log_lines(sir_client, following)[0]) == (["early"], ["late"])


def test_malformed_cursor_is_422(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:log", args=["hello"])
    for text in ("x", "[]", "[1,2]", '["a",1,[]]', "[1,2,3]", "{}"):
        assert sir_client.get(url, {"after": text}).status_code == 422, text


def test_changes_name_what_moved_since_a_position_also_before_it_is_sealed(
    waiting: Waiting, sir_client: Client
) -> None:
    url = reverse("dashboard:changes")
    position: int = sir_client.get(url, {"project": "hello", "after": "9999999"}).json()["position"]
    sir_client.post(reverse("dashboard:pause", args=["hello"]))
    asked = {"project": "hello", "after": str(position)}
    unsealed = sir_client.get(url, asked).json()
    topics = {one["topic"] for one in unsealed["hints"]}
    assert f"project:{waiting.project.pk}" in topics
    assert unsealed["position"] == position
    seal_events()
    sealed = sir_client.get(url, asked).json()
    assert {one["topic"] for one in sealed["hints"]} == topics
    assert sealed["position"] > position


def test_changes_that_are_too_many_ask_for_a_whole_refresh(sir: User, sir_client: Client) -> None:
    project = new_project("busy")
    submit_plan(project, *(agent_step(f"s{n}") for n in range(260)))
    drive(project)
    seal_events()
    found = sir_client.get(reverse("dashboard:changes"), {"project": "busy", "after": "0"}).json()
    assert found["reset"] is True
    assert found["hints"] == []


def test_log_file_spells_out_what_a_terminal_would_obey(
    waiting: Waiting, sir_client: Client
) -> None:
    text = "\x1b[2J\x1b]0;owned\x07gone\rtab\there \u202eback 中文\n"
    LogChunk.objects.create(project=waiting.project, task=waiting.step, source="x", text=text)
    answer = sir_client.get(f"/projects/{waiting.project.slug}/log.txt")
    with pytest.warns(Warning, match="StreamingHttpResponse must consume asynchronous"):
        said = b"".join(answer).decode()
    assert "⟨U+001B⟩[2J⟨U+001B⟩]0;owned⟨U+0007⟩gone" in said
    assert "tab\there ⟨U+202E⟩back 中文\n" in said
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(said)
