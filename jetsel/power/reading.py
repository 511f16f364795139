"""An energy reading: millijoules with what is known of their error, or None with the reason why they are not known."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """What a window took above idle power.

    energy_mj: millijoules; reason: why they are None, else None. samples: readings of the sensor inside the window.
    uncertainty_mj: half of the 95 % interval around energy_mj, None where energy_mj is.
    """

    energy_mj: float | None
    reason: str | None
    samples: int = 0
    uncertainty_mj: float | None = None


NO_METER = Reading(None, "no meter")
"""What every request reads where no sensor is configured or found."""
