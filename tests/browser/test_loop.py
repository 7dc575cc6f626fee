"""The loop under Sir's eyes: a NO-GO, its re-plan, and the third failure that he resolves."""

from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.person import Person
from tests.browser.site import Site
from tests.deployment.processes import wait_until

pytestmark = pytest.mark.browser
TASK = "projects/loop/tasks/task_auth"


def read(site: Site) -> dict[str, Any]:
    """The task as the API has it."""
    task: dict[str, Any] = site.call("GET", TASK)
    return task


def refuse(site: Site, attempt: int) -> None:
    """Judge an attempt NO-GO, as the loop's own state, once it is planned."""
    assert wait_until(lambda: (read(site)["status"], read(site)["attempt"]) == ("working", attempt))
    package = {"verdict": "NO-GO", "failed_cases": [f"TC-AUTH-00{attempt}"]}
    site.call("POST", f"{TASK}/validation", {**package, "authoritative": True})


def test_a_no_go_is_planned_again_and_the_third_waits_for_sir(site: Site, person: Person) -> None:
    site.call("POST", "projects/", {"slug": "loop"})
    site.call("POST", "projects/loop/tasks/import", {"task_auth": {"status": "IN_PROGRESS"}})
    person.open_live(f"/projects/loop/tasks/{read(site)['id']}/")
    person.see("#loop", "None yet")
    refuse(site, 1)
    person.see("#loop", "TC-AUTH-001 failed")
    person.see("#loop", "The loop plans it again")
    person.see(".status-line", "attempt 2 of 3")
    refuse(site, 2)
    person.see(".status-line", "attempt 3 of 3")
    refuse(site, 3)
    person.see("#loop", "The loop stops for Sir")
    assert site.call("GET", "projects/loop/")["status"] == "suspended"
    (asked,) = site.questions("loop")
    person.open_live(f"/inbox/{asked['id']}/")
    for number in (1, 2, 3):
        person.see(".card-section", f"TC-AUTH-00{number}")
    person.click(f'[data-dock="{asked["id"]}"] [name=reason]')
    person.press("use the other door", Keys.ESCAPE)
    person.click(f'[data-dock="{asked["id"]}"] button[value=retry]')
    assert wait_until(lambda: read(site)["status"] == "working")
    assert (read(site)["attempt"], read(site)["failure_count"]) == (4, 0)
    assert site.call("GET", "projects/loop/")["status"] == "active"
    assert person.complaints() == []
