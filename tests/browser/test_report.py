"""The calibration report in a real browser: on a phone and a desk, light and dark, offline, and for a screen reader."""

from pathlib import Path

import pytest

from jetsel.calibrate.report import render
from tests.browser.conftest import DESK_PX, PHONE_PX, Browser
from tests.unit.calibrate.report import sample


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages by name, written as the command writes them."""
    folder = tmp_path_factory.mktemp("reports")
    written = {}
    for name, findings in sample.PAGES.items():
        page = render(findings, sample.LIMITS)
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
    browser.show(files[name].as_uri(), width_px, scheme)
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


@pytest.mark.parametrize(("name", "height_px"), [("full", 850), ("twelve", 1050)])
def test_verdict_cards_table_and_chart_fit_one_screen(
    browser: Browser, files: dict[str, Path], name: str, height_px: int
) -> None:
    browser.show(files[name].as_uri(), DESK_PX, "light", height_px)
    ends = (
        "return [...document.querySelectorAll('.gist .scroll, .gist svg')].map(e => e.getBoundingClientRect().bottom)"
    )
    assert max(browser.driver.execute_script(ends)) <= height_px
    wider = "return [...document.querySelectorAll('.gist .scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert browser.driver.execute_script(wider) == 0, "the whole table is seen"


def test_tables_and_closed_parts_are_reached_by_keyboard(browser: Browser, files: dict[str, Path]) -> None:
    browser.show(files["full"].as_uri(), PHONE_PX, "light")
    table = browser.driver.find_element("css selector", ".gist .scroll")
    browser.driver.find_element("css selector", "body").send_keys("\ue004")  # tab
    assert browser.driver.switch_to.active_element == table
    part = browser.driver.find_element("css selector", "#differing > summary")
    browser.driver.execute_script("arguments[0].focus()", part)
    part.send_keys("\ue007")  # enter
    assert browser.driver.find_element("css selector", "#differing .images").is_displayed()


def test_closed_parts_are_printed(browser: Browser, files: dict[str, Path]) -> None:
    browser.show(files["full"].as_uri(), DESK_PX, "light")
    visible = "return document.querySelector('#differing .images').checkVisibility()"
    assert not browser.driver.execute_script(visible)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.driver.execute_script(visible)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
