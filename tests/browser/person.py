"""A person at a browser: looks, clicks, presses keys, and notices what a page complains of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.site import PASSWORD

PATIENCE_SECONDS = 20.0
WIDE = (1440, 900)
PHONE = (390, 844)
Found = TypeVar("Found")


class Person:
    """Sir, or somebody else, at one browser."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url.rstrip("/")
        self.size = WIDE

    # --- Going somewhere --------------------------------------------------------------------------

    def sign_in(self, name: str = "sir", password: str = PASSWORD, *, language: str = "en") -> None:
        """Sign in over the form, in a language."""
        self.take(self.size)
        self.open("/accounts/login/")
        self.driver.add_cookie({"name": "django_language", "value": language})
        self.open("/accounts/login/")
        assert self.see("html").get_attribute("lang") == language
        self.see("#id_username").send_keys(name)
        self.see("#id_password").send_keys(password)
        self.see("form.door-box button[type=submit]").click()
        self.see("nav.side")

    def open(self, path: str) -> None:
        """Open an address."""
        self.driver.get(self.url + path)

    def open_live(self, path: str) -> None:
        """Open an address, and wait until its page is live."""
        self.open(path)
        self.see_live()

    def open_tab(self) -> str:
        """Open another tab and go there. Return the one that was left."""
        left = str(self.driver.current_window_handle)
        self.driver.switch_to.new_window("tab")
        self.take(self.size)
        return left

    def go_to_tab(self, name: str) -> None:
        """Go to a tab."""
        self.driver.switch_to.window(name)

    def take(self, size: tuple[int, int]) -> None:
        """Take a screen of this size; a narrow one is a phone."""
        self.size = width, height = size
        is_phone = width < WIDE[0]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    # --- Looking ----------------------------------------------------------------------------------

    def see(self, css: str, text: str = "", *, seconds: float = PATIENCE_SECONDS) -> WebElement:
        """Wait until something is on the screen and holds the text. Return it."""

        def look() -> WebElement | Literal[False]:
            for one in self.driver.find_elements(By.CSS_SELECTOR, css):
                if one.is_displayed() and text in one.text:
                    return one
            return False

        return self._wait(look, f"{css!r} with {text!r}", seconds)

    def see_gone(self, css: str, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until nothing on the screen matches."""

        def is_gone() -> bool:
            found = self.driver.find_elements(By.CSS_SELECTOR, css)
            return not any(one.is_displayed() for one in found)

        self._wait(is_gone, f"no {css!r}", seconds)

    def see_live(self) -> None:
        """Wait until the page says that it is live."""
        self.see('[data-live-indicator][data-connection="live"]')

    def see_true(self, script: str, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until an expression of the page is true."""
        self._wait(lambda: bool(self.ask(script)), script, seconds)

    def has(self, css: str) -> bool:
        """Whether something matches now."""
        return bool(self.driver.find_elements(By.CSS_SELECTOR, css))

    def ask(self, script: str) -> Any:
        """Ask the page for the value of an expression."""
        return self.driver.execute_script(f"return ({script})")

    def mark_page(self) -> None:
        """Remember this document: it is another one after a reload."""
        self.driver.execute_script("window.isSame = true")

    @property
    def is_on_marked_page(self) -> bool:
        """Whether the document is still the one that was marked."""
        return self.ask("window.isSame") is True

    def complaints(self) -> list[str]:
        """What the browser complained of since the last call: faults of scripts, refused styles."""
        entries: list[dict[str, str]] = self.driver.get_log("browser")
        return [one["message"] for one in entries if one["level"] == "SEVERE"]

    # --- Acting -----------------------------------------------------------------------------------

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, css: str, text: str = "") -> None:
        """Click what is seen."""
        self.see(css, text).click()

    def _wait(self, look: Callable[[], Found | Literal[False]], what: str, seconds: float) -> Found:
        waiting = WebDriverWait(
            self.driver, seconds, 0.1, ignored_exceptions=(StaleElementReferenceException,)
        )
        try:
            return waiting.until(lambda _driver: look())
        except TimeoutException as error:
            shown = self.driver.find_element(By.TAG_NAME, "body").text
            raise AssertionError(
                f"{what} not at {self.driver.current_url}, but:\n{shown}"
            ) from error
