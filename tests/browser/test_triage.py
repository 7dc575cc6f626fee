"""The inbox under pressure: twenty items by keys, a slow server, a rival tab, a lost answer."""

from __future__ import annotations

import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site
from tests.browser.test_inbox import open_card

pytestmark = pytest.mark.browser
NOT_SIGNED = {"en": "Not signed", "zh-hans": "未签署"}
ITEMS = 20
SERVER_DELAY_MS = 1000
TRIAGE_SECONDS = 120.0


def slow_down(person: Person, milliseconds: int) -> None:
    """Let each request of the page reach the server that much later."""
    person.driver.execute_script(
        """
        const [wait] = arguments;
        const send = window.fetch;
        window.fetch = async (...all) => {
          await new Promise((go) => setTimeout(go, wait));
          return send(...all);
        };
        """,
        milliseconds,
    )


def hold_posts(person: Person) -> None:
    """Keep what the page posts on its way until `window.letGo()`."""
    person.driver.execute_script(
        """
        const send = window.fetch;
        const held = new Promise((go) => { window.letGo = go; });
        window.fetch = async (address, options = {}) => {
          if (options.method === "POST") await held;
          return send(address, options);
        };
        """
    )


def cut(person: Person, *, is_cut: bool) -> None:
    """Take the line away, or give it back."""
    person.driver.execute_cdp_cmd("Network.enable", {})
    person.driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": is_cut, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    )


@in_both_languages
def test_twenty_items_by_keys_with_a_server_a_second_away(
    site: Site, person: Person, language: str
) -> None:
    slug = f"twenty-{language}"
    asked = site.ask(slug, count=ITEMS)
    person.open_live(f"/inbox/?project={slug}")
    person.mark_page()
    slow_down(person, SERVER_DELAY_MS)
    began = time.monotonic()
    for _ in asked:
        # The verdict key works only on a card that is whole: it is never pressed blind.
        person.see_true(
            "!document.querySelector('[data-list] .item.is-current') || "
            "document.querySelector('[data-dock]')?.dataset.dock === "
            "document.querySelector('[data-list] .item.is-current').dataset.row"
        )
        person.press("a")
        person.see_true("Boolean(document.querySelector('.item.is-signing, .item.is-signed'))")
    person.see_gone("[data-list] [data-row]")
    assert time.monotonic() - began < TRIAGE_SECONDS
    assert person.is_on_marked_page
    assert site.questions(slug) == []
    verdicts = {site.call("GET", f"decisions/{one}/")["verdict"] for one in asked}
    assert verdicts == {"approve"}


@in_both_languages
def test_of_two_tabs_one_wins_and_the_other_says_who_did(
    site: Site, person: Person, language: str
) -> None:
    (asked,) = site.ask(f"race-{language}")
    open_card(person, asked)
    first = person.open_tab()
    open_card(person, asked)
    second = str(person.driver.current_window_handle)
    # The second tab asks first, and its verdict is on the way while the first one signs.
    hold_posts(person)
    person.click(f'[data-dock="{asked}"] [name=reason]')
    person.press("too late", Keys.ESCAPE)
    person.press("c")
    person.see(f"#row-{asked}.is-signing")
    person.go_to_tab(first)
    person.press("a")
    person.see_gone(f"#row-{asked}")
    person.go_to_tab(second)
    person.driver.execute_script("window.letGo()")
    row = person.see(f"#row-{asked}.is-refused")
    assert NOT_SIGNED[language] in row.text
    assert "sir" in row.text.lower()
    shown = site.call("GET", f"decisions/{asked}/")
    assert (shown["verdict"], shown["reason"]) == ("approve", "")


@in_both_languages
def test_verdict_that_does_not_arrive_rolls_back_and_keeps_the_text(
    site: Site, person: Person, language: str
) -> None:
    slug = f"lost-{language}"
    first, _second = site.ask(slug, count=2)
    open_card(person, first)
    person.mark_page()
    person.click(f'[data-dock="{first}"] [name=reason]')
    person.press("typed before", Keys.ESCAPE)
    cut(person, is_cut=True)
    person.press("a")
    row = person.see(f"#row-{first}.is-refused")
    assert NOT_SIGNED[language] in row.text
    cut(person, is_cut=False)
    assert len(site.questions(slug)) == 2
    person.driver.refresh()
    open_card(person, first)
    assert person.ask("document.querySelector('[name=reason]').value") == "typed before"
    person.press("a")
    person.see(f"#row-{first}.is-signed")
    person.see_gone(f"#row-{first}")
    assert len(site.questions(slug)) == 1


FAILED_PANES = """
window.failed = [];
const send = window.fetch;
window.fetch = (address, ...rest) => send(address, ...rest).catch((why) => {
  window.failed.push(String(address));
  throw why;
});
"""


def test_row_that_cannot_be_loaded_keeps_the_page_and_is_loaded_later(
    site: Site, person: Person
) -> None:
    first, second = site.ask("unloaded", count=2)
    person.open_live(f"/inbox/?project=unloaded&item={first}")
    person.mark_page()
    person.driver.execute_script(FAILED_PANES)
    cut(person, is_cut=True)
    person.press("j")
    person.see_true("window.failed.some((one) => one.endsWith('/pane/'))")
    assert person.is_on_marked_page
    assert person.has(f'[data-dock="{first}"]')
    cut(person, is_cut=False)
    person.see(f'[data-dock="{second}"]')
    assert person.is_on_marked_page


def test_letter_without_a_meaning_and_keys_that_are_turned_off_do_nothing(
    site: Site, person: Person
) -> None:
    (asked,) = site.ask("letters")
    open_card(person, asked)
    person.press("?")
    person.see("#key-help")
    person.press(Keys.ESCAPE)
    person.see_gone("#key-help")
    person.press("9")
    person.see("[data-key-note]", "9")
    person.driver.execute_script("document.documentElement.dataset.singleKeys = 'off'")
    person.press("a", "j", "x")
    assert person.ask("document.querySelectorAll('.row-tick:checked').length") == 0
    assert len(site.questions("letters")) == 1


def test_several_are_decided_together_and_each_says_what_became_of_it(
    site: Site, person: Person
) -> None:
    asked = site.ask("together", count=4)
    person.open_live(f"/inbox/?project=together&item={asked[0]}")
    person.press("x", "j", "j", "x")
    person.see("[data-bulk]", "2")
    chosen = [
        int(one.get_attribute("value") or 0)
        for one in person.driver.find_elements(By.CSS_SELECTOR, ".row-tick:checked")
    ]
    person.click("[data-bulk] button")
    person.see(".bulk-card")
    site.decide(chosen[0], "accept_as_is", "meanwhile")
    person.see("textarea[name=reason]").send_keys("fine as it is")
    person.click("input[name=confirmed]")
    person.click('button[name=verdict][value="accept_as_is"]')
    late = person.see(f"table.rows tr:has(.state--red):has(a[href$='/{chosen[0]}/'])")
    assert "Not signed: “Accepted as is” by sir" in late.text
    person.see(f"table.rows tr:has(.state--green):has(a[href$='/{chosen[1]}/'])")
    assert person.ask("document.querySelectorAll('table.rows tr').length") == len(chosen)
    left = {int(one["id"]) for one in site.questions("together")}
    assert left == set(asked) - set(chosen)
    first = site.call("GET", f"decisions/{chosen[0]}/")
    assert first["reason"] == "meanwhile"
