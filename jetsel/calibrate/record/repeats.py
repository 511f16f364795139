"""When a mean is known well enough: repeat until its confidence interval is narrow (Taylor et al., section 4.2)."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# The 97.5 % quantiles of Student's t with 1 to 30 degrees of freedom.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


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
    """Durations of one thing in ms, or its energies in mJ."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Take in one more."""
        self._values.append(value)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._values)

    @property
    def mean(self) -> float:
        """Their mean; 0 where there are none."""
        return statistics.fmean(self._values) if self._values else 0.0

    @property
    def half_width(self) -> float:
        """Half the 95 % confidence interval of the mean (Student 1908); infinite below two repeats."""
        if self.count < 2:
            return math.inf
        return t_quantile(self.count - 1) * statistics.stdev(self._values) / math.sqrt(self.count)

    def is_settled(self, least: int, half_width: float) -> bool:
        """Whether there are enough, and half of the interval is less than this share of the mean."""
        return self.count >= least and self.half_width < half_width * self.mean


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with `freedom` >= 1 degrees of freedom, within 0.001."""
    return _T_975[freedom - 1] if freedom <= len(_T_975) else 1.960 + 2.45 / freedom


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
