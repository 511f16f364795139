"""Time several functions in turns, within a budget, and estimate the error of their medians."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MAD_TO_DEVIATION = 1.4826  # of a normal distribution: 1 / its 75 % quantile
MEDIAN_TO_MEAN = math.sqrt(math.pi / 2)  # error of a median / error of a mean, for a normal distribution
NOISY_SHARE = 0.05  # limit of half the 95 % interval, as a share of the time (Taylor et al., section 4.2)


@dataclass(frozen=True)
class TimingPlan:
    """How models are timed, within a budget that is the time that recording took.

    images: largest number of random images. repeats: runs of each model on one image; their median counts. least:
    number of images that are timed even if the budget is spent.
    """

    images: int = 200
    repeats: int = 3
    least: int = 10


def run_by_turns(
    runs: Mapping[str, Callable[[], object]],
    rounds: int,
    budget_s: float = math.inf,
    least: int | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the durations in ms of each function, all called once per round, so that all meet the same conditions.

    It ends after `rounds`, or after `least` rounds as soon as the budget is spent or no time is noisy. least: None to
    run all rounds.
    """
    times_ms: dict[str, list[float]] = {name: [] for name in runs}
    began_s = now()
    for done in range(rounds):
        if least is not None and done >= least and (now() - began_s >= budget_s or noise(times_ms) is None):
            break
        for name, run in runs.items():
            start_s = now()
            run()
            times_ms[name].append((now() - start_s) * 1e3)
    return times_ms


def half_interval(values: Sequence[float]) -> float:
    """Return half the 95 % interval of the median, by the median absolute deviation; infinite below two values."""
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = MAD_TO_DEVIATION * statistics.median(abs(value - middle) for value in values)
    return 1.96 * MEDIAN_TO_MEAN * deviation / math.sqrt(len(values))


def noise(times_ms: Mapping[str, Sequence[float]]) -> str | None:
    """Return, in words, the error of the least certain time; None if all times are known to NOISY_SHARE."""
    shares = {name: half_interval(values) / statistics.median(values) for name, values in times_ms.items()}
    worst = max(shares, key=shares.__getitem__, default=None)
    if worst is None or shares[worst] < NOISY_SHARE:
        return None
    share = "only once" if math.isinf(shares[worst]) else f"to ±{100 * shares[worst]:.0f} %"
    return f"the time of {worst} is known {share}"
