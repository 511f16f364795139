"""The battery's reserve: energy is saved only where the battery is known to be below it, and to be emptied."""

from __future__ import annotations

import pytest

from jetsel.daemon.metering import reserve
from jetsel.power.machine import Battery, Known


@pytest.mark.parametrize(
    ("battery", "reserve_percent", "saves"),
    [
        (Battery(19.0, True), 20.0, True),
        (Battery(20.0, True), 20.0, False),
        (Battery(5.0, False), 20.0, False),
        (Battery(5.0, None), 20.0, False),
        (Battery(5.0, True), None, False),
        (None, 20.0, False),
    ],
    ids=["below", "at", "charging", "not-told", "no-reserve", "no-battery"],
)
def test_below_its_reserve_a_battery_that_is_emptied_is_spared(
    battery: Battery | None, reserve_percent: float | None, saves: bool
) -> None:
    known = Known(battery, None if battery else "no battery")
    told, status = reserve.low(known, reserve_percent), reserve.status(known, reserve_percent)
    assert (told is not None) == saves
    assert ("least energy" in (status.state or "")) == saves
    assert (status.state is None) == (reserve_percent is None)
    assert (status.reason is None) == (battery is not None and battery.is_discharging is not None)
    assert status.percent == (None if battery is None else battery.percent)
