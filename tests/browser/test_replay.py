"""Replay in a browser: the slider by keys and by hand, and nothing in it is live."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser


def at(person: Person) -> int:
    """The event that the page shows."""
    return int(person.ask("document.querySelector('[data-past]').dataset.at"))


def test_slider_walks_through_the_history_by_keys(site: Site, person: Person) -> None:
    (asked,) = site.ask("walk")
    person.open_live("/projects/walk/replay/")
    person.mark_page()
    newest = at(person)
    person.see('[data-node="check-1"].node--amber')
    person.driver.execute_script("document.querySelector('[data-replay-slider]').focus()")
    person.press(Keys.ARROW_LEFT)
    person.see_true(f"Number(document.querySelector('[data-past]').dataset.at) < {newest}")
    person.press(Keys.HOME)
    person.see(".master-rows", "No task existed yet")
    person.press(Keys.ARROW_RIGHT)
    first = person.ask("Number(document.querySelector('[data-replay-slider]').min)")
    person.see_true(f"Number(document.querySelector('[data-past]').dataset.at) > {first}")
    person.press(Keys.END)
    person.see('[data-node="check-1"].node--amber')
    assert person.ask("new URL(location).searchParams.get('at')") == str(newest)
    assert person.is_on_marked_page
    assert not person.has("button[name=verdict]")

    site.decide(asked, "accept_as_is")
    person.see_true("!document.title.startsWith('(1)')")
    # What happens now does not move what was.
    assert at(person) == newest
    person.see('[data-node="check-1"].node--amber')
    assert person.complaints() == []
