"""The fleet's page in a real browser: it fits, is legible, asks for nothing, and hostile words stay words."""

from pathlib import Path

import pytest

from jetsel.addons.fleet.documents import Entry, PlannedFamily
from jetsel.addons.fleet.manager.planning import ExpectedResult, Proposal
from jetsel.addons.fleet.manager.status import DeviceStatus, render_fleet
from jetsel.addons.fleet.usage import Trial
from tests.browser.conftest import DESK_PX, PHONE_PX, Browser

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
