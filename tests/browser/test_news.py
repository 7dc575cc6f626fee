"""News while Sir reads: rows wait behind a bar, P0 comes at once, focus, ticks and place stay."""

from __future__ import annotations

import pytest

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site
from tests.browser.test_board import step, submit

pytestmark = pytest.mark.browser
LOW = (1440, 520)
TWO_NEW = {"en": "2 new", "zh-hans": "2 项新增"}
FIRST_SHOWN = """
(() => {
  const top = document.querySelector(".inbox-scroll").getBoundingClientRect().top;
  const row = [...document.querySelectorAll("[data-list] [data-row]")]
    .find((one) => one.getBoundingClientRect().bottom > top);
  return [row.id, Math.round(row.getBoundingClientRect().top)];
})()
"""
FOCUSED_ROW = "document.activeElement.closest('[data-row]')?.id"
TICKED = "[...document.querySelectorAll('.row-tick:checked')].map((one) => Number(one.value))"


@in_both_languages
def test_news_waits_while_the_list_is_read_and_a_stopped_project_does_not(
    site: Site, person: Person, language: str
) -> None:
    asked = site.ask(f"read-{language}", count=12)
    person.take(LOW)
    person.open_live(f"/inbox/?item={asked[0]}")
    person.mark_page()
    person.press("x", *"j" * 9)
    held = f"row-{asked[9]}"
    assert person.ask(FOCUSED_ROW) == held
    shown = person.ask(FIRST_SHOWN)
    assert person.ask("document.querySelector('.inbox-scroll').scrollTop") > 0
    late = site.ask(f"late-{language}", count=2)
    person.see("button[data-new-items]", TWO_NEW[language])
    assert not person.has(f"#row-{late[0]}, #row-{late[1]}")
    stopped = site.stop_project(f"stopped-{language}")
    person.see_true(f"Boolean(document.getElementById('row-{stopped}'))")
    assert person.ask(FIRST_SHOWN) == shown
    person.see("button[data-new-items]", TWO_NEW[language])
    person.press(".")
    person.see_true(f"Boolean(document.getElementById('row-{late[1]}'))")
    person.see_gone("button[data-new-items]")
    assert person.ask(FIRST_SHOWN) == shown
    assert person.ask(FOCUSED_ROW) == held
    assert person.ask(TICKED) == [asked[0]]
    assert person.ask("document.querySelector('.item.is-current').id") == held
    assert person.is_on_marked_page
    assert person.complaints() == []


def test_node_and_row_that_hold_the_focus_keep_it_through_an_update(
    site: Site, person: Person
) -> None:
    person.open_live(submit(site, "held", step("a"), step("b", "a"), asked=1))
    person.driver.execute_script("document.querySelector('[data-node=a]').focus()")
    (asked,) = site.questions("held")
    site.decide(int(asked["id"]), "accept_as_is")
    person.see('[data-node="b"].node--amber')
    assert person.ask("document.activeElement.dataset.node") == "a"
    # What holds the focus is not taken from under it; it is brought up to date when it is left.
    person.driver.execute_script("document.activeElement.blur()")
    person.see('[data-node="a"].node--green')
