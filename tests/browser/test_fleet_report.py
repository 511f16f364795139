"""The fleet's page in a real browser: it fits, is legible, asks for nothing, and hostile words stay words."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.fleet.manager.status import render_fleet
from tests.browser.conftest import DESK_PX, PHONE_PX, Browser
from tests.unit.addons.fleet.manager.sample import page_of


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
