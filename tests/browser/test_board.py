"""The board in a browser: one event swaps one node, the graph by keys, a map of a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.person import Person
from tests.browser.site import Site
from tests.deployment.processes import wait_until

pytestmark = pytest.mark.browser
KEPT = """
[...document.querySelectorAll("[data-node]")].filter((one) => one.isKept)
  .map((one) => one.dataset.node).sort().join(" ")
"""
FAILING = {"severity": "medium"}


def step(key: str, *after: str, **rest: Any) -> dict[str, Any]:
    """A step whose command fails, so that Sir is asked."""
    done = {"run": ["false"], "on_failure": FAILING}
    return {"id": key, "action": f"look at {key}", "depends_on": list(after), **done, **rest}


def submit(
    site: Site, slug: str, *steps: dict[str, Any], asked: int, allow: Sequence[str] = ("false",)
) -> str:
    """Make a project with one plan, and wait until Sir is asked. Return the path of its board."""
    site.call("POST", "projects/", {"slug": slug, "name": slug})
    policy = {"commands": {"allow": list(allow)}, "limits": {"parallel_children": 50}}
    site.call("PATCH", f"projects/{slug}/", {"policy": policy})
    plan = {"summary": slug, "steps": list(steps)}
    body = {"title": slug, "description": slug, "plan": plan}
    site.call("POST", f"projects/{slug}/tasks", body)
    assert wait_until(lambda: len(site.questions(slug)) == asked)
    return f"/projects/{slug}/"


def accept(site: Site, slug: str, key: str) -> None:
    """Accept what a step did, from somewhere else."""
    (mine,) = [one for one in site.questions(slug) if f"step {key} " in f"{one['question']} "]
    site.decide(int(mine["id"]), "accept_as_is")


def keep_nodes(person: Person) -> None:
    """Mark every node: one that is replaced loses its mark."""
    person.driver.execute_script(
        "document.querySelectorAll('[data-node]').forEach((one) => { one.isKept = true; })"
    )


def focused(person: Person) -> str:
    """The key of the node that has the focus."""
    return str(person.ask("document.activeElement.dataset.node || document.activeElement.tagName"))


def test_one_event_swaps_one_node_and_keeps_its_place(site: Site, person: Person) -> None:
    board = submit(site, "swap", step("a"), step("b"), step("c", "a", "b"), step("d"), asked=3)
    # What was said of the three questions is sealed by then, and no hint of it is on its way.
    person.open_live(board)
    person.open_live(board)
    person.mark_page()
    keep_nodes(person)
    assert person.ask(KEPT) == "a b c d"
    accept(site, "swap", "d")
    person.see('[data-node="d"].node--green')
    assert person.ask(KEPT) == "a b c"
    # What waits for a step is told of its end, nobody else is.
    accept(site, "swap", "a")
    person.see('[data-node="a"].node--green')
    person.see('[data-node="c"]', "needs b")
    assert person.ask(KEPT) == "b"
    assert person.ask("document.querySelector('[data-node=a]').dataset.next") == "c"
    assert person.ask("document.querySelectorAll('[data-from=a] .edge--met').length") == 1
    assert person.ask("document.querySelectorAll('[data-from=b] .edge--met').length") == 0
    assert person.ask("document.querySelectorAll('[data-node][tabindex=\"0\"]').length") == 1
    assert person.is_on_marked_page
    assert person.complaints() == []


def test_graph_is_walked_by_keys(site: Site, person: Person) -> None:
    steps = [step("a"), step("b"), step("c", "a"), step("d", phase=2)]
    person.open_live(submit(site, "walk-keys", *steps, asked=2))
    person.driver.execute_script("document.querySelector('[data-node=a]').focus()")
    person.press(Keys.ARROW_RIGHT)
    assert focused(person) == "c"
    person.press(Keys.ARROW_LEFT)
    assert focused(person) == "a"
    person.press(Keys.ARROW_DOWN)
    assert focused(person) == "b"
    person.press("]")
    assert focused(person) == "a"
    width = "document.querySelector('.band-svg').getBoundingClientRect().width"
    before = person.ask(width)
    person.press("+")
    assert person.ask(width) > before
    person.press("-", "-")
    assert person.ask(width) < before
    person.press("f")
    assert person.ask(width) <= before
    person.press("t")
    person.see(".steps-table", "look at c")
    person.driver.back()
    person.see('[data-node="a"]')
    person.driver.execute_script("document.querySelector('[data-node=a]').focus()")
    person.press("p")
    person.see("[data-graph-phases][aria-current]")
    person.click("[data-graph-steps]")
    person.see('[data-node="a"]')
    person.driver.execute_script("document.querySelector('[data-node=a]').focus()")
    person.press(Keys.ENTER)
    person.see("h1", "look at a")


def test_small_map_shows_where_a_large_graph_goes_on(site: Site, person: Person) -> None:
    chain = [step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(30)]
    person.open_live(submit(site, "long-chain", *chain, asked=1))
    person.see("svg.minimap .minimap-amber")
    left = "document.querySelector('[data-graph]').scrollLeft"
    assert person.ask(left) == 0
    person.driver.execute_script("""
      const map = document.querySelector("svg.minimap");
      const place = map.getBoundingClientRect();
      map.setPointerCapture = () => {};
      map.dispatchEvent(new PointerEvent("pointerdown",
        {clientX: place.right - 6, clientY: place.top + 4, bubbles: true}));
    """)
    assert person.ask(left) > 1_000
    person.see_true("Number(document.querySelector('.minimap-frame').getAttribute('x')) > 20")
    assert person.complaints() == []


def test_graph_that_fits_has_no_map(site: Site, person: Person) -> None:
    person.open_live(submit(site, "fits", step("only"), asked=1))
    person.see('[data-node="only"]')
    assert not person.has("svg.minimap")
