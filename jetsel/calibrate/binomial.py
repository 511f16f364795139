"""Exact tails of the binomial distribution, and the confidence limit of a share that follows from them."""

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


def most_likely_share(count: int, n: int, sure: float = 0.95) -> float:
    """Return the one-sided upper confidence limit of a share, given `count` successes in n trials.

    At this share, `count` or fewer successes have probability 1 - sure (Clopper and Pearson, Biometrika 26, 1934).
    """
    low, high = count / n, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(count, n, middle) > 1 - sure else (low, middle)
    return high
