"""The calibration report in a real browser: on a phone and a desk, light and dark, offline, and for a screen reader."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jetsel.calibrate.report import render
from tests.unit.calibrate.report import sample

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: run make test-system")

CHECKS = (Path(__file__).parent / "checks.js").read_text("utf-8")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage")  # the page is our own; containers have no sandbox
PHONE_PX, DESK_PX = 390, 1280


class Browser:
    """A headless Chromium that shows one page after the other."""

    def __init__(self, chromium: str, driver: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))

    def show(self, path: Path, width_px: int, scheme: str) -> None:
        """Open the file as a screen of this width and colour scheme shows it; what was logged before is dropped."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        screen = {"width": width_px, "height": 850, "deviceScaleFactor": 1, "mobile": width_px < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(path.as_uri())

    def check(self, name: str) -> Any:
        return self.driver.execute_script(CHECKS, name)

    def width_px(self) -> int:
        """How wide the whole page is."""
        return self.driver.execute_script("return document.documentElement.scrollWidth")

    def requests(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    started = Browser(chromium, driver)
    yield started
    started.driver.quit()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages by name, written as the command writes them."""
    folder = tmp_path_factory.mktemp("reports")
    written = {}
    for name, findings in sample.PAGES.items():
        page = render(findings)
        assert page is not None
        written[name] = folder / f"{name}.html"
        written[name].write_text(page, encoding="utf-8")
    return written


@pytest.mark.parametrize(
    ("name", "width_px", "scheme"),
    [
        ("full", PHONE_PX, "light"),
        ("full", DESK_PX, "dark"),
        ("agreement", DESK_PX, "light"),
        ("hostile", PHONE_PX, "dark"),
    ],
)
def test_a_page_fits_is_legible_has_names_and_asks_for_nothing(
    browser: Browser, files: dict[str, Path], name: str, width_px: int, scheme: str
) -> None:
    browser.show(files[name], width_px, scheme)
    assert browser.width_px() <= width_px
    assert browser.check("crowded") == []
    browser.check("open")
    assert browser.width_px() <= width_px, "with the numbers unfolded"
    assert browser.check("faint") == []
    assert browser.check("headless") == []
    regions = browser.driver.find_elements("css selector", ".scroll")
    assert all(region.accessible_name for region in regions)
    assert browser.requests() == [files[name].as_uri()]
    assert browser.driver.get_log("browser") == []


def test_the_colours_follow_the_scheme(browser: Browser, files: dict[str, Path]) -> None:
    def ground() -> str:
        return browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    browser.show(files["full"], DESK_PX, "light")
    light = ground()
    browser.show(files["full"], DESK_PX, "dark")
    assert light == "rgb(255, 255, 255)" != ground()


def test_the_skip_link_and_the_tables_are_reached_by_keyboard(browser: Browser, files: dict[str, Path]) -> None:
    browser.show(files["full"], PHONE_PX, "light")
    body = browser.driver.find_element("css selector", "body")
    body.send_keys("\ue004")  # tab
    assert browser.driver.switch_to.active_element.text == "Skip to the verdict"
    assert browser.driver.switch_to.active_element.is_displayed()
    table = browser.driver.find_element("css selector", "section > .scroll")
    browser.driver.execute_script("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
