"""Shares of energy: hand-worked ones, and what holds for any activities: nothing is lost, nothing depends on order."""

from __future__ import annotations

import itertools
import math
import sys
import threading
from dataclasses import astuple
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetsel.power.integration import NO_IDLE, NO_READING, NOT_KEPT, integrate
from jetsel.power.ledger import MOST_PENDING, Activity, Ledger
from tests.unit.power.playing import Clock, Playing, ns

IDLE = SimpleNamespace(mean_w=3.0, half_width_w=0.0)


class Scene:
    """A ledger over given samples, and the clock of its activities."""

    def __init__(self, source: Playing, idle: SimpleNamespace | None = IDLE) -> None:
        self.source = source
        self.clock = Clock()
        self.ledger = Ledger(source, idle, self.clock)

    def play(self, spans_s: list[tuple[str, float, float]]) -> list[Activity]:
        """Begin and end activities at given times, and return them as they were given."""
        found: dict[int, Activity] = {}
        begins = [(begin_s, 1, i) for i, (_, begin_s, _) in enumerate(spans_s)]
        ends = [(end_s, 0 if end_s > begin_s else 2, i) for i, (_, begin_s, end_s) in enumerate(spans_s)]
        for at_s, kind, i in sorted(begins + ends):
            self.clock.now_ns = ns(at_s)
            if kind == 1:
                found[i] = self.ledger.begin(spans_s[i][0])
            else:
                self.ledger.end(found[i])
        return [found[i] for i in range(len(spans_s))]


def flat(power_w: float = 8.0, length_s: float = 1.0) -> Playing:
    count = round(length_s / 0.001) + 1
    return Playing([i * 0.001 for i in range(count)], [power_w] * count)


def test_an_activity_alone_takes_all_power_above_idle() -> None:
    scene = Scene(flat())
    (alone,) = scene.play([("model:xl", 0.1, 0.3)])
    reading = scene.ledger.settle([(alone, 1.0)])
    assert reading.energy_mj == pytest.approx(5 * 200)
    assert (reading.samples, reading.reason) == (201, None)


def test_an_activity_alone_reads_what_a_window_of_its_length_does() -> None:
    scene = Scene(Playing([i * 0.001 for i in range(500)], [3.0 + i % 7 for i in range(500)]))
    (alone,) = scene.play([("model:xl", 0.1003, 0.3007)])
    alike = integrate(scene.source.all, ns(0.1003), ns(0.3007), IDLE)
    assert scene.ledger.settle([(alone, 1.0)]) == pytest.approx(alike)


def test_two_that_overlap_share_the_overlap_equally() -> None:
    # 100 ms alone, 100 ms together, 100 ms alone: 500 mJ and half of 500 mJ each.
    scene = Scene(flat())
    first, second = scene.play([("model:xl", 0.1, 0.3), ("model:xs", 0.2, 0.4)])
    assert scene.ledger.settle([(first, 1.0)]).energy_mj == pytest.approx(750)
    assert scene.ledger.settle([(second, 1.0)]).energy_mj == pytest.approx(750)


def test_a_batch_is_one_activity_whose_energy_its_requests_share() -> None:
    scene = Scene(flat())
    run, decode = scene.play([("model:xl", 0.1, 0.3), ("decode", 0.3, 0.32)])
    assert scene.ledger.settle([(run, 0.25), (decode, 1.0)]).energy_mj == pytest.approx(0.25 * 1000 + 100)


def test_what_is_too_short_to_be_read_alone_still_goes_into_the_totals() -> None:
    scene = Scene(flat())
    (short,) = scene.play([("chooser", 0.1002, 0.1007)])
    reading = scene.ledger.settle([(short, 1.0)])
    assert (reading.energy_mj, reading.samples) == (None, 0)
    assert reading.reason is not None
    assert "two are needed" in reading.reason
    total = scene.ledger.totals()["chooser"]
    assert total.joules == pytest.approx(5 * 0.0005)
    assert (total.count, total.unmetered_s) == (1, 0.0)


def test_two_samples_in_all_activities_together_are_enough() -> None:
    scene = Scene(flat())
    first, second = scene.play([("chooser", 0.1002, 0.1011), ("model:xs", 0.1011, 0.1023)])
    reading = scene.ledger.settle([(first, 1.0), (second, 1.0)])
    assert reading.samples == 2
    assert reading.energy_mj == pytest.approx(5 * 2.1)


def test_time_when_nothing_runs_is_nobodys() -> None:
    scene = Scene(flat())
    runs = scene.play([("model:xl", 0.1, 0.2), ("model:xl", 0.7, 0.8)])
    scene.ledger.settle([(run, 1.0) for run in runs])
    total = scene.ledger.totals()["model:xl"]
    assert astuple(total) == pytest.approx((1.0, 0.2, 2, 0.0))


def test_without_idle_power_nothing_is_metered_and_the_reason_is_given() -> None:
    scene = Scene(flat(), idle=None)
    (run,) = scene.play([("model:xl", 0.1, 0.3)])
    assert scene.ledger.settle([(run, 1.0)]) == (None, NO_IDLE, 0, None)
    assert astuple(scene.ledger.totals()["model:xl"]) == pytest.approx((None, 0.2, 1, 0.2))


def test_where_the_sensor_gave_no_reading_the_seconds_are_counted_as_not_metered() -> None:
    # Sample 150 is missing: from 149 ms to 151 ms the power is unknown.
    source = flat()
    source.all.power_w[150] = math.nan
    scene = Scene(source)
    (run,) = scene.play([("model:xl", 0.1, 0.2)])
    assert scene.ledger.settle([(run, 1.0)]).reason == NO_READING
    assert astuple(scene.ledger.totals()["model:xl"]) == pytest.approx((5 * 0.098, 0.1, 1, 0.002))


def test_what_ran_before_the_first_sample_is_not_metered() -> None:
    scene = Scene(Playing([0.5 + i * 0.001 for i in range(500)], [8.0] * 500))
    (run,) = scene.play([("model:xl", 0.4, 0.6)])
    assert scene.ledger.settle([(run, 1.0)]).reason == NOT_KEPT
    assert astuple(scene.ledger.totals()["model:xl"]) == pytest.approx((0.5, 0.2, 1, 0.1))


def test_what_ran_long_after_the_last_sample_is_not_metered() -> None:
    # The last value, of 1 s, stands for 250 ms.
    scene = Scene(flat(length_s=1.0))
    (run,) = scene.play([("model:xl", 0.9, 1.5)])
    scene.ledger.settle([(run, 1.0)])
    assert astuple(scene.ledger.totals()["model:xl"]) == pytest.approx((5 * 0.35, 0.6, 1, 0.25))


def test_an_uncertain_share_is_smaller_than_the_whole_and_larger_for_having_been_cut() -> None:
    source = Playing([i * 0.001 for i in range(1001)], [3.0 + 5.0 * (i // 50 % 2) for i in range(1001)])
    whole = Scene(source)
    (alone,) = whole.play([("a", 0.1, 0.5)])
    shared = Scene(source)
    pair = shared.play([("a", 0.1, 0.5), ("b", 0.1, 0.5)])
    cut = Scene(source)
    mixed = cut.play([("a", 0.1, 0.5), ("b", 0.2, 0.5), ("c", 0.21, 0.3)])
    of_all = whole.ledger.settle([(alone, 1.0)]).uncertainty_mj
    half = shared.ledger.settle([(pair[0], 1.0)]).uncertainty_mj
    assert of_all is not None
    assert half == pytest.approx(of_all / 2)
    # b joins (1 to 1/2), c joins (1/2 to 1/3), c leaves: 5 W for 1 ms times 1/2 + 1/6 + 1/6.
    part = (0.1 + 0.01 / 2 + 0.09 / 3 + 0.2 / 2) / 0.4
    assert cut.ledger.settle([(mixed[0], 1.0)]).uncertainty_mj == pytest.approx(of_all * part + 5 * (5 / 6))


def test_an_activity_that_still_runs_cannot_be_settled() -> None:
    scene = Scene(flat())
    running = scene.ledger.begin("model:xl")
    with pytest.raises(ValueError, match="still runs"):
        scene.ledger.settle([(running, 1.0)])


def test_nothing_settled_says_that_nothing_ran() -> None:
    assert Scene(flat()).ledger.settle([]).reason == "nothing ran"


def test_totals_of_what_still_runs_go_up_to_the_newest_sample() -> None:
    scene = Scene(flat())
    scene.clock.now_ns = ns(0.5)
    run = scene.ledger.begin("model:xl")
    scene.clock.now_ns = ns(1.1)
    assert astuple(scene.ledger.totals()["model:xl"]) == pytest.approx((2.5, 0.5, 0, 0.0))
    scene.ledger.end(run)
    assert scene.ledger.settle([(run, 1.0)]).energy_mj == pytest.approx(5 * 600)


def test_the_sampler_is_open_while_something_runs_and_settling_reads_it_once() -> None:
    scene = Scene(flat())
    first = scene.ledger.begin("a")
    second = scene.ledger.begin("b")
    scene.clock.now_ns = ns(0.1)
    scene.ledger.end(first)
    assert scene.source.opened == 1
    scene.ledger.end(second)
    assert scene.source.opened == 0
    scene.ledger.settle([(first, 1.0), (second, 1.0)])
    assert scene.source.reads == 1


def test_memory_stays_bounded_where_nobody_settles() -> None:
    scene = Scene(flat())
    for i in range(2 * MOST_PENDING):
        scene.clock.now_ns = i * 40_000
        scene.ledger.end(scene.ledger.begin("model:xl"))
    assert len(scene.ledger._events) <= MOST_PENDING
    assert scene.ledger.totals()["model:xl"].count == 2 * MOST_PENDING


def test_threads_may_begin_end_and_settle_at_once() -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        scene = Scene(flat())
        lock = threading.Lock()

        def tick() -> int:  # a clock for all threads that never stands still
            with lock:
                scene.clock.now_ns += 997
                return scene.clock.now_ns

        scene.ledger = Ledger(scene.source, IDLE, tick)

        def work(what: str) -> None:
            for _ in range(300):
                run = scene.ledger.begin(what)
                scene.ledger.end(run)
                scene.ledger.settle([(run, 1.0)])

        threads = [threading.Thread(target=work, args=(f"model:{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert {what: total.count for what, total in scene.ledger.totals().items()} == {f"model:{i}": 300 for i in range(4)}
    assert scene.source.opened == 0


spans = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 900_000), st.integers(0, 100_000)).map(
        lambda drawn: (drawn[0], drawn[1] / 1e6, (drawn[1] + drawn[2]) / 1e6)
    ),
    min_size=1,
    max_size=12,
)
watts = st.lists(st.floats(3.0, 30.0), min_size=52, max_size=52)


def union_mj(source: Playing, spans_s: list[tuple[str, float, float]]) -> float:
    """The energy of all time in which anything runs, by `integrate`."""
    total_mj, reached_s = 0.0, 0.0
    for _, begin_s, end_s in sorted(spans_s, key=lambda span: span[1]):
        begin_s = max(begin_s, reached_s)
        if end_s > begin_s:
            cuts = [begin_s, *(at for i in range(52) if begin_s < (at := i / 50) < end_s), end_s]
            for low_s, high_s in itertools.pairwise(cuts):
                middle_s = (low_s + high_s) / 2 * 50
                before = int(middle_s)
                power_w = source.all.power_w[before]
                power_w += (source.all.power_w[before + 1] - power_w) * (middle_s - before)
                total_mj += (power_w - 3.0) * (high_s - low_s) * 1e3
            reached_s = end_s
    return total_mj


def fifty_hz(power_w: list[float]) -> Playing:
    return Playing([i / 50 for i in range(52)], power_w, period_s=0.02)


@settings(max_examples=150, deadline=None)
@given(spans, watts)
def test_shares_add_up_to_the_total_and_none_is_negative(
    spans_s: list[tuple[str, float, float]], power_w: list[float]
) -> None:
    scene = Scene(fifty_hz(power_w))
    found = scene.play(spans_s)
    scene.ledger.settle([(each, 1.0) for each in found])
    totals = scene.ledger.totals()  # what is too short to be read alone is settled here
    total_mj = union_mj(scene.source, spans_s)
    assert sum(each.energy_mj for each in found) == pytest.approx(total_mj, rel=1e-9, abs=1e-6)
    assert all(each.energy_mj >= -1e-9 for each in found)
    assert sum(1e3 * (total.joules or 0.0) for total in totals.values()) == pytest.approx(total_mj, rel=1e-9, abs=1e-6)
    assert sum(total.count for total in totals.values()) == len(spans_s)


@settings(max_examples=100, deadline=None)
@given(spans, watts, st.randoms(use_true_random=False))
def test_shares_do_not_depend_on_the_order_of_settling(spans_s, power_w, shuffled) -> None:
    at_once, by_turns = Scene(fifty_hz(power_w)), Scene(fifty_hz(power_w))
    together = at_once.play(spans_s)
    at_once.ledger.settle([(each, 1.0) for each in together])
    apart = by_turns.play(spans_s)
    order = list(range(len(apart)))
    shuffled.shuffle(order)
    for i in order:
        by_turns.ledger.settle([(apart[i], 1.0)])
        if shuffled.random() < 0.3:
            by_turns.ledger.totals()
    for scene in (at_once, by_turns):
        scene.ledger.totals()  # what is too short to be read alone is settled here
    for one, other in zip(together, apart, strict=True):
        assert one.energy_mj == pytest.approx(other.energy_mj, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(spans, watts)
def test_activities_of_one_name_and_of_many_take_the_same_in_all(spans_s, power_w) -> None:
    many, one = Scene(fifty_hz(power_w)), Scene(fifty_hz(power_w))
    many.play(spans_s)
    one.play([("all", begin_s, end_s) for _, begin_s, end_s in spans_s])
    added = [
        sum(column)
        for column in zip(*((t.joules or 0.0, t.seconds, t.count) for t in many.ledger.totals().values()), strict=True)
    ]
    total = one.ledger.totals()["all"]
    assert added == pytest.approx([total.joules or 0.0, total.seconds, total.count], rel=1e-9, abs=1e-9)
