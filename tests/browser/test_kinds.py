"""Every kind of decision on a phone of 360 pixels: its content, each verdict, Pause, no scroll."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site
from tests.dashboard.kinds import CONTENT
from tests.deployment.processes import wait_until

pytestmark = pytest.mark.browser
NARROW = (360, 800)
OUT_OF_REACH = """
[...document.querySelectorAll("[name=verdict], .choice-sign, [data-taps], .phone-bar .btn")]
  .filter((one) => {
    const target = one.matches("[type=radio]") ? one.closest("label") : one;
    target.scrollIntoView({ block: "center", behavior: "instant" });
    const { left, right, top, bottom, width } = target.getBoundingClientRect();
    const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return !width || left < 0 || right > innerWidth || !target.contains(hit);
  })
  .map((one) => one.outerHTML.slice(0, 160))
"""
OFFERED = """
[...document.querySelectorAll("[name=verdict]")]
  .filter((one) => one.value && (one.closest("label") || one).checkVisibility())
  .map((one) => one.value)
"""


@pytest.fixture(scope="module")
def kinds(site: Site) -> dict[str, dict[str, Any]]:
    """The open decision of every kind, by kind."""
    site.call("POST", "projects/", {"slug": "kinds", "name": "kinds"})
    steps = [
        {"id": str(number), "action": f"look at {number}", "delegate": False}
        for number in range(1, len(CONTENT) + 1)
    ]
    body = {"title": "kinds", "description": "kinds", "plan": {"summary": "k", "steps": steps}}
    made = site.call("POST", "projects/kinds/tasks", body)
    task = f"projects/kinds/tasks/{made['id']}/?expand=all"
    assert wait_until(lambda: len(site.call("GET", task)["children"]) == len(steps))
    site.run("from tests.dashboard.kinds import ask_each_in; ask_each_in('kinds')")
    return {str(one["kind"]): one for one in site.questions("kinds")}


@in_both_languages
def test_each_kind_is_read_and_decided_at_360_pixels(
    kinds: dict[str, dict[str, Any]], person: Person
) -> None:
    person.take(NARROW)
    assert set(kinds) == set(CONTENT)
    for kind, asked in kinds.items():
        person.open(f"/inbox/{asked['id']}/")
        assert person.see("main h1").text
        assert person.ask(OFFERED) == [one["verdict"] for one in asked["options"]], kind
        assert person.ask(OUT_OF_REACH) == [], kind
        person.click(".topbar details.menu summary.phone-icon")
        person.see('.menu-sheet form[action="/projects/kinds/pause/"] button')
        assert person.ask("document.documentElement.scrollWidth") <= NARROW[0], kind
        assert person.complaints() == [], kind
