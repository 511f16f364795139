"""What one request may take now, so that all that wait are answered in time, and the operating points in use."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from typing import NamedTuple

from jetsel.base.events import event

log = logging.getLogger("jetsel.daemon")

SHARE = 0.5
"""Of the target, for which the queue is kept. If requests come faster than they are answered, the queue grows until
what each may take balances the two: it then takes this share of the target. The rest is for the own work and
for bursts: with Poisson arrivals the queue's length varies by its square root."""

USED_S = 10.0  # a point counts as used for as long after its last answer
ALERT_S = 300.0  # of the cheapest point in use without such a pause, after which somebody should know


class Allowed(NamedTuple):
    """What a request's models may take in the mean."""

    ms: float = math.inf
    mj: float = math.inf


ANYTHING = Allowed()


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
