"""Progress is told at the start, at the end and a few times a second."""

from __future__ import annotations

from jetsel.calibrate.record.progress import Reporter


def test_told_at_most_four_times_a_second_and_always_at_the_end() -> None:
    told: list[tuple[str, int, int]] = []
    now = 10.0
    reporter = Reporter("recording", 100, lambda *step: told.append(step), lambda: now)
    for done in range(1, 101):
        now += 0.02
        reporter.reach(done)
    assert told[0] == ("recording", 0, 100)
    assert [done for _, done, _ in told[1:]] == [13, 26, 39, 52, 65, 78, 91, 100]
