"""An energy reading: millijoules, or None with the reason why they are not known."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """energy_mj: what was measured, in millijoules; reason: why it is None, else None."""

    energy_mj: float | None
    reason: str | None


NO_METER = Reading(None, "no meter")
"""What every request reads until a sensor is configured."""
