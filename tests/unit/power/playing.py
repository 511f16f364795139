"""Samples that are given, in place of a sampler's: what is asked of them is arithmetic."""

from __future__ import annotations

import numpy as np

from jetsel.power.samples import Samples


class Playing:
    """A source whose samples are all there from the beginning; remembers how often it is open."""

    total_of = ("VDD_IN",)
    reason: str | None = None

    def __init__(self, times_s: list[float], power_w: list[float], period_s: float = 0.001) -> None:
        self.all = samples(times_s, power_w, period_s=period_s)
        self.opened = 0
        self.reads = 0

    def open(self) -> None:
        self.opened += 1

    def shut(self) -> None:
        self.opened -= 1

    def wait(self, until_ns: int, limit_s: float) -> bool:
        return bool(self.all.times_ns[-1] >= until_ns)

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        self.reads += 1
        low = max(int(np.searchsorted(self.all.times_ns, begin_ns)) - 1, 0)
        high = int(np.searchsorted(self.all.times_ns, end_ns, side="right")) + 1
        return Samples(
            self.all.times_ns[low:high], self.all.power_w[low:high], self.all.resolution_w, self.all.period_s
        )

    def latest(self) -> tuple[int, float] | None:
        return (int(self.all.times_ns[-1]), float(self.all.power_w[-1])) if len(self.all.times_ns) else None


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def samples(
    times_s: list[float], power_w: list[float], period_s: float = 0.001, resolution_w: float | None = None
) -> Samples:
    times_ns = np.array([round(at * 1e9) for at in times_s], dtype=np.int64)
    return Samples(times_ns, np.array(power_w, dtype=np.float64), resolution_w, period_s)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)
