"""A running installation for each file, and a browser without memories for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.browser.person import Person
from tests.browser.site import Site

LANGUAGES = ("en", "zh-hans")
in_both_languages = pytest.mark.parametrize("language", LANGUAGES)
"""For a test that takes `language`; `person` reads the pages in it."""
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--lang=en",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An installation without the demo."""
    started = Site(tmp_path_factory.mktemp("site") / "data")
    started.start()
    yield started
    started.stop()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Chrome]:
    """Debian's Chromium with a profile of its own."""
    options = ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options, Service(str(shutil.which("chromedriver"))))
    yield chrome
    chrome.quit()


@pytest.fixture
def language() -> str:
    """What the person reads."""
    return "en"


@pytest.fixture
def person(driver: Chrome, site: Site, language: str) -> Person:
    """Sir, signed in, at a wide screen."""
    made = Person(driver, site.url)
    made.sign_in(language=language)
    return made
