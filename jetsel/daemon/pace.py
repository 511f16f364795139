"""What one request may take now, for the sake of those that wait and of the power budget; the points in use."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from typing import NamedTuple

from jetsel.base.events import event
from jetsel.wire.power import BudgetStatus

log = logging.getLogger("jetsel.daemon")

SHARE = 0.5
"""Of the target, for which the queue is kept. If requests come faster than they are answered, the queue grows until
what each may take balances the two: it then takes this share of the target. The rest is for the own work and
for bursts: with Poisson arrivals the queue's length varies by its square root."""

USED_S = 10.0  # a point counts as used for as long after its last answer
ALERT_S = 300.0  # of the cheapest point in use without such a pause, after which somebody should know


class Allowance(NamedTuple):
    """What a request's models may take in the mean."""

    ms: float = math.inf
    mj: float = math.inf


ANYTHING = Allowance()


def allowed_ms(target_ms: float, in_queue: int, workers: int, around_ms: float) -> float:
    """Return what the models may take in the mean for each of the requests in the queue, this one included.

    around_ms: what a worker spends on a request besides. Less than 0 if that alone is too long.
    """
    return SHARE * target_ms * workers / max(1, in_queue) - around_ms


class PointsUsed:
    """The operating points that answered for one family. Any thread may call."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._lock = threading.Lock()
        self._answers: Counter[str] = Counter()
        self._cheapest_since_s = math.inf  # of time.monotonic(): from when on the cheapest point was in use
        self._cheapest_seen_s = -math.inf
        self._is_alerted = False
        self.last: str | None = None

    def answered(self, point: str, *, is_cheapest: bool, now_s: float | None = None) -> None:
        """Count an answer; warn once if the cheapest point has been in use for ALERT_S."""
        now_s = time.monotonic() if now_s is None else now_s
        with self._lock:
            self._answers[point] += 1
            self.last = point
            if is_cheapest:
                if now_s - self._cheapest_seen_s > USED_S:
                    self._cheapest_since_s, self._is_alerted = now_s, False
                self._cheapest_seen_s = now_s
            begins_alert = not self._is_alerted and self._cheapest_s(now_s) >= ALERT_S
            self._is_alerted |= begins_alert
        if begins_alert:
            words = "family %s has been at its cheapest operating point for %.0f s: fewer requests, or a faster device"
            log.warning(words, self._family, ALERT_S, extra=event("cheapest-point", family=self._family, point=point))

    def _cheapest_s(self, now_s: float) -> float:
        return now_s - self._cheapest_since_s if now_s - self._cheapest_seen_s <= USED_S else 0.0

    def cheapest_s(self, now_s: float | None = None) -> float:
        """Return for how many seconds the cheapest point has been in use, 0 if it is not."""
        with self._lock:
            return self._cheapest_s(time.monotonic() if now_s is None else now_s)

    def answers(self) -> dict[str, int]:
        """Return the answers of each point since the start."""
        with self._lock:
            return dict(self._answers)


MEAN_OVER_S = 10.0
"""Time constant of the running means: long beside one request and the bursts that a supply bears, short beside the
minutes in which a board grows hot."""


class Budget:
    """Running means of the power, of the requests that choose an operating point, and of what those take.

    The rest of the power is what the board takes without them. What the budget leaves above it, shared among the
    requests, is what each may take. limit_w: None if there is no budget. Time is passed in. One thread calls `look`;
    any thread the rest.
    """

    def __init__(self, limit_w: float | None) -> None:
        """Begin without a limit on requests: nothing was measured."""
        self.limit_w = limit_w
        self.mean_w: float | None = None
        self.allowed_mj = math.inf
        self._lock = threading.Lock()
        self._requests = 0  # since the last look
        self._spent_mj = 0.0
        self._unknown = False  # the energy of one of them is not known
        self._rate_hz = 0.0
        self._spent_w = 0.0
        self._looked_s = 0.0

    def set(self, limit_w: float | None) -> None:
        """Hold this budget from now on."""
        self.limit_w = limit_w
        self._share_out()

    def spend(self, energy_mj: float | None) -> None:
        """Count a request at an operating point of this mean energy, None if that is not known."""
        with self._lock:
            self._requests += 1
            self._spent_mj += energy_mj or 0.0
            self._unknown |= energy_mj is None

    def look(self, now_s: float, power_w: float | None) -> None:
        """Take in the mean power since the last look; if it is None, the means stay as they are."""
        with self._lock:
            requests, spent_mj, self._requests, self._spent_mj = self._requests, self._spent_mj, 0, 0.0
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        if power_w is None:
            return
        if self.mean_w is None:
            self.mean_w = power_w  # the first look: nothing is known of how long requests were counted
            return
        share = 1 - math.exp(-passed_s / MEAN_OVER_S)
        self.mean_w += (power_w - self.mean_w) * share
        self._rate_hz += (requests / passed_s - self._rate_hz) * share
        self._spent_w += (spent_mj / 1e3 / passed_s - self._spent_w) * share
        self._share_out()

    def _share_out(self) -> None:
        if self.limit_w is None or self.mean_w is None or self._rate_hz <= 0 or self._unknown:
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
        """The budget and what it does now, None if there is none."""
        if self.limit_w is None:
            return None
        allowed_mj = None if math.isinf(self.allowed_mj) else max(0.0, self.allowed_mj)
        if self.mean_w is None:
            return BudgetStatus(self.limit_w, None, "limits nothing: no power has been measured yet")
        if self._unknown:
            return BudgetStatus(self.limit_w, None, "limits nothing: a family's calibration has no energies")
        where = "above" if self.is_exceeded else "within"
        limits = "limits nothing" if allowed_mj is None else f"leaves {allowed_mj:.1f} mJ for each request"
        return BudgetStatus(self.limit_w, allowed_mj, f"{limits}: the mean power is {where} the budget")
