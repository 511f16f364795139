"""What a sampler saw of the total power: instants on the monotonic clock and watts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Samples:
    """n readings in the order of time, each a new value of the sensor: what it merely repeated is left out.

    times_ns: (n,) int64, time.monotonic_ns() at the middle of what the value stands for, so a sensor that averages is
    dated back by half of what it averages over. power_w: (n,) float64, NaN where the sensor could not be read then.
    resolution_w: the step between two values that the sensor can tell apart, None where it is not known. period_s: how
    often the sensor has a new value, as it was found out; the samples' own spacing where it is faster than they are.
    bound_s: None, except while that could not be found out: then every reading is a sample, and a value may stand for
    up to so long before the next.
    """

    times_ns: NDArray[np.int64]
    power_w: NDArray[np.float64]
    resolution_w: float | None
    period_s: float
    bound_s: float | None = None

    @property
    def age_s(self) -> float:
        """Return how old a value may be before the next one."""
        return max(self.period_s, self.bound_s or 0.0)
