"""The live log of a board: it follows, pauses where Sir reads, and is searched and filtered."""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site
from tests.browser.test_board import accept, step, submit

pytestmark = pytest.mark.browser
NEWS = 34
PAUSED = {"en": r"Paused, (\d+) new", "zh-hans": r"已暂停，新增 (\d+)"}
AT_END = """
(() => {
  const log = document.querySelector("[data-log]");
  return log.scrollHeight > log.clientHeight
    && log.scrollHeight - log.scrollTop - log.clientHeight < 24;
})()
"""
LINES = "document.querySelectorAll('.log-line').length"
SHOWN = """
[...document.querySelectorAll(".log-line")].filter((one) => one.checkVisibility())
  .map((one) => [one.dataset.step, one.textContent])
"""


@in_both_languages
def test_log_follows_pauses_and_is_searched(site: Site, person: Person, language: str) -> None:
    slug = f"log-{language}"
    steps = [
        step("count", run=["seq 1 120"]),
        step("ask", "count"),
        step("more", "ask", run=[f"seq 501 {500 + NEWS}"]),
    ]
    person.open_live(submit(site, slug, *steps, asked=1, allow=("false", "seq")))
    person.mark_page()
    person.see_true(AT_END)
    person.driver.execute_script("document.querySelector('[data-log]').scrollTop = 0")
    person.see('[data-log-follow][aria-pressed="false"]')
    before = person.ask(LINES)
    accept(site, slug, "ask")
    person.see('[data-node="more"].node--green')
    person.see_true(f"{LINES} >= {before + NEWS}")
    told = re.search(PAUSED[language], person.see("[data-log-follow]").text)
    assert told is not None
    assert int(told[1]) == person.ask(LINES) - before
    assert person.ask("document.querySelector('[data-log]').scrollTop") == 0
    person.click("[data-log-follow]")
    person.see('[data-log-follow][aria-pressed="true"]')
    assert person.ask(AT_END)

    person.see("[data-log-step]").send_keys("more")
    person.see("[data-log][data-filtering]")
    assert {key for key, _text in person.ask(SHOWN)} == {"more"}
    person.click("summary:has(+ .menu-sheet [data-log-search])")
    person.see("[data-log-search]").send_keys("519")
    (hit,) = person.ask(SHOWN)
    assert hit[0] == "more"
    assert "519" in hit[1]
    assert person.is_on_marked_page
    assert person.complaints() == []
