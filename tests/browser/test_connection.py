"""The connection: cut, said so, caught up; the states of the work are not touched by it."""

from __future__ import annotations

import re
import signal

import pytest
from selenium.webdriver import Chrome

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
LOST = {"en": "Connection lost", "zh-hans": "连接已于"}
WATCH = """
window.seen = {};
const note = (name) => { window.seen[name] ??= performance.now(); };
setInterval(() => {
  const state = document.querySelector("[data-live-indicator]").dataset.connection;
  if (state === "offline") note("offline");
  if (document.querySelector("[data-connection-banner]")?.checkVisibility()) note("banner");
}, 50);
"""


@in_both_languages
def test_lost_server_is_said_and_caught_up_with(site: Site, driver: Chrome, language: str) -> None:
    slug = f"cut-{language}"
    (asked,) = site.ask(slug)
    sir = Person(driver, site.url)
    sir.sign_in(language=language)
    sir.open_live(f"/projects/{slug}/")
    sir.mark_page()
    before = sir.see('[data-node="check-1"]').get_attribute("class")
    sir.driver.execute_script(WATCH)
    site.stop(signal.SIGKILL)
    sir.see('[data-live-indicator][data-connection="offline"]')
    sir.see("[data-connection-banner]", LOST[language])
    # Half a minute in the dark: the page says how old it is, and nothing else changes.
    sir.see_true("performance.now() - window.seen.offline > 30_000", seconds=40)
    assert 9_000 < sir.ask("window.seen.banner - window.seen.offline") < 14_000
    assert int(re.findall(r"\d+", sir.see("[data-live-indicator]").text)[0]) >= 30
    assert sir.see('[data-node="check-1"]').get_attribute("class") == before

    site.start()
    site.decide(asked, "accept_as_is")
    sir.see_live()
    sir.see_gone("[data-connection-banner]")
    sir.see('[data-node="report"].node--green')
    assert sir.is_on_marked_page


def test_signed_out_page_does_not_ask_for_ever(site: Site, driver: Chrome) -> None:
    sir = Person(driver, site.url)
    sir.sign_in()
    sir.open_live("/")
    left = sir.open_tab()
    sir.open("/audit/")
    sir.driver.delete_all_cookies()
    sir.open("/audit/")
    sir.see("#id_username")
    sir.go_to_tab(left)
    site.stop(signal.SIGKILL)
    sir.see('[data-live-indicator][data-connection="offline"]')
    site.start()
    sir.see("[data-connection-banner]", "You are signed out", seconds=60)
    sir.see("[data-connection-banner] a", "Sign in")
