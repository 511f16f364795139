"""Durations of runs by turns, within a budget, and how well their medians are known."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MAD_TO_DEVIATION = 1.4826  # of a normal distribution: 1 / its 75 % quantile
MEDIAN_TO_MEAN = math.sqrt(math.pi / 2)  # the error of a median beside that of a mean, normal distribution
NOISY_SHARE = 0.05  # of a time: half of its 95 % interval; section 4.2 of Taylor et al. repeats until it is narrower


@dataclass(frozen=True)
class TimingPlan:
    """How times are taken.

    images: how many random ones at most. repeats: runs of each model on one image, of which the median counts. least:
    images that are timed even if the budget is spent; the budget is as long as recording took.
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
    """Return durations in ms of each of the runs: one run each by turns, so that all see the same machine.

    It ends after this number of rounds; after `least` (None: all) once the budget is spent, or once no time is noisy.
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
    """Return half of the 95 % interval of the values' median, by their median absolute deviation; infinite for one."""
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = MAD_TO_DEVIATION * statistics.median(abs(value - middle) for value in values)
    return 1.96 * MEDIAN_TO_MEAN * deviation / math.sqrt(len(values))


def noise(times_ms: Mapping[str, Sequence[float]]) -> str | None:
    """Return how badly the least known of these times is known, None if all are known to 5 %."""
    shares = {name: half_interval(values) / statistics.median(values) for name, values in times_ms.items()}
    worst = max(shares, key=shares.__getitem__, default=None)
    if worst is None or shares[worst] < NOISY_SHARE:
        return None
    share = "only once" if math.isinf(shares[worst]) else f"to ±{100 * shares[worst]:.0f} %"
    return f"the time of {worst} is known {share}"
