"""When another host is started, and when it is given up."""

from __future__ import annotations

from jetsel.engines.hosting.rules import Deaths, Rules


def test_each_start_after_the_first_waits_twice_as_long_up_to_a_limit() -> None:
    deaths = Deaths(Rules(first_pause_s=0.1, longest_pause_s=0.5))
    pauses = [(deaths.count(float(number)), deaths.pause_s)[1] for number in range(5)]
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.5]


def test_only_the_deaths_within_the_window_count() -> None:
    deaths = Deaths(Rules(most_deaths=2, window_s=10.0))
    assert [deaths.count(at_s) for at_s in (0.0, 5.0, 11.0, 14.0)] == [False, False, False, True]
    deaths.forget()
    assert not deaths.count(15.0)
