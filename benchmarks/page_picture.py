"""Make the picture of the page in the README. `python -m benchmarks.page_picture docs/page.png --models DIR`."""

import argparse
import itertools
import shutil
import tempfile
import time
from pathlib import Path

from selenium.webdriver.common.by import By

from benchmarks.photographs import photographs
from benchmarks.servers import fitted_daemon, gateway
from jetsel.client import Client
from tests.browser.conftest import Browser
from tests.waiting import until

WIDTH_PX, HEIGHT_PX = 1280, 1190
ASKED_S = 20.0


def main() -> None:
    """Serve the family, ask for scikit-image's photographs, drop one on the page, and keep what it shows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_picture", description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--models", type=Path, required=True, help="a folder with one family")
    args = parser.parse_args()
    shown = photographs(None).files
    with (
        tempfile.TemporaryDirectory(prefix="jetsel-") as place,
        fitted_daemon(Path(place), args.models) as served,
        gateway(Path(place), served, "--thumbnails", "20") as opened,
        Client(served.address) as client,
    ):
        browser = Browser(str(shutil.which("chromium")), str(shutil.which("chromedriver")))
        browser.show(opened.address, WIDTH_PX, "light", HEIGHT_PX)
        find = browser.driver.find_element
        until(lambda: find(By.ID, "state").text.startswith("ready"))
        end_s = time.monotonic() + ASKED_S
        for photograph in itertools.cycle(shown):
            client.classify(photograph)
            if time.monotonic() > end_s:
                break
        dropped = Path(place) / "cat.jpg"
        dropped.write_bytes(shown[1])
        find(By.ID, "file").send_keys(str(dropped))
        until(lambda: "Why" in find(By.ID, "answer").text)
        until(lambda: browser.driver.find_elements(By.CSS_SELECTOR, "#recent img"))
        browser.driver.save_screenshot(str(args.picture))
        browser.driver.quit()


if __name__ == "__main__":
    main()
