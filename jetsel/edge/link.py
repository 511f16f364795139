"""How long a photograph takes to the edge and its answer back, by its size: a running estimate."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

KEEPS = 0.95  # of the weight of what was seen before, at each new time: the last twenty decide
FEWEST = 4  # times that make evidence
LEAST_SPREAD = 0.1  # relative, of the sizes seen, for a slope to be told apart from noise


@dataclass
class LinkEstimate:
    """Network time T_nw = latency + bytes / bandwidth, as a weighted line through the times that were seen.

    T_nw is the whole time of a request less what the server worked (MDInference, section IV-D). Any thread may call.
    """

    _moments: list[float] = field(default_factory=lambda: [0.0] * 5)  # of weight, size, time, size squared, size * time
    _squares: float = 0.0  # of what the estimates before were off by
    _largest: tuple[float, float] = (0.0, 0.0)  # the slowest time before there is evidence, and its bytes
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, sent_bytes: int, network_ms: float) -> None:
        """Take in one time."""
        known = self.estimate(sent_bytes)
        with self._lock:
            self._seen += 1
            new = (1.0, float(sent_bytes), network_ms, float(sent_bytes) ** 2, sent_bytes * network_ms)
            self._moments = [KEEPS * old + one for old, one in zip(self._moments, new, strict=True)]
            if network_ms > self._largest[1]:
                self._largest = (float(sent_bytes), network_ms)
            if known is not None and self._seen > FEWEST:
                self._squares = KEEPS * self._squares + (1 - KEEPS) * (network_ms - known[0]) ** 2

    @property
    def usual_bytes(self) -> int:
        """The mean size of late, 0 if nothing was seen."""
        with self._lock:
            return round(self._moments[1] / self._moments[0]) if self._seen else 0

    def estimate(self, sent_bytes: int) -> tuple[float, float] | None:
        """Return mean and standard deviation of T_nw in ms for this number of bytes, None if nothing was measured.

        Before there is evidence it is twice the slowest time seen, more for more bytes: the paper's conservative
        2 x T_input.
        """
        with self._lock:
            if not self._seen:
                return None
            if self._seen < FEWEST:
                size, slowest_ms = self._largest
                return 2 * slowest_ms * max(1.0, sent_bytes / max(size, 1.0)), 0.0
            weight, size, time_ms, square, product = self._moments
            squares = self._squares
        mean, mean_ms = size / weight, time_ms / weight
        spread = max(0.0, square / weight - mean**2)
        slope = 0.0
        if spread > (LEAST_SPREAD * mean) ** 2:
            slope = max(0.0, (product / weight - mean * mean_ms) / spread)
        return max(0.0, mean_ms + slope * (sent_bytes - mean)), float(np.sqrt(squares))
