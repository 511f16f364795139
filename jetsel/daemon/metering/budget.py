"""What restricts choosing: the power budget in watts, and the battery's reserve."""

from __future__ import annotations

import math

from jetsel.power.machine import Battery, Known
from jetsel.wire.power import BatteryStatus, BudgetStatus

MEAN_OVER_S = 10.0
"""Time constant of the running mean: long beside one request and the bursts that a supply bears, short beside the
minutes in which a board grows hot or a battery runs down."""

TIGHTEN_S = 10.0
"""Least time between a step and the next tighter one: by then the mean shows 63 % of what the step changed. The first
reading counts as a step, since one reading is no mean."""

EASE_BELOW = 0.9
"""Share of the budget below which a step back may be taken: a step would otherwise undo itself at once."""

EASE_S = 20.0
"""Least time between a step and one back: twice the time constant, so what was before the step has faded to 14 %."""


class Budget:
    """The running mean, and the level that it led to: how many of the most expensive models are left out.

    limit_w: None if there is no budget, and then the level is 0. most: the highest level there is, that at which
    only the cheapest model is left. Time is passed in. One thread calls `look`; any thread may read, or `set`.
    """

    def __init__(self, limit_w: float | None, most: int) -> None:
        """Begin at level 0."""
        self.limit_w = limit_w
        self.mean_w: float | None = None
        self.level = 0
        self._most = most
        self._looked_s = 0.0
        self._stepped_s = 0.0

    def set(self, limit_w: float | None, most: int) -> None:
        """Hold this budget from now on, with this number of levels."""
        self.limit_w, self._most = limit_w, most
        self.level = 0 if limit_w is None else min(self.level, most)

    def look(self, now_s: float, power_w: float | None) -> int:
        """Take in the mean power since the last look, None if it is not known; return the step: -1, 0 or 1.

        If it is not known, the mean and the level stay as they are.
        """
        if power_w is None:
            return 0
        if self.mean_w is None:
            self.mean_w, self._stepped_s = power_w, now_s
        else:
            self.mean_w += (power_w - self.mean_w) * (1 - math.exp((self._looked_s - now_s) / MEAN_OVER_S))
        self._looked_s = now_s
        step = self._step(now_s - self._stepped_s, self.mean_w)
        if step:
            self.level, self._stepped_s = self.level + step, now_s
        return step

    @property
    def status(self) -> BudgetStatus | None:
        """The budget and what it does now, None if there is none."""
        if self.limit_w is None:
            return None
        if self.mean_w is None:
            return BudgetStatus(self.limit_w, self.level, "no model is left out: no power has been measured yet")
        models = "most expensive model" if self.level == 1 else f"{self.level} most expensive models"
        left_out = f"the {models} of each family run only if a request names them"
        does = left_out if self.level else "no model is left out"
        where = "above" if self.mean_w > self.limit_w else "within"
        return BudgetStatus(self.limit_w, self.level, f"{does}: {where} the budget")

    def _step(self, since_s: float, mean_w: float) -> int:
        """Return where to go so long after the last step."""
        if self.limit_w is None:
            return 0
        if mean_w > self.limit_w:
            return int(self.level < self._most and since_s >= TIGHTEN_S)
        return -int(self.level > 0 and mean_w < EASE_BELOW * self.limit_w and since_s >= EASE_S)


NO_STATE = "the battery does not report whether it is discharging"


def low_battery(battery: Known[Battery], reserve_percent: float | None) -> str | None:
    """Return the reason for saving energy; None unless the battery is known to be below its reserve.

    reserve_percent: None if no reserve is configured.
    """
    known = battery.value
    if known is None or reserve_percent is None or not known.is_discharging or known.percent >= reserve_percent:
        return None
    return f"the battery is at {known.percent:.0f} %, below the reserve of {reserve_percent:g} %"


def battery_status(battery: Known[Battery], reserve_percent: float | None) -> BatteryStatus:
    """Return the battery, and what its reserve does now."""
    known, state = battery.value, None
    if reserve_percent is not None:
        state = (
            "requests are answered with the least energy" if low_battery(battery, reserve_percent) else "saves nothing"
        )
    if known is None:
        return BatteryStatus(None, None, battery.reason, reserve_percent, state)
    reason = NO_STATE if known.is_discharging is None else None
    return BatteryStatus(known.percent, known.is_discharging, reason, reserve_percent, state)
