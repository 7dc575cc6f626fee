"""A light task that turns out hard moves to three-step under Sir's eyes."""

from __future__ import annotations

import pytest

from tests.browser.person import Person
from tests.browser.site import Site
from tests.deployment.processes import wait_until

pytestmark = pytest.mark.browser
ORDERS = "实现订单 CRUD + 支付对接 + 库存扣减"
"""The source's own order system: it scores 12 to 15, and over 15 once its agent doubts."""


def test_a_light_task_moves_to_three_step_before_sirs_eyes(site: Site, person: Person) -> None:
    site.call("POST", "projects/", {"slug": "light"})
    made = site.call("POST", "projects/light/tasks", {"description": ORDERS})
    path = f"projects/light/tasks/{made['id']}"
    assert wait_until(lambda: site.call("GET", path)["route"] == "light_plan")
    first = site.call("GET", path)["score"]
    assert 8 < first <= 15
    coder = site.agent("coder")
    site.call("POST", f"{path}/claim", token=coder)
    intent = {
        "type": "intent_confirmation", "task": made["id"], "message_id": "intent-1",
        "scope": ["as asked"], "approach": "one after the other",
    }  # fmt: skip
    site.call("POST", "mail/", intent, token=coder)
    body = {"status": "working", "light_plan": ["orders", "payment"]}
    site.call("POST", f"{path}/status", body, token=coder)

    person.open_live(f"/projects/light/tasks/{made['id']}/")
    person.mark_page()
    person.see(".status-line", "light plan")
    person.see("#s1", str(first))
    reported = {"uncertain": True, "note": "nobody knows the payment system"}
    assert site.call("POST", f"{path}/progress", reported, token=coder)["upgraded"]
    person.see("#s1", "moved to three-step")
    person.see(".status-line", "three-step")
    assert person.is_on_marked_page
    after = site.call("GET", path)
    assert (after["route"], after["status"], after["failure_count"]) == ("three_step", "working", 0)
    assert after["score"] > 15
    person.see("#s1", str(after["score"]))
    assert person.complaints() == []
