"""Makes the board's power change, so that a sampler can find out how often the sensor has a new value."""

from __future__ import annotations

import random
import time

from jetsel.config import Power
from jetsel.power.sampling.sampler import Sampler

READY_S = 60.0
LONGEST_S = 12.0  # the sampler searches 2, 5 and 11 s after its start
SHORTEST_BURST_S, LONGEST_BURST_S = 0.01, 0.15  # as long as requests last; at random, so that no clock is in them


def stirred(power: Power) -> float | None:
    """Return the sensor's update period in ms (see Sampler.period_ms), None where none shows within 12 s.

    A core works and rests at random meanwhile. A sensor with many conversions in a value shows parts of that, which
    differ; so its clock can be told from the load's.
    """
    sampler = Sampler(power)
    try:
        if not sampler.ready(READY_S) or sampler.reason is not None:
            return None
        sampler.open()
        end_s = time.monotonic() + LONGEST_S
        while sampler.period_ms is None and time.monotonic() < end_s:
            _work(random.uniform(SHORTEST_BURST_S, LONGEST_BURST_S))
            time.sleep(random.uniform(SHORTEST_BURST_S, LONGEST_BURST_S))
        return sampler.period_ms
    finally:
        sampler.stop()


def _work(seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        pass
