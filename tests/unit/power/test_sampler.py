"""The sampler over rails that a test moves, breaks and takes away, on a clock that the test sets, and windows on it."""

import logging
import math
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jetsel.base.config import Power
from jetsel.power import sampler as sampling
from jetsel.power.finding import FoundRails
from jetsel.power.integration import FEWEST_VALUES, Sample, WindowEnergy, add_up, energy_above_idle
from jetsel.power.meter import Meter
from jetsel.power.sampler import LOOK_AGAIN_S, PATIENCE, Sampler
from jetsel.power.sensors.rail import RailError, RailReading


class Rail:
    """A rail whose value a test sets; `rising`: by so much at each reading."""

    where = "a test"
    resolution_w = None

    def __init__(self, name: str = "VDD_IN", counts: bool = False) -> None:
        self.name = name
        self.value = 8_000_000
        self.rising = 0
        self.fault: str | None = None
        self.faults_left = 0
        self.is_closed = False
        self.read_uj: Callable[[], int] | None = self.read_uw if counts else None

    def read_uw(self) -> int:
        if self.faults_left:
            self.faults_left -= 1
            raise RailError("busy")
        if self.fault is not None:
            raise RailError(self.fault)
        self.value += self.rising
        return self.value

    def measure(self) -> RailReading:
        return RailReading(self.read_uw() / 1e6, None, None)

    def close(self) -> None:
        self.is_closed = True


class Machine:
    """What `find` finds, how often it was asked, and the time, which passes where the sampler waits."""

    def __init__(self) -> None:
        self.rails: list[Rail] = [Rail()]
        self.parts: list[Rail] = []  # rails that are not of the total
        self.reason: str | None = None
        self.looks = 0
        self.now_ns = 0
        self.due: list[tuple[float, Callable[[], object]]] = []

    def find(self, _settings: object) -> FoundRails:
        self.looks += 1
        reason = self.reason or next((rail.fault for rail in self.rails if rail.fault), None)
        rails = () if reason else tuple(self.rails)
        return FoundRails(None, (*rails, *self.parts), rails, (), reason)

    def monotonic(self) -> float:
        return self.now_ns * 1e-9

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wait(self, seconds: float) -> bool:
        """Let time pass and do what is due; whether all of it is done, which ends the sampler's thread."""
        self.now_ns += round(seconds * 1e9)
        while self.due and self.due[0][0] <= self.monotonic():
            self.due.pop(0)[1]()
        return not self.due

    def run(self, *due: tuple[float, Callable[[], object]], rails_every_s: float | None = None) -> Sampler:
        """Run a sampler of 100 Hz from now on until the last of these moments, in seconds."""
        self.due = list(due)
        self.sampler = Sampler(Power(rate_hz=100), rails_every_s)
        self.thread()
        return self.sampler

    def hold(self, target: Callable[[], None], **_: object) -> Any:
        """In place of a thread: it runs when the test lets it."""
        self.thread = target
        return SimpleNamespace(start=lambda: None, join=lambda: None)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return self.is_set() or made.wait(timeout or 0.0)

    monkeypatch.setattr(sampling, "find_rails", made.find)
    monkeypatch.setattr(sampling, "time", made)
    threads = SimpleNamespace(Lock=threading.Lock, Event=Event, Thread=made.hold)
    monkeypatch.setattr(sampling, "threading", threads)
    return made


def nothing() -> None:
    """What is due at the end of a run."""


def test_it_reads_the_sum_of_the_rails_at_its_rate_and_closes_them_in_the_end(machine: Machine) -> None:
    machine.rails = [Rail("GPU"), Rail("CPU")]
    sampler = machine.run((2.0, nothing))
    assert len(sampler.between(0, machine.now_ns)) == pytest.approx(200, abs=2)
    assert (sampler.total_of, sampler.reason) == (("GPU", "CPU"), None)
    assert sampler.watts() == pytest.approx(16.0)
    sampler.stop()
    assert all(rail.is_closed for rail in machine.rails)


def test_each_rail_is_told_and_one_that_cannot_be_read_is_left_out(machine: Machine) -> None:
    (whole,), (gpu,) = machine.rails, machine.parts = [Rail("VDD_IN")], [Rail("GPU")]
    told = []

    def change() -> None:
        told.append(machine.sampler.rails_w())
        gpu.fault, whole.value = "unbound", 9_000_000

    sampler = machine.run((0.1, change), (0.2, nothing), rails_every_s=0.0)
    assert [*told, sampler.rails_w()] == [{"VDD_IN": 8.0, "GPU": 8.0}, {"VDD_IN": 9.0}]


def test_a_value_that_is_repeated_is_new_once_a_second(machine: Machine) -> None:
    def rise() -> None:
        machine.rails[0].rising = 1

    sampler = machine.run((2.5, rise), (3.5, nothing))
    assert [sum(one.is_new for one in sampler.between(0, round(s * 1e9))) for s in (0.9, 1.5, 2.5)] == [1, 2, 3]
    assert all(sample.is_new for sample in sampler.between(2_500_000_000, 3_500_000_000))


def test_a_window_takes_power_above_idle_from_a_sample_at_its_begin_to_one_at_its_end(machine: Machine) -> None:
    machine.rails[0].rising = 1
    windows = []

    def begin() -> None:
        windows.append((Meter(machine.sampler, 3.0).begin(), machine.now_ns))

    sampler = machine.run((0.5, begin), (2.5, nothing))
    ((window, begin_ns),) = windows
    expected_mj = (8.0 - 3.0) * (machine.now_ns - begin_ns) * 1e-6
    assert Meter(sampler, 3.0).since(window).energy_mj == pytest.approx(expected_mj, rel=1e-4)


def test_of_a_rail_that_counts_the_difference_is_the_energy(machine: Machine) -> None:
    machine.rails = [Rail("package-0", counts=True)]
    machine.rails[0].rising = 1000
    sampler = machine.run((1.0, nothing))
    samples = sampler.between(0, machine.now_ns)
    assert sampler.since(0)[0].energy_j == pytest.approx((len(samples) - 1) * 1e-3)


def test_rails_that_fail_are_looked_for_again_and_the_time_between_has_no_energy(machine: Machine) -> None:
    before, after = machine.rails[0], Rail()

    def fail() -> None:
        before.fault = "VDD_IN: Input/output error"

    def repair() -> None:
        sampler = machine.sampler
        assert (sampler.reason, sampler.watts()) == (before.fault, None)
        assert Meter(sampler, 3.0).since(0).reason == before.fault
        assert before.is_closed
        machine.rails = [after]

    sampler = machine.run((0.5, fail), (0.6, repair), (LOOK_AGAIN_S + 1.0, nothing))
    assert (sampler.reason, machine.looks) == (None, 2)
    whole = sampler.since(0)[0]
    assert whole.length_s == pytest.approx(LOOK_AGAIN_S + 1.0, abs=0.03)
    assert whole.known_s == pytest.approx(1.5, abs=0.05)


def test_fewer_failures_than_its_patience_are_only_a_gap(machine: Machine) -> None:
    def fail() -> None:
        machine.rails[0].faults_left = PATIENCE - 1

    sampler = machine.run((0.5, fail), (1.0, nothing))
    assert (machine.rails[0].faults_left, sampler.reason, machine.looks) == (0, None, 1)
    assert sampler.watts() == pytest.approx(8.0)


def test_a_machine_without_sensors_says_so_once_and_is_looked_at_again(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="jetsel.power")
    machine.reason = "no power sensor"

    def repair() -> None:
        sampler = machine.sampler
        assert sampler.ready(60.0)
        assert (sampler.reason, sampler.watts()) == ("no power sensor", None)
        assert machine.looks == 3
        machine.reason = None

    sampler = machine.run((2.5 * LOOK_AGAIN_S, repair), (3.5 * LOOK_AGAIN_S, nothing))
    assert sampler.watts() == pytest.approx(8.0)
    assert caplog.messages.count("power is not measured: no power sensor") == 1


STALE_S = 0.25


def window(*watts: float, step_s: float = 0.1) -> list[Sample]:
    """Samples one after the other, each a new value."""
    return [Sample(round(index * step_s * 1e9), each) for index, each in enumerate(watts)]


def test_power_runs_straight_from_sample_to_sample_and_idle_power_is_deducted() -> None:
    samples = window(3.0, 5.0, 9.0, 9.0, 4.0, *[3.0] * 7)  # 0.4 + 0.7 + 0.9 + 0.65 + 0.35 + 6 x 0.3 J in 1.1 s
    found = energy_above_idle(samples, 3.0, STALE_S)
    assert found == WindowEnergy(pytest.approx(1500.0), None, 11)
    assert add_up(samples, STALE_S).mean_w == pytest.approx(4.8 / 1.1)


def test_of_counters_the_difference_counts_whatever_lies_between() -> None:
    counted = [Sample(index * 100_000_000, 0.0, joules) for index, joules in enumerate([7.0, *[9.0] * 10, 27.0])]
    assert energy_above_idle(counted, 10.0, STALE_S).energy_mj == pytest.approx(20_000 - 11_000)
    both = [sample._replace(power_w=2.0) for sample in counted]
    assert energy_above_idle(both, 10.0, STALE_S).energy_mj == pytest.approx(20_000 + 2_200 - 11_000)


def test_fewer_than_ten_new_values_are_no_energy_and_the_reason_says_how_many() -> None:
    enough = [sample._replace(is_new=index % 2 == 1) for index, sample in enumerate(window(*[8.0] * 2 * FEWEST_VALUES))]
    assert energy_above_idle(enough, 3.0, STALE_S).reason is None
    found = energy_above_idle(enough[:-1], 3.0, STALE_S)
    assert (found.energy_mj, found.samples) == (None, FEWEST_VALUES - 1)
    assert "9 new values" in (found.reason or "")


def test_between_samples_too_far_apart_power_is_not_known() -> None:
    near = window(*[8.0] * 12, step_s=STALE_S)
    assert energy_above_idle(near, 3.0, STALE_S).energy_mj == pytest.approx(5.0 * 11 * STALE_S * 1e3)
    apart = [*near, Sample(near[-1].time_ns + 251_000_000, 8.0)]
    found = energy_above_idle(apart, 3.0, STALE_S)
    assert found.energy_mj is None
    assert "0.25 s of the window were not sampled" in (found.reason or "")
    whole = add_up(apart, STALE_S)
    assert (whole.known_s, whole.length_s) == pytest.approx((11 * STALE_S, 11 * STALE_S + 0.251))
    assert whole.energy_j == pytest.approx(8.0 * 11 * STALE_S)


def test_a_reading_that_failed_leaves_the_window_without_energy_and_the_sum_without_that_time() -> None:
    samples = window(*[8.0] * 20)
    samples[5] = samples[5]._replace(power_w=math.nan)
    assert energy_above_idle(samples, 3.0, STALE_S).energy_mj is None
    assert add_up(samples, STALE_S).known_s == pytest.approx(1.7)
    assert add_up(samples, STALE_S).energy_j == pytest.approx(8.0 * 1.7)


@pytest.mark.parametrize("samples", [[], window(8.0)])
def test_no_samples_are_no_energy(samples: list[Sample]) -> None:
    assert energy_above_idle(samples, 3.0, STALE_S).energy_mj is None
    assert add_up(samples, STALE_S).mean_w is None
