"""When a mean is known well enough: repeat until its confidence interval is narrow (Taylor et al., section 4.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_NORMAL_975 = 1.959963984540054
_FEW = {1: 12.706204736, 2: 4.302652730, 3: 3.182446305, 4: 2.776445105}


@dataclass(frozen=True)
class Plan:
    """How times are taken.

    photographs: how many random ones, all where there are fewer; seed: which. half_width: of the 95 % confidence
    interval, of the mean: 5 % as in section 4.2, which did so for every input. most_repeats: where a machine is too
    restless for that; least_repeats: below it the interval itself is not known.
    """

    photographs: int = 200
    seed: int = 2018
    half_width: float = 0.05
    least_repeats: int = 5
    most_repeats: int = 50


class Repeats:
    """Durations of one thing in ms, or its energies in mJ: mean and variance (Welford; Knuth, volume 2, 4.2.2)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, value: float) -> None:
        """Take in one more."""
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self._squares += step * (value - self.mean)

    @property
    def half_width(self) -> float:
        """Half the 95 % confidence interval of the mean (Student 1908); infinite below two repeats."""
        if self.count < 2:
            return math.inf
        return t_quantile(self.count - 1) * math.sqrt(self._squares / (self.count - 1) / self.count)

    def is_settled(self, least: int, half_width: float) -> bool:
        """Whether there are enough, and half of the interval is less than this share of the mean."""
        return self.count >= least and self.half_width < half_width * self.mean


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with `freedom` >= 1 degrees of freedom.

    From 5 on by the series of Abramowitz and Stegun 26.7.5, within 0.0003; tabled below, where it is coarse.
    """
    if freedom in _FEW:
        return _FEW[freedom]
    z = _NORMAL_975
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


def repeat_by_turns(
    runs: Mapping[str, Callable[[], object]], plan: Plan, now: Callable[[], float] = time.perf_counter
) -> dict[str, Repeats]:
    """Time each of the runs until it is settled or has had its most repeats; by turns, so that all see one machine."""
    found = {name: Repeats() for name in runs}
    waiting = list(runs)
    while waiting:
        for name in waiting:
            began = now()
            runs[name]()
            found[name].add((now() - began) * 1e3)
        waiting = [name for name in waiting if not _is_done(found[name], plan)]
    return found


def _is_done(repeats: Repeats, plan: Plan) -> bool:
    return repeats.count >= plan.most_repeats or repeats.is_settled(plan.least_repeats, plan.half_width)
