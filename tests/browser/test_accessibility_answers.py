"""axe-core on what no address leads to: pages that answer a form, and open dialogs and sheets."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.person import PHONE, WIDE, Person
from tests.browser.site import Site
from tests.browser.test_accessibility import faults_here
from tests.browser.test_inbox import open_card

pytestmark = pytest.mark.browser
LOOKS = [("light", "zh-hans"), ("dark", "en")]
SEND_REJECT_WITHOUT_SCRIPT = """
const form = document.querySelector("[data-verdict-form]");
const verdict = document.createElement("input");
Object.assign(verdict, { name: "verdict", value: "reject" });
form.querySelector("[name=reason]").value = "not worth it";
form.append(verdict);
HTMLFormElement.prototype.submit.call(form);
"""
SEND_VERIFY_WITHOUT_SCRIPT = """
HTMLFormElement.prototype.submit.call(document.querySelector("form[hx-post$='/audit/verify/']"));
"""


@pytest.fixture
def reader(person: Person, theme: str) -> Person:
    """Sir in a theme and a language, patient with axe-core."""
    person.driver.set_script_timeout(60)
    person.driver.add_cookie({"name": "theme", "value": theme})
    return person


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_pages_that_answer_a_form_violate_nothing(
    site: Site, reader: Person, language: str
) -> None:
    slug = f"answers-{language}"
    first, second, third = site.ask(slug, count=3)
    found: list[str] = []

    reader.open("/new-agent/")
    reader.see("#name").send_keys(f"helper-{language}", Keys.ENTER)
    reader.see("#new-token")
    found += faults_here(reader, "token shown once")

    reader.open(f"/projects/{slug}/policy/?section=limits")
    field = reader.see("#section-limits input.is-number")
    field.clear()
    field.send_keys("7", Keys.ENTER)
    reader.see_true("location.pathname.endsWith('/policy/limits/')")
    reader.see("main h1")
    found += faults_here(reader, "policy review")

    reader.open(f"/inbox/together/?selected={first}&selected={second}")
    reader.see("textarea[name=reason]").send_keys("fine")
    reader.click("input[name=confirmed]")
    site.decide(first, "accept_as_is", "meanwhile")
    reader.click('button[name=verdict][value="accept_as_is"]')
    reader.see("table.rows .state--red")
    found += faults_here(reader, "bulk result")

    reader.open(f"/inbox/{third}/")
    reader.driver.execute_script(SEND_REJECT_WITHOUT_SCRIPT)
    reader.see("main .dialog--page")
    found += faults_here(reader, "second question")
    assert found == []


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_pages_that_answer_an_upload_and_a_look_violate_nothing(
    site: Site, reader: Person, language: str, tmp_path: Path
) -> None:
    slug = f"uploads-{language}"
    site.ask(slug)
    found: list[str] = []

    broken = tmp_path / "broken.yaml"
    broken.write_text("title: Look\nsteps:\n- id: a\n  depends_on: [nobody]\n", encoding="utf-8")
    reader.open(f"/new/?project={slug}")
    reader.driver.find_element(By.ID, "upload-file").send_keys(str(broken))
    reader.click(".upload-form button")
    reader.see(".fault-table")
    found += faults_here(reader, "faults of an upload")

    reader.open("/audit/")
    reader.driver.execute_script(SEND_VERIFY_WITHOUT_SCRIPT)
    reader.see("#seal")
    found += faults_here(reader, "verified")
    assert found == []


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_open_dialogs_and_sheets_violate_nothing(site: Site, reader: Person, language: str) -> None:
    (asked,) = site.ask(f"dialogs-{language}")
    open_card(reader, asked)
    reader.press("?")
    reader.see("#key-help")
    found = faults_here(reader, "keys")
    reader.press(Keys.ESCAPE)
    reader.see_gone("#key-help")
    reader.click(f'[data-dock="{asked}"] [name=reason]')
    reader.press("not worth it", Keys.ESCAPE, "r")
    reader.see("#confirm")
    found += faults_here(reader, "second question as a dialog")
    reader.take(PHONE)
    reader.open_live(f"/inbox/{asked}/")
    reader.click('.phone-bar [data-taps="approve"]')
    reader.see("#verdict-sheet")
    found += faults_here(reader, "sheet")
    reader.take(WIDE)
    assert found == []
