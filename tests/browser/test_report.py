"""Reports of calibrations and of fleets in a real browser: on a phone and a desk, offline, for a screen reader."""

from pathlib import Path

import pytest

from jetsel.addons.fleet.documents import Entry, PlannedFamily
from jetsel.addons.fleet.manager.planning import ExpectedResult, Proposal
from jetsel.addons.fleet.manager.status import DeviceStatus, render_fleet
from jetsel.addons.fleet.usage import Trial
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


HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e" + "a" * 300
ENTRY = Entry(family="pets", version=2, sha256="2" * 64)


def page_of(devices: int) -> tuple[list[DeviceStatus], list[Proposal], dict[str, str]]:
    """Devices of which some drift and some fail, and one in seven tells hostile words."""
    statuses, proposals = [], []
    for number in range(devices):
        name = f"device-{number:02d}"
        failed = Trial(serial=2, outcome="rolled-back", reason=HOSTILE)
        trial = failed if number % 7 == 0 else Trial(serial=2, outcome="installed")
        faults = (f"plan 2 rolled-back: {HOSTILE}",) if number % 7 == 0 else ()
        statuses.append(
            DeviceStatus(
                device=name, trial=trial, drift=number / 100, watts=4 + number / 10, seen_s=60.0, faults=faults
            )
        )
        models = ("small", "large")[: 1 + number % 2]
        planned = PlannedFamily(bundle=ENTRY, models=models, cascade=models)
        before = ExpectedResult(0.6 + number / 1000, 2.0 + number / 10, None, {"pets": ("small",)})
        after = ExpectedResult(0.7 + number / 500, 4.0 + number / 5, 10.0 + number, {"pets": models})
        proposals.append(
            Proposal(
                device=name,
                serial=2,
                families=(planned,),
                changes=number % 3 > 0,
                before=before,
                after=after,
                binds={"storage": 0.9},
            )
        )
    return statuses, proposals, {"usage/x/s-1.jsonl.gz": HOSTILE}


@pytest.mark.parametrize(("devices", "width_px", "scheme"), [(60, DESK_PX, "light"), (3, PHONE_PX, "dark")])
def test_the_page_fits_is_legible_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, devices: int, width_px: int, scheme: str
) -> None:
    page = render_fleet(*page_of(devices))
    assert page is not None
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    browser.show(file.as_uri(), width_px, scheme)
    browser.check("open")
    assert browser.width_px() <= width_px
    assert browser.check("crowded") == []
    assert browser.check("faint") == []
    assert browser.check("headless") == []
    assert browser.requests() == [file.as_uri()]
    assert browser.driver.get_log("browser") == []
    assert ("50 of 60" in page) == (devices == 60)
