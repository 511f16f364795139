"""The review of saved images in a real browser, by keys alone: each key moves the image to where it belongs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import DESK_PX, PHONE_PX, Browser
from tests.system.daemons import drawn, encoded, serving
from tests.system.gateway.gateways import Gateway, opened
from tests.waiting import until


def press(browser: Browser, *keys: str) -> None:
    ActionChains(browser.driver).send_keys(*keys).perform()


@contextmanager
def reviewing(folder: Path, doubts: Path) -> Iterator[Gateway]:
    with serving(folder) as daemon, opened(daemon.endpoint, command=("review", str(doubts))) as gateway:
        yield gateway


def test_a_part_of_a_name_or_another_case_gets_no_image_and_a_suggestion_that_is_picked_does(
    browser: Browser, tmp_path: Path
) -> None:
    doubts, reviewed = tmp_path / "doubts", tmp_path / "doubts-reviewed"
    (doubts / "not-ok").mkdir(parents=True)
    (doubts / "not-ok" / "a-0.jpg").write_bytes(encoded(drawn(0)))
    (reviewed / "10").mkdir(parents=True)

    def offered() -> list[str]:
        return [one.text for one in browser.driver.find_elements(By.CSS_SELECTOR, "#offered button")]

    with reviewing(tmp_path, doubts) as gateway:
        browser.show(gateway.url, DESK_PX, "light")
        until(lambda: browser.driver.find_element(By.ID, "image").is_displayed())
        for typed in ("1", "not", "Not-OK", "ok"):
            press(browser, "w")
            until(lambda: len(offered()) == 5)  # the daemon's suggestions
            press(browser, typed, Keys.ENTER)
            until(lambda typed=typed: f'"{typed}"' in browser.driver.find_element(By.ID, "unknown").text)
            press(browser, Keys.ESCAPE)
        assert len(list(doubts.rglob("*.jpg"))) == 1, "nothing has moved"
        press(browser, "w")
        until(lambda: len(offered()) == 5)
        browser.driver.find_element(By.CSS_SELECTOR, "#offered button").click()
        until(lambda: len(list(reviewed.rglob("a-0.jpg"))) == 1)
        assert not (reviewed / "10" / "a-0.jpg").exists()


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

    with reviewing(tmp_path, doubts) as gateway:
        browser.show(gateway.url, PHONE_PX, "light")
        left("5 images are left")
        assert browser.driver.find_element(By.ID, "question").text == "Is this tabby cat (n01)?"
        assert browser.width_px() <= PHONE_PX
        assert browser.check("faint") == []
        press(browser, "r")
        moved("n01/tabby-cat-0.jpg")
        left("4 images are left")
        press(browser, "w")
        press(browser, "n05", Keys.ENTER)
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
        until(lambda: "no class" in browser.driver.find_element(By.ID, "unknown").text)
        press(browser, Keys.ENTER)
        moved("n99/tabby-cat-2.jpg")
        left("2 images are left")
        (doubts / "n01" / "tabby-cat-3.jpg").unlink()
        press(browser, Keys.ENTER)
        until(lambda: "decided already" in browser.driver.find_element(By.ID, "problem").text)
        left("1 image is left")
        press(browser, Keys.ENTER)
        left("0 images are left")
        assert browser.driver.find_element(By.ID, "done").is_displayed()
