"""P0 items in the browser's own notifications: only after a click, only P0, each once."""

from __future__ import annotations

import pytest

from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
CENTRE = """
class Shown extends EventTarget {
  static permission = sessionStorage.getItem("said") || "default";
  static async requestPermission() {
    sessionStorage.setItem("said", "granted");
    Shown.permission = "granted";
    return "granted";
  }
  constructor(title, { body, tag }) {
    super();
    const told = JSON.parse(sessionStorage.getItem("told") || "[]");
    sessionStorage.setItem("told", JSON.stringify([...told, { title, body, tag }]));
  }
}
window.Notification = Shown;
"""
"""Stands for the desktop's notification centre, which a headless browser does not have."""
TOLD = "JSON.parse(sessionStorage.getItem('told') || '[]')"


def test_p0_is_shown_once_after_a_click_allowed_it(site: Site, person: Person) -> None:
    person.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CENTRE})
    person.open_live("/")
    assert person.ask("Notification.permission") == "default"
    person.see("[data-browser-notices]", "Only a stopped project or a safe stop")
    person.click("[data-browser-notices] [data-allow]")
    person.see("[data-browser-notices]", "P0 items are shown by this browser")

    site.ask("quiet")
    person.see("[data-inbox-count]", "1")
    assert person.ask(TOLD) == []
    asked = site.stop_project("loud")
    person.see_true(f"{TOLD}.length === 1")
    [told] = person.ask(TOLD)
    assert told["tag"] == f"countersign-{asked}"
    assert "Look for loud" in told["title"] + told["body"]
    person.open_live("/inbox/")
    assert len(person.ask(TOLD)) == 1
    assert person.complaints() == []


def test_nothing_is_asked_for_without_a_click(site: Site, person: Person) -> None:
    person.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CENTRE})
    asked = site.stop_project("unheard")
    person.open_live(f"/inbox/{asked}/")
    assert person.ask("Notification.permission") == "default"
    assert person.ask(TOLD) == []
