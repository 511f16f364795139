"""Windows of repeated runs on a meter that integrates a known power, times by turns, and their intervals by hand."""

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

import pytest

from jetsel.calibrate.record.bench import EnergyPlan
from jetsel.calibrate.record.conditions import describe_noise, half_interval_of_median, run_by_turns
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.metering import WindowMeter, WindowSeries, half_width
from jetsel.calibrate.record.recorder import record
from jetsel.calibrate.record.workers import Observer
from jetsel.engines import Engine
from jetsel.power.integration import FEWEST_VALUES, WindowEnergy
from jetsel.power.meter import Meter, OpenedMeter
from tests.unit.calibrate.record.making import QUICK, change, family, found, put, rows

BOTH = family("xs", "s")
GO_ON = threading.Event()


class Bench:
    """A board on a clock of its own: it draws `watts(t)` above idle; its sensor has so many new values a second."""

    name = "VDD_IN"

    def __init__(self, watts: Callable[[float], float] = lambda _: 0.0, hz: float = 20.0) -> None:
        self.now_s = 0.0
        self.energy_mj = 0.0
        self.watts = watts
        self.hz = hz
        self.broken: str | None = None
        self.lengths_s: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def work(self, duration_ms: float, watts: float) -> Callable[[], None]:
        """A run that takes so long and draws so much."""

        def run() -> None:
            self.energy_mj += duration_ms * (watts + self.watts(self.now_s))
            self.now_s += duration_ms / 1e3

        return run

    def begin(self) -> int:
        self.began = self.now_s, self.energy_mj
        return 0

    def since(self, begin_ns: int) -> WindowEnergy:
        length_s = self.now_s - self.began[0]
        self.lengths_s.append(round(length_s, 6))
        samples = int(length_s * self.hz)
        if self.broken is not None:
            return WindowEnergy(None, self.broken)
        if samples < FEWEST_VALUES:
            return WindowEnergy(None, f"{samples} new values in the window", samples)
        return WindowEnergy(self.energy_mj - self.began[1], None, samples)


def metered(bench: Bench, plan: EnergyPlan, **runs: Callable[[], None]) -> dict[str | None, WindowSeries]:
    return dict(WindowMeter(bench, plan, bench).by_turns(runs, GO_ON))


def test_the_energy_of_a_run_is_that_of_its_window_divided_by_the_runs() -> None:
    bench = Bench()
    # 256 runs of 1/128 s at 4 W fill a window of 2 s: 8 J, 31.25 mJ each.
    one = metered(bench, EnergyPlan(), s=bench.work(7.8125, 4.0))["s"]
    assert (fmean(one.energies_mj), half_width(one.energies_mj)) == (pytest.approx(31.25), pytest.approx(0.0, abs=1e-9))
    assert (len(one.energies_mj), fmean(one.durations_ms)) == (5, pytest.approx(7.8125))
    assert (one.runs, one.unknown_reason) == (1280, None)
    assert set(bench.lengths_s) == {2.0}


def test_windows_grow_until_a_slow_sensor_has_enough_new_values_and_stay_so_long() -> None:
    # At 2 Hz the window of 2 s has 4 new values, so the next is of 2 s x 1.5 x 10 / 4 = 7.5 s, with 15.
    bench = Bench(hz=2.0)
    one = metered(bench, EnergyPlan(), s=bench.work(125.0, 3.0))["s"]
    assert bench.lengths_s == [2.0, *[7.5] * 5]
    assert (len(one.energies_mj), one.runs, fmean(one.energies_mj)) == (5, 300, pytest.approx(375.0))


def test_a_sensor_that_is_too_slow_for_the_longest_window_is_given_up_with_its_reason() -> None:
    bench = Bench(hz=0.1)
    one = metered(bench, EnergyPlan(), s=bench.work(1000.0, 3.0))["s"]
    assert one.unknown_reason == "3 new values in the window"
    assert max(bench.lengths_s) == 30.0


# Recordings, with real models, and a meter that reads what it is told.


class Steady(Meter):
    """Reads the same in every window, as if it had lasted long enough."""

    name = "VDD_IN"

    def __init__(self, *readings: WindowEnergy) -> None:
        self.readings = readings
        self.windows = 0

    def begin(self) -> int:
        return 0

    def since(self, begin_ns: int) -> WindowEnergy:
        self.windows += 1
        return self.readings[(self.windows - 1) % len(self.readings)]


ENERGY = EnergyPlan(photographs=2, window_s=0.0, least_windows=2, most_windows=2)  # a run a window
TEN_JOULES = WindowEnergy(10_000.0, None, 100)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.db"


Go = Callable[..., bool]


@pytest.fixture
def go(path: Path, engines: Mapping[str, Engine]) -> Go:
    """Record six photographs with a meter, or none."""
    photographs = found(put(path.with_name("photos"), 6))

    def go(meter: Steady | None, observer: Observer | None = None) -> bool:
        opened = OpenedMeter(reason="no idle power") if meter is None else OpenedMeter(meter, idle_half_w=0.01)
        options = dataclasses.replace(QUICK, opened=opened, energy=ENERGY)
        return record(path, BOTH, engines, photographs, options, observer)

    return go


METERED = (
    "SELECT COALESCE(name, 'features'), photograph FROM energies LEFT JOIN models ON models.id = model ORDER BY 1, 2"
)


def test_energies_are_means_over_photographs_with_their_scatter_and_the_meter_s_own_error(path: Path, go: Go) -> None:
    go(Steady(TEN_JOULES))
    update = "UPDATE energies SET mean_mj = {}, scatter_mj = {}, sensor_mj = {}, idle_mj = {}, mean_ms = {} WHERE {}"
    low = "photograph = (SELECT MIN(photograph) FROM energies)"
    for statement in (
        update.format(20, 0.6, 0.8, 0.3, 5, f"model NOT NULL AND {low}"),
        update.format(22, 0.0, 0.0, 0.5, 5, f"model NOT NULL AND NOT {low}"),
        update.format(2, 0.1, 0.1, 0.1, 1, f"model IS NULL AND {low}"),
        update.format(4, 0.1, 0.1, 0.1, 1, f"model IS NULL AND NOT {low}"),
    ):
        change(path, statement)
    energies = load(path, BOTH).recording.energies
    assert energies is not None
    assert energies.mean_mj == {"xs": 21.0, "s": 21.0}
    # Scatter and sensor: sqrt(0.36 + 0.64) / 2 = 0.5; idle power, the same in both: 0.4; together sqrt(0.25 + 0.16).
    assert energies.half_width_mj["s"] == pytest.approx(math.sqrt(0.41))
    assert energies.chooser_w == pytest.approx(3.0)  # 3 mJ in 1 ms


def test_what_is_metered_is_not_metered_again_and_what_was_stopped_goes_on(path: Path, go: Go) -> None:
    stop, meter = threading.Event(), Steady(TEN_JOULES)

    class Stopping(Steady):
        def since(self, begin_ns: int) -> WindowEnergy:
            if self.windows == 3:  # the first has had its two windows then, the other two of the photograph one each
                stop.set()
            return super().since(begin_ns)

    assert not go(Stopping(TEN_JOULES), Observer(stop=stop))
    assert len(rows(path, METERED)) == 1
    done, windows = go(meter), meter.windows
    assert (done, len(rows(path, METERED))) == (True, 6)
    go(meter)
    assert meter.windows == windows


def test_without_a_meter_the_reason_is_kept_and_a_later_run_with_one_adds_the_energies(path: Path, go: Go) -> None:
    go(None)
    loaded = load(path, BOTH)
    assert (loaded.recording.energies, loaded.times.energy_reason) == (None, "no idle power")
    go(Steady(TEN_JOULES))
    assert load(path, BOTH).times.energy_reason is None
    go(None)  # and one without does not take them away
    assert load(path, BOTH).recording.energies is not None


def test_a_sensor_that_fails_ends_the_metering_with_its_reason_and_is_tried_again(path: Path, go: Go) -> None:
    broken = Steady(WindowEnergy(None, "the sensor vanished"))
    assert go(broken)
    assert load(path, BOTH).times.energy_reason == "the sensor vanished"
    assert broken.windows <= 3 * 3  # each of a photograph's three at most three times
    go(Steady(TEN_JOULES))
    assert load(path, BOTH).times.energy_reason is None
    assert load(path, BOTH).recording.energies is not None


def test_energy_that_cannot_be_told_from_nothing_is_unknown(path: Path, go: Go) -> None:
    lost = Steady(WindowEnergy(100.0, None, 100), WindowEnergy(-90.0, None, 100))
    go(lost)
    loaded = load(path, BOTH)
    assert loaded.recording.energies is None
    assert "cannot be distinguished from zero" in (loaded.times.energy_reason or "")


class Clock:
    """Runs that take what they are given, by a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran: list[str] = []

    def run(self, name: str, *durations_ms: float) -> Callable[[], object]:
        """The durations come round again and again."""

        def once() -> None:
            self.now_s += durations_ms[self.ran.count(name) % len(durations_ms)] / 1e3
            self.ran.append(name)

        return once

    def __call__(self) -> float:
        return self.now_s


def test_the_interval_of_a_mean_by_hand() -> None:
    assert half_width([1.0]) == math.inf
    # Mean 2, variance 1, standard error 1 / sqrt(3), t of 2 degrees of freedom 4.3027.
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-3)
    assert half_width([-1.0, 1.0]) == pytest.approx(12.7062, rel=1e-3)


def test_the_interval_of_a_median_by_hand_heeds_no_outlier() -> None:
    # Median 3, deviations 2, 1, 0, 1, 997, of which the median is 1: 1.96 * 1.2533 * 1.4826 / sqrt(5).
    assert half_interval_of_median([1.0, 2.0, 3.0, 4.0, 1000.0]) == pytest.approx(1.6287, abs=1e-4)
    assert half_interval_of_median([1.0]) == math.inf


def test_models_run_by_turns_until_the_budget_is_spent() -> None:
    clock = Clock()
    runs = {"s": clock.run("s", 1.0, 3.0), "l": clock.run("l", 9.0)}
    found = run_by_turns(runs, 10, budget_s=0.025, least=1, now=clock)
    assert found["s"] == pytest.approx([1.0, 3.0, 1.0]), "after 10, 22 and 32 ms"
    assert found["l"] == pytest.approx([9.0, 9.0, 9.0])
    assert clock.ran == ["s", "l", "s", "l", "s", "l"]


def test_some_rounds_run_in_any_case_and_no_more_once_the_times_are_known() -> None:
    clock = Clock()
    assert len(run_by_turns({"s": clock.run("s", 5.0, 9.0)}, 10, budget_s=0.0, least=4, now=clock)["s"]) == 4
    assert len(run_by_turns({"s": clock.run("s", 5.0)}, 10, least=4, now=clock)["s"]) == 4
    assert len(run_by_turns({"s": clock.run("s", 5.0)}, 2, now=clock)["s"]) == 2


def test_noise_names_the_time_that_is_known_least() -> None:
    quiet = [10.0, 10.1] * 20
    assert describe_noise({"s": quiet}) is None
    # Median 10, median deviation 5: 1.96 * 1.2533 * 1.4826 * 5 / sqrt(6) is 74 % of it.
    assert describe_noise({"s": quiet, "l": [5.0, 10.0, 15.0] * 2}) == "the time of l is known to ±74 %"
    assert describe_noise({"s": [1.0]}) == "the time of s is known only once"
