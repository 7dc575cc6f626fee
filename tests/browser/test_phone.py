"""A phone: a tap opens the sheet, only the sheet signs; nothing is wider than the screen."""

from __future__ import annotations

import pytest

from tests.browser.conftest import in_both_languages
from tests.browser.person import PHONE, Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
NARROW = (360, 800)


@pytest.fixture(scope="module")
def waiting(site: Site) -> tuple[int, int, int]:
    """A question, the question of a stopped project, and the task of the first."""
    (asked,) = site.ask("narrow")
    return asked, site.stop_project("halted"), int(site.questions("narrow")[0]["task"])


def test_tap_opens_the_sheet_which_signs(site: Site, person: Person) -> None:
    (asked,) = site.ask("tapped")
    person.take(PHONE)
    person.open_live(f"/inbox/{asked}/")
    person.mark_page()
    person.click('.phone-bar [data-taps="request_changes"]')
    sheet = person.see("#verdict-sheet")
    assert len(site.questions("tapped")) == 1
    person.click("[data-sheet-sign]")
    person.see("[data-sheet-error]")
    person.see("[data-sheet-reason]").send_keys("from the train")
    person.click("[data-sheet-sign]")
    person.see_gone("#verdict-sheet")
    person.see(".closed-card", "from the train")
    assert person.is_on_marked_page
    assert sheet is not None
    assert site.call("GET", f"decisions/{asked}/")["reason"] == "from the train"


def test_row_opens_the_page_of_its_card(site: Site, person: Person) -> None:
    (asked,) = site.ask("rows")
    person.take(PHONE)
    person.open_live("/inbox/")
    person.click(f"#row-{asked} .row-link")
    person.see(".phone-bar")
    assert person.ask("location.pathname") == f"/inbox/{asked}/"


@in_both_languages
def test_no_page_is_wider_than_a_phone(
    site: Site, person: Person, waiting: tuple[int, int, int]
) -> None:
    asked, stopped, task = waiting
    for path in (
        "/", "/inbox/", f"/inbox/{asked}/", "/inbox/history/", "/projects/", "/projects/narrow/",
        f"/projects/narrow/tasks/{task}/", "/audit/", "/new/", "/search/?q=check", "/nothing-here/",
        f"/inbox/{stopped}/", "/notifications/", "/notifications/settings/", "/insights/",
        "/knowledge/", "/projects/narrow/policy/", "/agents/", "/new-agent/",
        "/projects/narrow/replay/",
    ):  # fmt: skip
        person.take(NARROW)
        person.open(path)
        for size in (NARROW, PHONE):
            person.take(size)
            assert person.ask("document.documentElement.scrollWidth") <= size[0], (path, size)


MENUS = """
[...document.querySelectorAll("details.menu")]
  .filter((menu) => menu.checkVisibility())
  .map((menu) => {
    menu.open = true;
    menu.scrollIntoView({ block: "center" });
    const sheet = menu.querySelector(".menu-sheet").getBoundingClientRect();
    const [x, y] = [sheet.left + sheet.width / 2, sheet.top + sheet.height / 2];
    const isOnTop = menu.contains(document.elementFromPoint(x, y));
    menu.open = false;
    const { left, right, top, bottom } = sheet;
    return { said: menu.textContent.trim().slice(0, 20), left, right, top, bottom, isOnTop };
  })
"""


def test_every_menu_opens_on_the_screen(site: Site, person: Person) -> None:
    (asked,) = site.ask("menus")
    person.take(PHONE)
    task = site.questions("menus")[0]["task"]
    off: list[object] = []
    seen = 0
    for path in (
        "/inbox/", f"/inbox/{asked}/", "/inbox/history/", "/projects/menus/",
        f"/projects/menus/tasks/{task}/", "/audit/",
    ):  # fmt: skip
        person.open(path)
        for menu in person.ask(MENUS):
            seen += 1
            is_beside = 0 <= menu["left"] <= menu["right"] <= PHONE[0]
            is_above = 0 <= menu["top"] <= menu["bottom"] <= PHONE[1]
            if not (is_beside and is_above and menu["isOnTop"]):
                off.append((path, menu))
    assert off == []
    assert seen >= 8
