"""The review of saved images in a real browser, by keys alone: each key moves the image to where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import PHONE_PX, Browser
from tests.system.daemons import drawn, encoded, serving
from tests.system.gateway.gateways import launch as open_gateway
from tests.waiting import until


def press(browser: Browser, *keys: str) -> None:
    ActionChains(browser.driver).send_keys(*keys).perform()


@pytest.mark.browser
def test_images_are_reviewed_by_keys_on_a_narrow_screen(browser: Browser, tmp_path: Path) -> None:
    doubts, reviewed = tmp_path / "doubts", tmp_path / "doubts-reviewed"
    for number in range(5):
        (doubts / "n01").mkdir(parents=True, exist_ok=True)
        (doubts / "n01" / f"tabby-cat-{number}.jpg").write_bytes(encoded(drawn(number)))
    (reviewed / "n05").mkdir(parents=True)

    def moved(place: str) -> None:
        until((reviewed / place).exists)

    def left(words: str) -> None:
        until(lambda: browser.driver.find_element(By.ID, "left").text == words)

    with serving(tmp_path) as daemon:
        gateway = open_gateway(daemon.endpoint, "--review", str(doubts))
        try:
            browser.show(gateway.url, PHONE_PX, "light")
            browser.driver.find_element(By.LINK_TEXT, "Review saved images").click()
            left("5 images are left")
            assert browser.driver.find_element(By.ID, "question").text == "Is this tabby cat (n01)?"
            assert browser.width_px() <= PHONE_PX
            assert browser.check("faint") == []
            press(browser, "r")
            moved("n01/tabby-cat-0.jpg")
            left("4 images are left")
            press(browser, "w")
            press(browser, "N05", Keys.ENTER)
            moved("n05/tabby-cat-1.jpg")
            left("3 images are left")
            press(browser, "d")
            moved(".discarded/n01/tabby-cat-2.jpg")
            left("2 images are left")
            press(browser, "u")
            until((doubts / "n01" / "tabby-cat-2.jpg").exists)
            left("3 images are left")
            press(browser, "w")
            press(browser, "n99", Keys.ENTER)
            moved("n99/tabby-cat-2.jpg")
            left("2 images are left")
            (doubts / "n01" / "tabby-cat-3.jpg").unlink()
            press(browser, Keys.ENTER)
            until(lambda: "decided already" in browser.driver.find_element(By.ID, "problem").text)
            left("1 image is left")
            press(browser, Keys.ENTER)
            left("0 images are left")
            assert browser.driver.find_element(By.ID, "done").is_displayed()
        finally:
            gateway.process.terminate()
            gateway.process.wait(30)
            assert gateway.process.stdout is not None
            gateway.process.stdout.close()
