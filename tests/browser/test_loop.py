"""The loop under Sir's eyes: a NO-GO, its re-plan, and the third failure that he resolves."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.person import Person
from tests.browser.site import Site
from tests.deployment.processes import wait_until

pytestmark = pytest.mark.browser


def refuse(site: Site, task: str, attempt: int) -> None:
    """Judge an attempt NO-GO, as the loop's own state, once it is planned."""

    def is_planned() -> bool:
        found = site.call("GET", task)
        return (found["status"], found["attempt"]) == ("working", attempt)

    assert wait_until(is_planned)
    package = {"verdict": "NO-GO", "failed_cases": [f"TC-AUTH-00{attempt}"]}
    site.call("POST", f"{task}/validation", {**package, "authoritative": True})


def resolve(site: Site, person: Person, slug: str) -> None:
    """Choose one more try at the stopped task's card, say how, and sign it."""
    (asked,) = site.questions(slug)
    assert (asked["kind"], asked["priority"]) == ("max_retries", 1)
    person.open_live(f"/inbox/{asked['id']}/")
    for number in (1, 2, 3):
        person.see(".card-section", f"TC-AUTH-00{number}")
    dock = f'[data-dock="{asked["id"]}"]'
    person.click(f"{dock} [name=verdict][value=retry]")
    person.click(f"{dock} [name=reason]")
    person.press("use the other door", Keys.ESCAPE)
    person.click(f"{dock} [data-choice-sign]")


def begin(site: Site, slug: str) -> str:
    """Bring a task in. Return its address in the API."""
    site.call("POST", "projects/", {"slug": slug})
    site.call("POST", f"projects/{slug}/tasks/import", {"task_auth": {"status": "IN_PROGRESS"}})
    return f"projects/{slug}/tasks/task_auth"


def test_a_task_page_follows_the_loop(site: Site, person: Person) -> None:
    task = begin(site, "loop")
    person.open_live(f"/projects/loop/tasks/{site.call('GET', task)['id']}/")
    person.see("#loop", "None yet")
    refuse(site, task, 1)
    person.see("#loop", "TC-AUTH-001 failed")
    person.see("#loop", "The loop plans it again")
    person.see(".status-line", "attempt 2 of 3")
    refuse(site, task, 2)
    person.see(".status-line", "attempt 3 of 3")
    refuse(site, task, 3)
    person.see("#loop", "The loop stops for Sir")
    assert person.complaints() == []


def test_the_board_shows_a_no_go_its_re_plan_and_the_third_that_sir_resolves(
    site: Site, person: Person
) -> None:
    task = begin(site, "board")
    person.open_live("/projects/board/")
    person.mark_page()
    row = "#master-BOARD-1"
    person.see(row, "task_auth")
    refuse(site, task, 1)
    person.see(row, "NO-GO, re-plan 2 of 3")
    refuse(site, task, 2)
    person.see(row, "NO-GO, re-plan 3 of 3")
    refuse(site, task, 3)
    person.see(row, "Fatal")
    person.see(".board-head", "Suspended")
    assert person.is_on_marked_page
    board = person.open_tab()
    resolve(site, person, "board")
    assert wait_until(lambda: site.call("GET", task)["status"] == "working")
    state = site.call("GET", task)
    assert (state["attempt"], state["failure_count"]) == (4, 0)
    assert site.call("GET", "projects/board/")["status"] == "active"
    person.go_to_tab(board)
    person.see(row, "Waiting for an agent")
    person.see(".board-head", "Active")
    assert person.is_on_marked_page
    assert person.complaints() == []
