"""A headless Chromium for the pages that jetsel makes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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

    def show(self, address: str, width_px: int, scheme: str, height_px: int = 850) -> None:
        """Open the page as a screen of this width and colour scheme shows it; what was logged before is dropped."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        screen = {"width": width_px, "height": height_px, "deviceScaleFactor": 1, "mobile": width_px < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(address)

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
