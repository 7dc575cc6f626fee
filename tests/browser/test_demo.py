"""The demo of a fresh installation, from signing in to the end, on pages that nobody reloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser.person import WIDE, Person
from tests.browser.site import PASSWORD, Site

pytestmark = pytest.mark.browser
DEMO_SECONDS = 60.0
PROMISED_SECONDS = 60.0


@pytest.fixture
def demo_site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path / "data", has_demo=True)
    site.start()
    yield site
    site.stop()


def test_demo_goes_live_waits_for_sir_and_finishes_without_a_reload(
    demo_site: Site, driver: Chrome
) -> None:
    sir = Person(driver, demo_site.url)
    sir.sign_in()
    sir.open_live("/projects/demo/")
    sir.mark_page()
    sir.see('[data-node="tests"].node--amber', seconds=DEMO_SECONDS)
    sir.see("[data-inbox-count]", "1")
    sir.see("#log", "FAIL")
    board = sir.open_tab()

    sir.open_live("/inbox/")
    sir.mark_page()
    sir.see("[data-list] .item.is-current", "tests")
    assert "len(ELLIPSIS)" in sir.see(".pane .diff").text
    sir.press("a")
    sir.see(".pane", "All clear since")
    sir.see_gone("[data-list] .item")
    assert sir.is_on_marked_page
    assert sir.complaints() == []

    sir.go_to_tab(board)
    sir.see(".master-row", "Done", seconds=DEMO_SECONDS)
    sir.see('[data-node="report"].node--green')
    sir.see_gone("[data-inbox-count]")
    assert sir.is_on_marked_page
    assert sir.complaints() == []


def test_stranger_decides_by_three_clicks_within_a_minute_of_what_the_start_printed(
    demo_site: Site, driver: Chrome, record_property: Callable[[str, object], None]
) -> None:
    assert demo_site.process is not None
    assert "“Decide it now” on the first page opens it." in demo_site.process.output
    person = Person(driver, demo_site.url)
    person.take(WIDE)
    person.open("/")
    person.see("#id_username").send_keys("sir")
    person.see("#id_password").send_keys(PASSWORD)
    clicks = ("Sign in", "Decide it now", "Approve")
    person.click("button", clicks[0])
    person.click("main a.btn", clicks[1])
    assert "len(ELLIPSIS)" in person.see(".document .diff").text
    person.click("[data-dock] button[name=verdict]", clicks[2])
    person.see(".closed-card")
    took = time.monotonic() - demo_site.printed_at
    record_property("seconds_from_printed_address_to_decided", round(took, 1))
    assert took < PROMISED_SECONDS
    assert demo_site.questions("demo") == []
    assert person.complaints() == []
