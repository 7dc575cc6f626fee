"""A stopped project: four choices and one button, by keys, on a phone and without a script."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.person import PHONE, Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser


def test_digit_chooses_and_one_button_repeats_the_choice(site: Site, person: Person) -> None:
    asked = site.stop_project("keys")
    person.open_live(f"/inbox/{asked}/")
    person.mark_page()
    person.see(".choice-sign", "Choose one of these first")
    person.press("a", "c", "r", "s")
    assert not person.has("input[name=verdict]:checked")
    person.press("2")
    person.see(".choice-sign", "Sign: amend the task")
    text = person.see("textarea[name=text]")
    text.send_keys(Keys.END, " twice")
    person.see(".text-diff ins", "twice")
    person.see("[name=reason]").send_keys("the place was wrong")
    person.click('input[value="waive"]')
    person.see(".choice-sign", "Sign: waive")
    person.see_gone("textarea[name=text]")
    person.see("[name=reason]").send_keys(Keys.CONTROL, Keys.ENTER)
    person.see("#confirm", "the place was wrong")
    person.click("[data-confirm-sign]")
    person.see(".closed-card", "the place was wrong")
    assert person.is_on_marked_page
    assert site.call("GET", f"decisions/{asked}/")["verdict"] == "waive"
    assert person.complaints() == []


def test_phone_shows_one_attempt_at_a_time(site: Site, person: Person) -> None:
    asked = site.stop_project("pocket")
    person.take(PHONE)
    person.open_live(f"/inbox/{asked}/")
    person.see(".same-as", "same as attempt 1")
    assert person.ask("document.querySelector('.attempts').scrollWidth") <= PHONE[0]
    person.click(".attempt-tab", "Attempt 1")
    person.see_gone(".same-as")
    person.see("td.at-1", "NO-GO")
    person.click(".phone-bar a")
    person.see('input[name=verdict][value="abort"]').send_keys(Keys.SPACE)
    person.see("[name=reason]").send_keys("not worth it")
    person.see("[data-choice-sign]").send_keys(Keys.ENTER)
    person.see("#verdict-sheet", "Abort?")
    assert person.see("[data-sheet-reason]").get_property("value") == "not worth it"
    assert len(site.questions("pocket")) == 1
    person.click("[data-sheet-sign]")
    person.see(".closed-card", "not worth it")
    assert site.call("GET", f"decisions/{asked}/")["verdict"] == "abort"
