"""When another host is started."""

from __future__ import annotations

from jetsel.engines.hosting.rules import Deaths, Rules


def test_each_start_waits_twice_as_long_up_to_a_limit_and_old_deaths_do_not_count() -> None:
    deaths = Deaths(Rules(first_pause_s=0.1, longest_pause_s=0.5, window_s=10.0))
    pauses = []
    for at_s in (0.0, 1.0, 2.0, 3.0, 4.0, 13.5, 30.0):
        deaths.count(at_s)
        pauses.append(deaths.pause_s)
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.5, 0.1, 0.0]
