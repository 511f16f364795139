"""Time and energy that one request may take under load and power budget; counts of the operating points in use."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter

from jetsel.base.events import event
from jetsel.wire.power import BudgetStatus

log = logging.getLogger("jetsel.daemon")

QUEUE_SHARE = 0.5
"""Share of the latency target for the queue. If requests come faster than they are answered, the queue grows until the
allowed time balances it, and then takes this share. The rest is for the request's own work and for bursts: with Poisson
arrivals the queue's length varies by its square root."""

USED_S = 10.0  # a point counts as in use until this long after its last answer
ALERT_S = 300.0  # the cheapest point in use for this long is worth a warning


def allowed_ms(target_ms: float, in_queue: int, workers: int, overhead_ms: float) -> float:
    """Return the mean time that models may take for each of in_queue requests, this one included.

    If each takes that long, the queue takes QUEUE_SHARE of the latency target. overhead_ms: a worker's time for a
    request without its models. The result is negative if that alone is too long.
    """
    return QUEUE_SHARE * target_ms * workers / max(1, in_queue) - overhead_ms


class PointsUsed:
    """Counts a family's answers by operating point (policy with calibrated accuracy and cost). Any thread may call."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._lock = threading.Lock()
        self._answers: Counter[str] = Counter()
        self._cheapest_since_s = math.inf  # time.monotonic() since when the cheapest point is in use
        self._cheapest_seen_s = -math.inf  # time.monotonic() of its last answer
        self._is_alerted = False  # whether the warning was logged
        self.last_point: str | None = None  # of the last answer

    def count_answer(self, point: str, *, is_cheapest: bool, now_s: float | None = None) -> None:
        """Count an answer; warn once if the cheapest point has been in use for ALERT_S."""
        now_s = time.monotonic() if now_s is None else now_s
        with self._lock:
            self._answers[point] += 1
            self.last_point = point
            if is_cheapest:
                if now_s - self._cheapest_seen_s > USED_S:
                    self._cheapest_since_s, self._is_alerted = now_s, False
                self._cheapest_seen_s = now_s
            begins_alert = not self._is_alerted and self._cheapest_s(now_s) >= ALERT_S
            self._is_alerted |= begins_alert
        if begins_alert:
            words = "family %s has been at its cheapest operating point for %.0f s: fewer requests, or a faster device"
            log.warning(words, self._family, ALERT_S, extra=event("cheapest-point", family=self._family, point=point))

    def _cheapest_s(self, now_s: float) -> float:  # the caller holds the lock
        return now_s - self._cheapest_since_s if now_s - self._cheapest_seen_s <= USED_S else 0.0

    def cheapest_s(self, now_s: float | None = None) -> float:
        """Return for how many seconds the cheapest point has been in use, 0 if it is not."""
        with self._lock:
            return self._cheapest_s(time.monotonic() if now_s is None else now_s)

    def answers(self) -> dict[str, int]:
        """Return the number of answers since the start, by operating point."""
        with self._lock:
            return dict(self._answers)


MEAN_OVER_S = 10.0
"""Time constant of the running means: long beside one request and the bursts that a supply bears, short beside the
minutes in which a board grows hot."""


class PowerBudget:
    """Divides the board's power budget among the requests whose operating point the daemon chooses.

    It keeps running means of the board's power, of the rate of these requests, and of their power. The board takes the
    rest of its power without them. The budget minus that rest, divided by their rate, is the energy that each request
    may take: allowed_mj, infinite if nothing limits it. limit_w: the budget, None if there is none. mean_w: None until
    power was measured. One thread calls `update_means`; any thread may call the other methods.
    """

    def __init__(self, limit_w: float | None) -> None:
        self.limit_w = limit_w
        self.mean_w: float | None = None
        self.allowed_mj = math.inf
        self._lock = threading.Lock()
        self._requests = 0  # since the last `update_means`
        self._spent_mj = 0.0  # by these requests
        self._has_unknown_energy = False  # whether the energy of one of them is unknown
        self._rate_hz = 0.0  # running mean
        self._spent_w = 0.0  # running mean
        self._updated_s = 0.0  # time of the last `update_means`

    def set_limit(self, limit_w: float | None) -> None:
        """Change the budget, at a reload."""
        self.limit_w = limit_w
        self._update_allowance()

    def spend(self, energy_mj: float | None) -> None:
        """Count a request by the mean energy of its operating point; None if that is unknown."""
        with self._lock:
            self._requests += 1
            self._spent_mj += energy_mj or 0.0
            self._has_unknown_energy |= energy_mj is None

    def update_means(self, now_s: float, power_w: float | None) -> None:
        """Update the means. power_w: mean power since the last call; None leaves the means unchanged."""
        with self._lock:
            requests, spent_mj, self._requests, self._spent_mj = self._requests, self._spent_mj, 0, 0.0
        passed_s, self._updated_s = now_s - self._updated_s, now_s
        if power_w is None:
            return
        if self.mean_w is None:
            self.mean_w = power_w  # first call: the time over which requests were counted is unknown
            return
        weight = 1 - math.exp(-passed_s / MEAN_OVER_S)
        self.mean_w += (power_w - self.mean_w) * weight
        self._rate_hz += (requests / passed_s - self._rate_hz) * weight
        self._spent_w += (spent_mj / 1e3 / passed_s - self._spent_w) * weight
        self._update_allowance()

    def _update_allowance(self) -> None:
        """Set allowed_mj. It is infinite without a budget, without requests, or if a request's energy is unknown."""
        if self.limit_w is None or self.mean_w is None or self._rate_hz <= 0 or self._has_unknown_energy:
            self.allowed_mj = math.inf
        else:
            without_w = max(0.0, self.mean_w - self._spent_w)
            self.allowed_mj = 1e3 * (self.limit_w - without_w) / self._rate_hz

    @property
    def is_exceeded(self) -> bool:
        """Whether the mean power is above the budget."""
        return self.limit_w is not None and self.mean_w is not None and self.mean_w > self.limit_w

    @property
    def status(self) -> BudgetStatus | None:
        """The budget and its effect now, None if there is no budget."""
        if self.limit_w is None:
            return None
        allowed_mj = None if math.isinf(self.allowed_mj) else max(0.0, self.allowed_mj)
        if self.mean_w is None:
            return BudgetStatus(self.limit_w, None, "limits nothing: no power has been measured yet")
        if self._has_unknown_energy:
            return BudgetStatus(self.limit_w, None, "limits nothing: a family's calibration has no energies")
        where = "above" if self.is_exceeded else "within"
        limits = "limits nothing" if allowed_mj is None else f"leaves {allowed_mj:.1f} mJ for each request"
        return BudgetStatus(self.limit_w, allowed_mj, f"{limits}: the mean power is {where} the budget")
