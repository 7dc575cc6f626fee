"""Every page by axe-core: WCAG 2.2 A and AA, light and dark, in both languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: arguments[0]}).then(done);
"""


@pytest.fixture(scope="module")
def paths(site: Site) -> list[str]:
    """Every page of an installation with a question in it, and one that does not exist."""
    (asked,) = site.ask("seen")
    task = site.questions("seen")[0]["task"]
    root = site.call("GET", f"projects/seen/tasks/{task}/")["parent"]
    stopped = site.stop_project("broken")
    return [
        "/", "/inbox/", f"/inbox/{asked}/", "/inbox/history/", f"/inbox/together/?selected={asked}",
        "/projects/", "/projects/seen/", "/projects/seen/?view=phases",
        "/projects/seen/?view=table", "/projects/seen/?panel=cost", "/projects/seen/archive/",
        "/projects/seen/replay/", f"/projects/seen/tasks/{task}/", "/audit/", "/agents/", "/new/",
        "/search/?q=check", "/nothing-here/", f"/inbox/{stopped}/", "/notifications/",
        "/notifications/settings/", "/insights/", "/knowledge/", "/projects/seen/policy/",
        f"/projects/seen/tasks/{root}/", f"/projects/seen/tasks/{root}/plans/",
        f"/projects/seen/tasks/{task}/cancel/", "/audit/1/", "/new-agent/",
    ]  # fmt: skip


def faults(person: Person, path: str) -> list[str]:
    """Open a page, let axe-core look at it, and say what it found."""
    person.open(path)
    person.driver.execute_script(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = person.driver.execute_async_script(RUN, RULES)
    # A page that was not looked at has no fault either.
    assert len(found["passes"]) > 10, path
    return [
        f"{path} {one['id']}: {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_violates_wcag(theme: str, language: str, person: Person, paths: list[str]) -> None:
    person.driver.set_script_timeout(60)
    for name, value in (("theme", theme), ("django_language", language)):
        person.driver.add_cookie({"name": name, "value": value})
    person.open("/")
    assert person.ask("document.documentElement.lang") == language
    assert person.ask("document.documentElement.dataset.bsTheme") == theme
    assert [fault for path in paths for fault in faults(person, path)] == []
