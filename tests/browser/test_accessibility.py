"""Every page by axe-core: WCAG 2.2 A and AA, light and dark, in both languages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern

from dashboard.urls import pages as addresses
from dashboard.urls import urlpatterns
from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: arguments[0]}).then(done);
"""


PARTS = {
    # Fragments that a page fetches into itself; the page that holds them is looked at.
    "new_work_preview", "inbox_count", "inbox_clear", "decision_row", "decision_pane",
    "decision_dock", "decision_part", "board_head", "pipeline", "costs", "master", "log",
    "master_row", "node", "graph", "timeline", "risks", "band", "task_part", "policy_try",
    "notifications_bell",
}  # fmt: skip
NO_PAGES = {
    # Data, files and what only answers a POST with another page.
    "changes", "log_file", "archive", "artifact", "audit_export", "favicon", "set_language",
    "logout", "new_work_upload", "decision_seen", "decision_draft", "decide", "pause", "resume",
    "replan", "comment", "wiki_review", "experience_review", "notifications_read",
    "channel_action", "channel_rotate", "audit_verify", "agent_rotate",
    "policy_review", "policy_save",
}  # fmt: skip


ALWAYS = [
    ("overview", "/"), ("search", "/search/?q=check"), ("new_work", "/new/"),
    ("inbox", "/inbox/"), ("inbox_history", "/inbox/history/"),
    ("agents", "/agents/"), ("agent_new", "/new-agent/"), ("agent", "/agents/helper/"),
    ("agent_change", "/agents/helper/change/"), ("agent_revoke", "/agents/helper/revoke/"),
    ("knowledge", "/knowledge/"), ("wiki_new", "/knowledge/seen/new-page/"),
    ("experience_new", "/knowledge/seen/new-experience/"),
    ("wiki_page", "/knowledge/seen/wiki/how-to/"),
    ("wiki_edit", "/knowledge/seen/wiki/how-to/edit/"),
    ("insights", "/insights/"), ("policy", "/policy/"), ("projects", "/projects/"),
    ("board", "/projects/seen/"), ("board", "/projects/seen/?view=phases"),
    ("board", "/projects/seen/?view=table"), ("board", "/projects/seen/?panel=cost"),
    ("replay", "/projects/seen/replay/"), ("archives", "/projects/seen/archive/"),
    ("project_policy", "/projects/seen/policy/"), ("notifications", "/notifications/"),
    ("notification_settings", "/notifications/settings/"),
    ("project_archive", "/projects/seen/end/"),
    ("audit", "/audit/"), ("audit_event", "/audit/1/"), ("not found", "/nothing-here/"),
]  # fmt: skip
"""Pages whose address is known beforehand: the name of the address, and where."""
WEBHOOK = {
    "kind": "webhook", "name": "ops", "address": "https://1.1.1.1/in", "scope": "all",
    "language": "en",
}  # fmt: skip


@pytest.fixture(scope="module")
def pages(site: Site) -> list[tuple[str, str]]:
    """Every page of an installation with a question in it, and one that does not exist."""
    (asked,) = site.ask("seen")
    sibling, _ = site.ask("family", count=2)
    task = site.questions("seen")[0]["task"]
    told = site.call("GET", f"projects/seen/tasks/{task}/?expand=all")
    seen = f"/projects/seen/tasks/{told['parent']}"
    stopped = site.stop_project("broken")
    fatal = site.questions("broken")[0]["task"]
    plans = site.call("GET", f"projects/broken/tasks/{fatal}/?expand=all")["plans"]
    pair = f"{plans[0]['id']}/to/{plans[-1]['id']}"
    page = {"name": "how-to", "title": "How to", "body": "# Look\n\n* here"}
    site.call("POST", "projects/seen/wiki", page)
    kept = site.call("POST", "projects/seen/experiences", {"title": "Look", "body": "Twice."})
    site.agent("helper")
    listed = site.send("notifications/settings/", WEBHOOK).text
    (own,) = set(re.findall(r"/notifications/settings/(\d+)/", listed))
    return [
        *ALWAYS,
        ("bulk", f"/inbox/together/?selected={asked}"),
        ("decision", f"/inbox/{asked}/"),
        ("decision", f"/inbox/{stopped}/"),
        ("siblings", f"/inbox/{sibling}/siblings/"),
        ("experience", f"/knowledge/seen/experiences/{kept['id']}/"),
        ("task", f"/projects/seen/tasks/{task}/"),
        ("cancel", f"/projects/seen/tasks/{task}/cancel/"),
        ("task", f"{seen}/"),
        ("plans", f"{seen}/plans/"),
        ("task", f"/projects/broken/tasks/{fatal}/"),
        ("plan_text", f"/projects/broken/tasks/{fatal}/plans/{pair}/"),
        ("assignment", f"/projects/seen/assignments/{told['assignments'][0]['id']}/"),
        ("channel_change", f"/notifications/settings/{own}/"),
    ]


def test_every_address_is_looked_at_or_is_no_page(pages: list[tuple[str, str]]) -> None:
    shown = {name for name, _path in pages}
    names = {one.name for one in [*addresses, *urlpatterns] if isinstance(one, URLPattern)}
    assert names - shown - PARTS - NO_PAGES == {"login"}
    assert names >= (PARTS | NO_PAGES)


def faults_here(person: Person, path: str) -> list[str]:
    """Let axe-core look at what is shown, and say what it found."""
    person.driver.execute_script(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = person.driver.execute_async_script(RUN, RULES)
    # A page that was not looked at has no fault either.
    assert len(found["passes"]) > 10, path
    return [
        f"{path} {one['id']}: {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def faults(person: Person, path: str) -> list[str]:
    """Open a page and say what axe-core found in it."""
    person.open(path)
    return faults_here(person, path)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_violates_wcag(
    theme: str, language: str, person: Person, pages: list[tuple[str, str]]
) -> None:
    person.driver.set_script_timeout(60)
    for name, value in (("theme", theme), ("django_language", language)):
        person.driver.add_cookie({"name": name, "value": value})
    person.open("/")
    assert person.ask("document.documentElement.lang") == language
    assert person.ask("document.documentElement.dataset.bsTheme") == theme
    assert [fault for _name, path in pages for fault in faults(person, path)] == []
    person.driver.delete_cookie("sessionid")
    assert faults(person, "/accounts/login/") == []
