"""Whether several images take an engine less time together than one after the other: measured when it is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from jetsel.base.errors import JetselError
from jetsel.base.weights import Weights
from jetsel.engines.base import Engine

TRIED = 4  # images together
ROUNDS = 3  # the fastest of which counts
LEAST_GAIN = 0.03  # of the time; what gains less is as well answered one by one, each sooner


def gains_by_batches(engine: Engine, weights: Weights, now: Callable[[], float] = time.perf_counter) -> bool:
    """Return whether a batch takes the engine clearly less time than its images alone."""
    size = min(TRIED, engine.max_batch or TRIED)
    if size == 1:
        return False
    together = np.zeros((size, 3, weights.height_px, weights.width_px), np.float32)
    times_s = []
    try:
        for _ in range(ROUNDS):
            begun_s = now()
            engine.infer(together)
            between_s = now()
            for _ in range(size):
                engine.infer(together[:1])
            times_s.append((between_s - begun_s, now() - between_s))
    except JetselError:
        return False  # who runs it next hears why
    batch_s, alone_s = min(batch_s for batch_s, _ in times_s), min(alone_s for _, alone_s in times_s)
    return batch_s <= (1 - LEAST_GAIN) * alone_s
