"""Exact tails of the binomial distribution."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=100_000)
def binomial_tail(successes: int, trials: int, share: float) -> float:
    """Return the probability of at most `successes` in n = `trials`, each successful with probability `share`."""
    if successes >= trials:
        return 1.0
    log_terms = math.lgamma(trials + 1) + np.array(
        [
            i * math.log(share) + (trials - i) * math.log1p(-share) - math.lgamma(i + 1) - math.lgamma(trials - i + 1)
            for i in range(successes + 1)
        ]
    )
    return float(min(1.0, np.exp(log_terms).sum()))
