"""An item that expires while it is open on the screen: its dock becomes the closed card."""

from __future__ import annotations

import pytest

from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
RULE = {"policy_id": "quick", "after_seconds": 60, "outcome": "reject"}
LEFT = "Number(document.querySelector('[data-dock]').dataset.expiresIn)"
WITHIN_SECONDS = 2


def test_dock_becomes_the_closed_card_at_the_deadline(site: Site, person: Person) -> None:
    policy = {"expiry": {"medium_defect": RULE}}
    site.call("POST", "projects/", {"slug": "expires", "name": "Expires", "policy": policy})
    (asked,) = site.ask("expires")
    person.open_live(f"/inbox/{asked}/")
    person.see(f'[data-dock="{asked}"] button[name=verdict]')
    left = person.ask(LEFT) / 1000
    assert 0 < left <= 60
    person.mark_page()
    person.see_gone(f'[data-dock="{asked}"] button[name=verdict]', seconds=left + WITHIN_SECONDS)
    closed = person.see(f'[data-dock="{asked}"]', "Rejected")
    assert "quick" in closed.text
    assert person.is_on_marked_page
    assert person.complaints() == []
