"""The power budget: when the running mean of the total power moves policies to cheaper models, and when back."""

from __future__ import annotations

import math

MEAN_OVER_S = 10.0
"""Time constant of the running mean: long beside one request and the bursts that a supply bears, short beside the
minutes in which a board grows hot or a battery runs down."""

TIGHTEN_S = 10.0
"""Least time between a step and the next tighter one: by then the mean shows 63 % of what the step changed. The first
reading counts as a step, since one reading is no mean."""

EASE_BELOW = 0.9
"""Share of the budget below which a step back may be taken: a step would otherwise undo itself at once."""

EASE_S = 20.0
"""How long the mean must have stayed below that: twice its time constant, so what was above has faded to 14 %."""


class Budget:
    """The running mean, and the level that it led to: how many of the most expensive models are left out.

    Time is passed in. One thread calls `look`; any thread may read, or set `limit_w` (None: no budget, level 0).
    """

    def __init__(self, limit_w: float | None, most: int) -> None:
        """Begin at level 0. most: the highest level there is, that at which only the cheapest model is left."""
        self.limit_w = limit_w
        self.most = most
        self.mean_w: float | None = None
        self.level = 0
        self._looked_s: float | None = None
        self._stepped_s = 0.0
        self._low_since_s: float | None = None

    def look(self, now_s: float, power_w: float | None) -> int:
        """Take in the mean power since the last look, None where it is not known; return the step: -1, 0 or 1.

        Where it is not known, the mean and the level stay as they are.
        """
        before = self.level
        if power_w is not None:
            self._take_in(now_s, power_w)
        self.level = self._wanted(now_s, is_new=power_w is not None)
        if self.level != before:
            self._stepped_s, self._low_since_s = now_s, None
        return self.level - before

    @property
    def state(self) -> str:
        """What the budget does now, in words."""
        if self.limit_w is None:
            return "there is no budget"
        if self.mean_w is None:
            return "nothing is left out: no power has been measured yet"
        where = "above" if self.mean_w > self.limit_w else "within"
        if not self.level:
            kept = ", and nothing cheaper is there" if not self.most and where == "above" else ""
            return f"nothing is left out: {where} the budget{kept}"
        models = "most expensive model" if self.level == 1 else f"{self.level} most expensive models"
        kept = "; nothing cheaper is left" if self.level == self.most and where == "above" else ""
        return f"the {models} of each family run only where a request names them: {where} the budget{kept}"

    def _take_in(self, now_s: float, power_w: float) -> None:
        if self.mean_w is None or self._looked_s is None:
            self.mean_w = power_w
            self._stepped_s = now_s
        else:
            self.mean_w += (power_w - self.mean_w) * (1 - math.exp((self._looked_s - now_s) / MEAN_OVER_S))
        self._looked_s = now_s

    def _wanted(self, now_s: float, *, is_new: bool) -> int:
        if self.limit_w is None:
            return 0
        level = min(self.level, self.most)
        if self.mean_w is None or not is_new:
            return level
        if self.mean_w > self.limit_w:
            self._low_since_s = None
            return min(level + 1, self.most) if now_s - self._stepped_s >= TIGHTEN_S else level
        if self.mean_w >= EASE_BELOW * self.limit_w:
            self._low_since_s = None
        elif self._low_since_s is None:
            self._low_since_s = now_s
        elif now_s - self._low_since_s >= EASE_S:
            return max(level - 1, 0)
        return level
