"""Browser time of the board: the first paint of a plan of 2,000 steps in headless Chromium.

Folded by phase as the page comes, and one phase of 2,000 steps all open.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.bench.installation import Installation
from tests.bench.workloads import WIDE_OPEN, sign_in
from tests.browser.conftest import FLAGS

STEPS, LOOKS = 2_000, 9
PAINT = """
const told = arguments[arguments.length - 1];
new PerformanceObserver((list) => {
  const first = list.getEntriesByName("first-contentful-paint")[0];
  if (first) told(first.startTime);
}).observe({ type: "paint", buffered: true });
"""
"""A page may be loaded before it is painted: the observer hears of either order."""


def first_paints(place: Installation, folder: Path) -> dict[str, list[float]]:
    """Open the board again and again. Units: milliseconds from the navigation, by what is shown."""
    project = place.new_project(WIDE_OPEN)
    steps = [_step(number) for number in range(STEPS)]
    plan = {"summary": "paint", "steps": steps}
    place.post(f"projects/{project}/tasks", {"title": "p", "description": "p", "plan": plan})
    url = f"{place.url}projects/{project}/"
    with browser_of(place, folder) as browser:
        return {
            "2,000 steps folded by phase": [_paint(browser, url) for _ in range(LOOKS)],
            "2,000 steps of one phase open": [
                _paint(browser, f"{url}?phase=1") for _ in range(LOOKS)
            ],
        }


def _step(number: int) -> dict[str, Any]:
    after = [f"s{number - 50}"] if number >= 50 else []
    key = f"s{number}"
    return {"id": key, "action": f"step {number}", "depends_on": after, "delegate": False}


def _paint(browser: Chrome, url: str) -> float:
    browser.get(url)
    found: float = browser.execute_async_script(PAINT)
    return found


@contextmanager
def browser_of(place: Installation, folder: Path) -> Iterator[Chrome]:
    """Chromium, with Sir signed in."""
    options = ChromeOptions()
    for flag in (
        *FLAGS,
        "--window-size=1440,900",
        f"--user-data-dir={folder / f'profile-{uuid4().hex[:6]}'}",
    ):
        options.add_argument(flag)
    options.binary_location = str(shutil.which("chromium"))
    chrome = Chrome(options, Service(str(shutil.which("chromedriver"))))
    try:
        chrome.get(f"{place.url}accounts/login/")
        with sign_in(place) as signed:
            for name, value in signed.cookies.items():
                chrome.add_cookie({"name": name, "value": value})
        yield chrome
    finally:
        chrome.quit()
