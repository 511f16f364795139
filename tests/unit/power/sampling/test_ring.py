"""The ring: what is written is read, whole or not at all, and energy outlives the samples it came from."""

import mmap
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.power.sampling.reader import Reader
from jetsel.power.sampling.ring import (
    ALL,
    CHECK,
    HEADS,
    NO_READING,
    RECORD,
    SIZE,
    WORD,
    Writer,
    check,
)

MS = 1_000_000
SECOND = 1_000 * MS


@pytest.fixture
def memory() -> mmap.mmap:
    return mmap.mmap(-1, SIZE)


def words_of(memory: mmap.mmap, index: int) -> np.ndarray:
    """The words of a record, to be spoilt."""
    offset = ALL.offset + index % ALL.capacity * RECORD.size
    return np.frombuffer(memory, np.int64, RECORD.size // WORD, offset)


def energy_j(times_ns: np.ndarray, power_w: np.ndarray) -> float:
    return float(np.sum(np.diff(times_ns) * (power_w[1:] + power_w[:-1])) / 2e9)


def test_what_is_written_is_read_in_watts_with_one_neighbour_on_each_side(memory: mmap.mmap):
    writer = Writer(memory, 0)
    for number in range(1, 7):
        assert writer.append(number * MS, number * 1_000_000)
    times_ns, power_w = Reader(memory).between(int(2.5 * MS), int(4.5 * MS))
    assert times_ns.tolist() == [2 * MS, 3 * MS, 4 * MS, 5 * MS]
    assert power_w.tolist() == [2.0, 3.0, 4.0, 5.0]


def test_a_time_that_does_not_follow_is_left_out(memory: mmap.mmap):
    writer = Writer(memory, 0)
    assert writer.append(2 * MS, 1)
    assert not writer.append(2 * MS, 1)
    assert not writer.append(1 * MS, 1)
    assert Reader(memory).count() == 1


def test_an_empty_ring_has_no_samples(memory: mmap.mmap):
    times_ns, power_w = Reader(memory).between(0, SECOND)
    assert len(times_ns) == len(power_w) == 0
    assert len(Reader(memory).newest()) == 0


def test_no_reading_is_not_a_number(memory: mmap.mmap):
    writer = Writer(memory, 0)
    for time_ns, power_uw in ((1, 5_000_000), (2, NO_READING), (3, 5_000_000)):
        writer.append(time_ns * MS, power_uw)
    _, power_w = Reader(memory).between(0, SECOND)
    assert np.isnan(power_w).tolist() == [False, True, False]


@pytest.mark.parametrize("word", range(CHECK + 1))
@pytest.mark.parametrize("old", [1, -1, 1 << 40, -(1 << 62)])
def test_a_record_with_one_word_of_another_is_never_returned(memory: mmap.mmap, word: int, old: int):
    writer = Writer(memory, 0)
    for number in range(1, 5):
        writer.append(number * MS, 1_000_000)
    words_of(memory, 3)[word] ^= old
    times_ns, _ = Reader(memory).between(0, SECOND)
    assert 4 * MS not in times_ns.tolist()


@given(st.integers(1, 2**6 - 2), st.integers(1, 2**62), st.integers(0, 2**50), st.integers(0, 2**50))
def test_a_mixture_of_an_older_and_a_newer_record_never_passes(mixed: int, time_ns: int, power: int, energy: int):
    older = (7, time_ns, power, energy, 5)
    newer = (7 + ALL.capacity, time_ns + 65 * SECOND, power + 3, energy + 12345, 6)
    both = [(*older, check(*older)), (*newer, check(*newer))]
    torn = [both[mixed >> word & 1][word] for word in range(6)]
    assert torn in [list(one) for one in both] or check(*torn[:5]) != torn[5]


def test_an_overwritten_record_is_not_returned_in_place_of_the_one_that_was_there(memory: mmap.mmap):
    writer = Writer(memory, 0)
    for number in range(1, 4):
        writer.append(number * MS, 1_000_000)
    later = Writer(mmap.mmap(-1, SIZE), 0)
    for number in range(1, 4):
        later.append(number * MS + 1, 2_000_000)
    whole = (ALL.capacity + 1, 99 * MS, 3, 4, 5)
    words_of(memory, 1)[:] = np.array([*whole, 0])
    words_of(memory, 1).view(np.uint64)[CHECK] = check(*whole)  # whole, but of the next round
    times_ns, _ = Reader(memory).between(0, SECOND)
    assert 99 * MS not in times_ns.tolist()


def test_a_record_that_arrives_after_its_head_is_waited_for(memory: mmap.mmap):
    writer = Writer(memory, 0)
    writer.append(1 * MS, 1_000_000)
    np.frombuffer(memory, np.int64)[HEADS] = 2  # the head of a second record, which has not arrived
    began_s = time.monotonic()
    assert len(Reader(memory).newest()) == 0
    assert time.monotonic() - began_s > 0.001


def test_a_later_writer_goes_on_after_a_gap(memory: mmap.mmap):
    first = Writer(memory, 0)
    first.append(1 * SECOND, 4_000_000)
    first.append(2 * SECOND, 4_000_000)
    second = Writer(memory, 7 * SECOND)
    second.append(8 * SECOND, 6_000_000)
    times_ns, power_w = Reader(memory).between(0, 9 * SECOND)
    assert (times_ns // SECOND).tolist() == [1, 2, 7, 8]
    assert np.isnan(power_w).tolist() == [False, False, True, False]


def test_a_writer_that_died_before_its_head_moved_has_its_record_written_over(memory: mmap.mmap):
    writer = Writer(memory, 0)
    writer.append(1 * MS, 1_000_000)
    words_of(memory, 1)[:] = 77
    second = Writer(memory, 5 * MS)
    second.append(6 * MS, 2_000_000)
    times_ns, _ = Reader(memory).between(0, SECOND)
    assert times_ns.tolist() == [1 * MS, 5 * MS, 6 * MS]


def test_the_ring_holds_a_minute_at_full_rate():
    assert ALL.capacity >= 60 * 1000


def test_a_window_longer_than_the_ring_has_all_its_energy(memory: mmap.mmap):
    """A saw-tooth from 2 W to 4 W in ten steps a second: 3 W on average, for longer than the ring holds."""
    writer = Writer(memory, 0)
    count = ALL.capacity + 30_000
    times_ns = MS * np.arange(1, count + 1)
    power_uw = 2_000_000 + 200_000 * (np.arange(count) // 100 % 11)
    for time_ns, power in zip(times_ns.tolist(), power_uw.tolist(), strict=True):
        writer.append(time_ns, power)
    truth_j = energy_j(times_ns, power_uw / 1e6)
    read_ns, read_w = Reader(memory).between(0, int(times_ns[-1]))
    assert np.all(np.diff(read_ns) > 0)
    assert read_ns[0] <= times_ns[0] + 1
    assert energy_j(read_ns, read_w) == pytest.approx(truth_j, rel=1e-6)


def test_a_second_that_was_not_read_throughout_has_no_mean(memory: mmap.mmap):
    writer = Writer(memory, 0)
    for number in range(1, ALL.capacity + 5_000):
        writer.append(number * MS, NO_READING if number == 2500 else 1_000_000)
    read_ns, read_w = Reader(memory).between(0, ALL.capacity * MS)
    unknown_ns = read_ns[np.isnan(read_w)]
    assert len(unknown_ns)
    assert 2 * SECOND <= unknown_ns.min() <= unknown_ns.max() <= 3.1 * SECOND
