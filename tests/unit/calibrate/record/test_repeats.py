"""Quantiles against the printed table, intervals by hand, and the rule when to stop on a clock that is set."""

from __future__ import annotations

import math

import pytest

from jetsel.calibrate.record import TimingPlan
from jetsel.calibrate.record.bench import half_width, is_settled, repeat_by_turns, t_quantile


class Clock:
    """Runs that take what they are told, by a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran: list[str] = []

    def run(self, name: str, *durations_ms: float) -> object:
        """The durations come round again and again."""

        def once() -> None:
            self.now_s += durations_ms[self.ran.count(name) % len(durations_ms)] / 1e3
            self.ran.append(name)

        return once

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.70620), (30, 2.04227), (10**9, 1.95996)])
def test_quantiles_are_those_of_the_printed_table(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=0.001)


def test_the_interval_by_hand() -> None:
    assert half_width([1.0]) == math.inf
    # Mean 2, variance 1, standard error 1 / sqrt(3), t of 2 degrees of freedom 4.3027.
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-3)


def test_restless_durations_are_repeated_until_the_interval_is_narrow() -> None:
    # 9 and 11 ms by turns: after n = 2m repeats the mean is 10 and the variance 2m / (2m - 1), so the half-width is
    # t / sqrt(2m - 1): below 0.5 first at n = 18 (2.110 / sqrt(17) = 0.512 is not, at 20 2.093 / sqrt(19) = 0.480 is);
    # at n = 19 the mean is 9.947, the variance 1.053 and 2.101 * sqrt(1.053 / 19) = 0.4945 < 0.4974.
    clock = Clock()
    found = repeat_by_turns({"s": clock.run("s", 9.0, 11.0)}, TimingPlan(most_repeats=50), clock)["s"]
    assert len(found) == 19
    assert half_width(found) == pytest.approx(0.4945, abs=0.0005)


def test_they_run_by_turns_and_leave_when_settled_or_at_the_cap() -> None:
    clock = Clock()
    runs = {"s": clock.run("s", 1.0), "l": clock.run("l", 1.0, 9.0)}
    found = repeat_by_turns(runs, TimingPlan(least_repeats=2, most_repeats=4), clock)
    assert clock.ran == ["s", "l", "s", "l", "l", "l"]
    assert [is_settled(found[name], 2, 0.05) for name in "sl"] == [True, False]
