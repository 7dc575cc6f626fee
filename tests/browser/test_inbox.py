"""The inbox under the hands: keys, the second question, drafts, what others decide meanwhile."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
SAVED = {"en": "Draft saved", "zh-hans": "草稿已保存"}


def open_card(person: Person, decision: int) -> None:
    """Open the inbox with this item in the reading pane."""
    person.open_live(f"/inbox/?item={decision}")
    person.see(f'[data-dock="{decision}"]')


def test_keys_move_along_the_list_and_open_an_item(site: Site, person: Person) -> None:
    first, second = site.ask("keys", count=2)
    open_card(person, first)
    person.mark_page()
    person.press("j")
    person.see(f'[data-dock="{second}"]')
    person.see_true(f"new URL(location).searchParams.get('item') === '{second}'")
    person.press("k")
    person.see(f'[data-dock="{first}"]')
    assert person.is_on_marked_page
    person.press(Keys.ENTER)
    person.see_true(f"location.pathname === '/inbox/{first}/'")
    person.press("u")
    person.see(f"[data-list] #row-{first}.is-current")
    assert person.complaints() == []


def test_verdict_moves_on_to_the_next_item(site: Site, person: Person) -> None:
    first, second = site.ask("moves-on", count=2)
    open_card(person, first)
    person.mark_page()
    person.press("a")
    person.see(f"#row-{first}.is-signed")
    person.see(f'[data-dock="{second}"]')
    person.see_gone(f"#row-{first}")
    assert person.is_on_marked_page
    assert [int(one["id"]) for one in site.questions("moves-on")] == [second]


def test_verdict_with_a_reason_says_when_it_is_missing(site: Site, person: Person) -> None:
    (asked,) = site.ask("reasons")
    open_card(person, asked)
    person.press("c")
    person.see("[data-reason-error]")
    assert person.ask("document.activeElement.name") == "reason"
    person.press("again, with ", "tests", "r", "a", Keys.ESCAPE)
    assert person.ask("document.querySelector('[name=reason]').value") == "again, with testsra"
    assert len(site.questions("reasons")) == 1
    person.press("c")
    person.see_gone(f'[data-dock="{asked}"]')
    assert site.call("GET", f"decisions/{asked}/")["reason"] == "again, with testsra"


def test_reject_is_asked_once_more(site: Site, person: Person) -> None:
    (asked,) = site.ask("rejected")
    open_card(person, asked)
    person.click(f'[data-dock="{asked}"] [name=reason]')
    person.press("not worth it", Keys.ESCAPE)
    person.press("r")
    dialog = person.see("#confirm")
    assert "not worth it" in dialog.text
    assert person.ask("document.activeElement.hasAttribute('data-confirm-back')")
    person.press(Keys.ESCAPE)
    person.see_gone("#confirm")
    assert len(site.questions("rejected")) == 1
    person.press("r")
    person.click("[data-confirm-sign]")
    person.see_gone(f"#row-{asked}")
    shown = site.call("GET", f"decisions/{asked}/")
    assert (shown["verdict"], shown["reason"]) == ("reject", "not worth it")


@in_both_languages
def test_draft_survives_swaps_reload_and_another_browser(
    site: Site, person: Person, language: str
) -> None:
    first, second = site.ask(f"drafts-{language}", count=2)
    open_card(person, first)
    person.click(f'[data-dock="{first}"] [name=reason]')
    person.press("half a thou")
    person.see("[data-draft-note]", SAVED[language])
    site.decide(second, "accept_as_is")
    person.see_gone(f"#row-{second}")
    assert person.ask("document.querySelector('[name=reason]').value") == "half a thou"
    person.driver.refresh()
    person.see(f'[data-dock="{first}"]')
    assert person.ask("document.querySelector('[name=reason]').value") == "half a thou"
    person.ask("localStorage.clear()")
    person.open(f"/inbox/{first}/")
    assert person.ask("document.querySelector('[name=reason]').value") == "half a thou"


def test_card_that_another_closes_says_who_and_keeps_no_button(site: Site, person: Person) -> None:
    (asked,) = site.ask("elsewhere")
    person.open_live(f"/inbox/{asked}/")
    person.mark_page()
    site.decide(asked, "accept_as_is", "seen from the train")
    closed = person.see(f'[data-dock="{asked}"] .closed-card')
    assert "seen from the train" in closed.text
    assert not person.has("button[name=verdict]")
    assert person.is_on_marked_page


def test_new_item_appears_and_the_counts_follow_in_every_tab(site: Site, person: Person) -> None:
    person.open_live("/")
    overview = person.open_tab()
    person.open_live("/inbox/")
    person.mark_page()
    (asked,) = site.ask("appears")
    person.see(f"#row-{asked}, [data-new-items]:not([hidden])")
    number = person.ask("Number(document.querySelector('[data-inbox-count]').textContent)")
    assert number == len(site.call("GET", "decisions/?status=open&limit=100")["results"])
    person.see_true(f"document.title.startsWith('({number}) ')")
    assert person.is_on_marked_page
    person.go_to_tab(overview)
    person.see("[data-inbox-count]", str(number))
    site.decide(asked, "accept_as_is")
    person.see_true(f"!document.title.startsWith('({number}) ')")
