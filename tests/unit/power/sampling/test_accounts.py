"""The sampler's accounts of itself, and the way they take to the daemon."""

import mmap

import pytest

from jetsel.power.sampling.accounts import Accounts
from jetsel.power.sampling.report import Statistics, report
from jetsel.power.sampling.ring import SIZE, STATISTICS, WORD
from jetsel.power.sensors.rail import Dropped

MS = 1_000_000


def test_rate_and_lateness_are_of_open_windows_alone():
    accounts = Accounts(0)
    for _ in range(5):
        accounts.read(90 * MS, 1000)
    accounts.turn(True, 100 * MS)
    for late_us in range(1, 101):
        accounts.read(late_us * 1000, 3000)
    accounts.turn(False, 1100 * MS)
    known = accounts.settle(1200 * MS)
    assert known.reads == 105
    assert known.achieved_mhz == 100_000
    assert known.late_p50_ns == 50_000
    assert known.late_p99_ns == 99_000
    assert known.read_ns == (5 * 1000 + 100 * 3000) // 105


def test_a_window_that_was_open_for_a_moment_tells_no_rate_until_more_follow():
    accounts = Accounts(0)
    for second in range(3):
        begin_ns = second * 1000 * MS
        accounts.turn(True, begin_ns)
        for _ in range(200):
            accounts.read(0, 1)
        accounts.turn(False, begin_ns + 200 * MS)
        known = accounts.settle(begin_ns + 1000 * MS)
        assert (known.achieved_mhz == -1) == (second < 2)
    assert known.achieved_mhz == 1_000_000


def test_statistics_arrive_as_they_were_written():
    memory = mmap.mmap(-1, SIZE)
    assert Statistics.read(memory) is None
    written = Statistics(reads=7, missed=2, late_p50_ns=-1, busy_ppm=31_000)
    written.write(memory)
    assert Statistics.read(memory) == written
    Statistics.clear(memory)
    assert Statistics.read(memory) is None


def test_torn_statistics_are_not_read():
    memory = mmap.mmap(-1, SIZE)
    Statistics(reads=7).write(memory)
    memory[STATISTICS * WORD] = 8
    assert Statistics.read(memory) is None


def test_what_is_not_known_is_none_in_the_report():
    told = report(Statistics(samples=3), ("VDD_IN",), None, (Dropped("X", "no name"),), 1)
    assert told.achieved_hz is None
    assert told.update_period_ms is None
    assert told.samples == 3
    assert told.restarts == 1


def test_the_report_has_the_units_of_its_names():
    told = report(
        Statistics(achieved_mhz=999_500, late_p50_ns=90_000, period_ns=6_600_000, read_ns=5_000, busy_ppm=34_000),
        (),
        None,
        (),
        0,
    )
    assert told.achieved_hz == pytest.approx(999.5)
    assert told.jitter_p50_us == pytest.approx(90)
    assert told.update_period_ms == pytest.approx(6.6)
    assert told.read_us == pytest.approx(5)
    assert told.busy == pytest.approx(0.034)
