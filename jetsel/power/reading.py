"""An energy reading: millijoules, or None with the reason why they are not known."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """What a window took above idle power.

    energy_mj: millijoules; reason: why they are None, else None. samples: new values that the sensor had in the window.
    """

    energy_mj: float | None
    reason: str | None
    samples: int = 0


NO_METER = Reading(None, "no meter")
"""What is read where no sensor is configured or found."""
