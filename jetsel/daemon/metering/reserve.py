"""The battery's reserve: below it, while the battery is being emptied, requests are answered by what takes least."""

from __future__ import annotations

from jetsel.power.machine import Battery, Known
from jetsel.wire.power import BatteryStatus

NO_STATE = "the battery does not tell whether it is being emptied"


def low(battery: Known[Battery], reserve_percent: float | None) -> str | None:
    """Return what is told while the battery is being emptied below its reserve; None while it is not, or not known to.

    reserve_percent: None where no reserve is configured.
    """
    known = battery.value
    if known is None or reserve_percent is None or not known.is_discharging or known.percent >= reserve_percent:
        return None
    return f"the battery is at {known.percent:.0f} %, below the reserve of {reserve_percent:g} %"


def status(battery: Known[Battery], reserve_percent: float | None) -> BatteryStatus:
    """Return the battery, and what its reserve does now."""
    known, state = battery.value, None
    if reserve_percent is not None:
        state = "requests are answered by what takes least energy" if low(battery, reserve_percent) else "saves nothing"
    if known is None:
        return BatteryStatus(None, None, battery.reason, reserve_percent, state)
    reason = NO_STATE if known.is_discharging is None else None
    return BatteryStatus(known.percent, known.is_discharging, reason, reserve_percent, state)
