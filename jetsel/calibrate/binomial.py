"""Exact tails of the binomial distribution."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=100_000)
def tail(count: int, n: int, share: float) -> float:
    """Return the probability of at most `count` successes in n trials, each with probability `share`."""
    if count >= n:
        return 1.0
    log = math.lgamma(n + 1) + np.array(
        [
            i * math.log(share) + (n - i) * math.log1p(-share) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
            for i in range(count + 1)
        ]
    )
    return float(min(1.0, np.exp(log).sum()))
