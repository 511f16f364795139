"""When a mean is known well enough: repeat until its confidence interval is narrow (Taylor et al., section 4.2)."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
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


def half_width(values: Sequence[float]) -> float:
    """Return half the 95 % confidence interval of their mean (Student 1908); infinite below two values."""
    count = len(values)
    return t_quantile(count - 1) * statistics.stdev(values) / math.sqrt(count) if count > 1 else math.inf


def is_settled(values: Sequence[float], least: int, share: float) -> bool:
    """Whether there are enough, and half of the interval is less than this share of their mean."""
    return len(values) >= least and half_width(values) < share * statistics.fmean(values)


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with `freedom` >= 1 degrees of freedom, within 0.001."""
    return _T_975[freedom - 1] if freedom <= len(_T_975) else 1.960 + 2.45 / freedom


def repeat_by_turns(
    runs: Mapping[str, Callable[[], object]], plan: Plan, now: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return durations in ms of each of the runs, until they are settled or have had their most repeats.

    One run each by turns, so that all see one machine.
    """
    found: dict[str, list[float]] = {name: [] for name in runs}
    waiting = list(runs)
    while waiting:
        for name in list(waiting):
            began = now()
            runs[name]()
            found[name].append((now() - began) * 1e3)
            if len(found[name]) >= plan.most_repeats or is_settled(found[name], plan.least_repeats, plan.half_width):
                waiting.remove(name)
    return found
