"""What a person sees and when: from a change to its text in the page, from a press to its answer.

A headless Chromium with the board open, while 50 other sockets hear of 50 comments a second. The
time of a change begins when it is sent, so the request is in it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from tests.bench.installation import Installation
from tests.bench.paints import browser_of
from tests.bench.workloads import WIDE_OPEN, hint_latencies

SOCKETS, COMMENTS, CHANGES = 50, 1_000, 60
PAUSE_SECONDS = 0.25
WATCH = """
window.seen = {};
new MutationObserver(() => {
  document.querySelectorAll(".master-row").forEach((row) => {
    const key = row.querySelector(".master-key")?.textContent.trim();
    if (key && !(key in seen) && row.textContent.includes("Cancelled")) seen[key] = Date.now();
  });
}).observe(document.body, { childList: true, subtree: true, characterData: true });
"""
PRESS = """
const [key, done] = arguments;
const before = document.querySelector("[data-list] .is-current");
const began = performance.now();
document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
if (document.querySelector("[data-list] .is-current") === before) throw new Error("nothing moved");
requestAnimationFrame(() => setTimeout(() => done(performance.now() - began), 0));
"""
"""From a press to the end of the frame that answers it, as browsers count an interaction."""


def changes_seen(place: Installation, folder: Path) -> tuple[list[float], int]:
    """From sending a change to its word in the page. Units: ms; changes that were never seen."""
    project = place.new_project(WIDE_OPEN)
    rows = [
        place.post(f"projects/{project}/tasks", {"title": f"t{n}", "route": "direct"})
        for n in range(CHANGES)
    ]
    with browser_of(place, folder) as browser, ThreadPoolExecutor(1) as pool:
        browser.get(f"{place.url}projects/{project}/")
        browser.execute_script(WATCH)
        noise = pool.submit(hint_latencies, place, sockets=SOCKETS, bursts=1, size=COMMENTS)
        sent = _change(place, project, rows, noise)
        seen: dict[str, float] = browser.execute_script("return window.seen")
    return [seen[key] - at for key, at in sent.items() if key in seen], len(sent.keys() - seen)


def _change(
    place: Installation, project: str, rows: Sequence[dict[str, Any]], noise: Future[Any]
) -> dict[str, float]:
    """Cancel one task after the other while the noise lasts. Shape: when each was sent, by key."""
    sent = {}
    for row in rows:
        sent[row["key"]] = time.time() * 1000
        place.post(f"projects/{project}/tasks/{row['id']}/cancel", {"reason": "measured"})
        time.sleep(PAUSE_SECONDS)
    noise.result()
    return sent


def presses(place: Installation, folder: Path, looks: int = 20) -> list[float]:
    """From a key that selects another row of the inbox to the frame of it. Units: milliseconds."""
    with browser_of(place, folder) as browser:
        browser.get(f"{place.url}inbox/")
        return [_press(browser, "jk"[number % 2]) for number in range(looks)]


def _press(browser: Chrome, key: str) -> float:
    time.sleep(PAUSE_SECONDS)
    took: float = browser.execute_async_script(PRESS, key)
    return took
