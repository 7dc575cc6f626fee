"""Reading and deciding without JavaScript, at 360 pixels and at a desk, in both languages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import FLAGS, in_both_languages
from tests.browser.person import Person
from tests.browser.site import Site

pytestmark = pytest.mark.browser
NARROW = (360, 780)
SIGN_WAIVE = {"en": "Sign: waive", "zh-hans": "签署：豁免"}
NO_SCRIPT = {"profile.managed_default_content_settings.javascript": 2}


@pytest.fixture
def plain(site: Site, tmp_path: Path, language: str) -> Iterator[Person]:
    """Sir at a browser that runs no script."""
    options = ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'plain'}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", NO_SCRIPT)
    options.binary_location = str(shutil.which("chromium"))
    chrome = Chrome(options, Service(str(shutil.which("chromedriver"))))
    made = Person(chrome, site.url)
    made.sign_in(language=language)
    yield made
    chrome.quit()


@in_both_languages
def test_item_is_read_and_decided_without_script(site: Site, plain: Person, language: str) -> None:
    (asked,) = site.ask(f"plain-{language}")
    plain.open("/inbox/")
    plain.click(f"#row-{asked} .row-link")
    plain.see("main h1")
    plain.see("[name=reason]").send_keys("read on paper")
    plain.click('button[name=verdict][value="accept_as_is"]')
    plain.see(".closed-card", "read on paper")
    shown = site.call("GET", f"decisions/{asked}/")
    assert (shown["verdict"], shown["reason"]) == ("accept_as_is", "read on paper")


@in_both_languages
def test_destructive_verdict_is_asked_on_a_page_of_its_own(
    site: Site, plain: Person, language: str
) -> None:
    slug = f"twice-{language}"
    (asked,) = site.ask(slug)
    plain.take(NARROW)
    plain.open(f"/inbox/{asked}/")
    plain.see("[name=reason]").send_keys("not worth it")
    plain.see('button[name=verdict][value="reject"]').send_keys(Keys.ENTER)
    assert len(site.questions(slug)) == 1
    assert "not worth it" in plain.see("main").text
    plain.see("main button.btn--stop").send_keys(Keys.ENTER)
    plain.see(".closed-card")
    assert site.call("GET", f"decisions/{asked}/")["verdict"] == "reject"


@in_both_languages
def test_stopped_project_is_decided_without_script(
    site: Site, plain: Person, language: str
) -> None:
    asked = site.stop_project(f"halted-{language}")
    plain.take(NARROW)
    plain.open(f"/inbox/{asked}/")
    plain.see('input[name=verdict][value="waive"]').send_keys(Keys.SPACE)
    plain.see(".choice-sign", SIGN_WAIVE[language])
    plain.see("[name=reason]").send_keys("it is enough")
    plain.see("[name=release_dependents]").send_keys(Keys.SPACE)
    plain.see("[data-choice-sign]").send_keys(Keys.ENTER)
    plain.see("main button.btn--stop").send_keys(Keys.ENTER)
    plain.see(".closed-card", "it is enough")
    assert site.call("GET", f"decisions/{asked}/")["verdict"] == "waive"


@in_both_languages
def test_pages_are_whole_at_360_pixels_and_the_past_is_reached_by_a_form(
    site: Site, plain: Person, language: str
) -> None:
    slug = f"small-{language}"
    (asked,) = site.ask(slug)
    plain.take(NARROW)
    task = site.questions(slug)[0]["task"]
    for path in (
        "/", "/inbox/", f"/inbox/{asked}/", "/inbox/history/", "/projects/", f"/projects/{slug}/",
        f"/projects/{slug}/tasks/{task}/", f"/projects/{slug}/replay/", "/audit/", "/agents/",
    ):  # fmt: skip
        plain.open(path)
        plain.see("h1, .topbar-phone")
        width = plain.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
        assert width <= NARROW[0], path
    plain.open(f"/projects/{slug}/replay/")
    newest = plain.see("#replay-told").text
    plain.click('[data-replay-step="earlier"]')
    assert plain.see("#replay-told").text != newest
    plain.click(".replay-bar button")
    plain.see("#replay-told")
    site.decide(asked, "accept_as_is")
