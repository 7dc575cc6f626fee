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


def test_p0_is_shown_once_and_only_after_a_click_allowed_it(site: Site, person: Person) -> None:
    person.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CENTRE})
    unheard = site.stop_project("unheard")
    person.open_live(f"/inbox/{unheard}/")
    assert person.ask("Notification.permission") == "default"
    assert person.ask(TOLD) == []
    person.open_live("/notifications/settings/")
    assert person.ask("Notification.permission") == "default"
    person.see("[data-browser-notices]", "This browser shows nothing by itself")
    person.click("[data-browser-notices] [data-allow]")
    person.see("[data-browser-notices]", "P0 items are shown by this browser")

    site.ask("quiet")
    person.see("[data-inbox-count]", "2")
    heard = {one["tag"] for one in person.ask(TOLD)}
    assert heard <= {f"countersign-{unheard}"}
    asked = site.stop_project("loud")
    person.see_true(f"{TOLD}.some((one) => one.tag === 'countersign-{asked}')")
    told = [one for one in person.ask(TOLD) if one["tag"] == f"countersign-{asked}"]
    assert len(told) == 1
    assert "Look for loud" in told[0]["title"] + told[0]["body"]
    count = len(person.ask(TOLD))
    person.open_live("/inbox/")
    assert len(person.ask(TOLD)) == count
    assert person.complaints() == []
