"""The sampling thread over rails that a test moves, breaks and takes away, and windows measured with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

import pytest

from jetsel.base.config import Power
from jetsel.power import sampler as sampling
from jetsel.power.finding import FoundRails
from jetsel.power.meter import Meter
from jetsel.power.sampler import PATIENCE, Sampler
from jetsel.power.sensors.rail import Measured, RailError
from tests.waiting import until


class Rail:
    """A rail whose value a test sets; `rising`: another value at each reading."""

    where = "a test"
    resolution_w = None

    def __init__(self, name: str = "VDD_IN", counts: bool = False) -> None:
        self.name = name
        self.value = 8_000_000
        self.rising = 0
        self.fault: str | None = None
        self.is_closed = False
        self.read_uj: Callable[[], int] | None = self._read if counts else None

    def read_uw(self) -> int:
        return self._read()

    def _read(self) -> int:
        if self.fault is not None:
            raise RailError(self.fault)
        self.value += self.rising
        return self.value

    def measure(self) -> Measured:
        return Measured(self._read() / 1e6, None, None)

    def close(self) -> None:
        self.is_closed = True


class Machine:
    """What `find` finds, and how often it was asked."""

    def __init__(self) -> None:
        self.rails: list[Rail] = [Rail()]
        self.parts: list[Rail] = []  # rails that are not of the total
        self.reason: str | None = None
        self.looks = 0

    def find(self, _settings: object) -> FoundRails:
        self.looks += 1
        reason = self.reason or next((rail.fault for rail in self.rails if rail.fault), None)
        rails = () if reason else tuple(self.rails)
        return FoundRails(None, (*rails, *self.parts), rails, (), reason)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(sampling, "find", made.find)
    monkeypatch.setattr(sampling, "LOOK_AGAIN_S", 0.01)
    return made


@pytest.fixture
def sampler(machine: Machine) -> Iterator[Sampler]:
    made = Sampler(Power(rate_hz=100))
    until(made.watts)
    yield made
    made.stop()


def test_it_reads_the_sum_of_the_rails_at_its_rate_and_closes_them_in_the_end(machine: Machine) -> None:
    machine.rails = [Rail("GPU"), Rail("CPU")]
    made = Sampler(Power(rate_hz=100))
    until(lambda: len(made.between(0, time.monotonic_ns())) > 20)
    assert (made.total_of, made.reason) == (("GPU", "CPU"), None)
    assert made.watts() == pytest.approx(16.0)
    assert 1 < (made.achieved_hz() or 0.0) < 110
    made.stop()
    assert all(rail.is_closed for rail in machine.rails)


def test_each_rail_is_told_and_one_that_cannot_be_read_is_left_out(machine: Machine) -> None:
    (whole,), (gpu,) = machine.rails, machine.parts = [Rail("VDD_IN")], [Rail("GPU")]
    sampling_all = Sampler(Power(rate_hz=100), rails_every_s=0.0)
    until(lambda: sampling_all.rails_w() == {"VDD_IN": 8.0, "GPU": 8.0})
    gpu.fault = "unbound"
    whole.value = 9_000_000
    until(lambda: sampling_all.rails_w() == {"VDD_IN": 9.0})
    sampling_all.stop()


def test_a_value_that_is_repeated_is_new_once_a_second(machine: Machine, sampler: Sampler) -> None:
    begin_ns = sampler.now()
    until(lambda: time.monotonic_ns() - begin_ns > 300_000_000)
    assert sampler.since(begin_ns)[0].new_values <= 1
    machine.rails[0].rising = 1
    begin_ns = sampler.now()
    until(lambda: len(sampler.between(begin_ns, time.monotonic_ns())) > 12)
    samples = sampler.between(begin_ns, time.monotonic_ns())
    assert all(sample.is_new for sample in samples[1:])


def test_a_window_takes_power_above_idle_from_a_sample_at_its_begin_to_one_at_its_end(
    machine: Machine, sampler: Sampler
) -> None:
    machine.rails[0].rising = 1
    meter = Meter(sampler, 3.0)
    window, begin_ns = meter.begin(), time.monotonic_ns()
    until(lambda: time.monotonic_ns() - begin_ns > 300_000_000)
    least_mj = 5.0 * (time.monotonic_ns() - begin_ns) * 1e-6
    reading = meter.since(window)
    assert reading.energy_mj is not None
    assert least_mj <= reading.energy_mj <= 5.001 * (time.monotonic_ns() - begin_ns + 10_000_000) * 1e-6


def test_of_a_rail_that_counts_the_difference_is_the_energy(machine: Machine) -> None:
    counter = Rail("package-0", counts=True)
    counter.rising = 1000
    machine.rails = [counter]
    made = Sampler(Power(rate_hz=100))
    until(made.watts)
    begin_ns = made.now()
    until(lambda: len(made.between(begin_ns, time.monotonic_ns())) > 20)
    samples = made.between(begin_ns, made.now())
    assert made.since(begin_ns)[0].energy_j >= (len(samples) - 1) * 1e-3 - 1e-9
    assert samples[-1].counted_j - samples[0].counted_j == pytest.approx((len(samples) - 1) * 1e-3)
    made.stop()


def test_rails_that_fail_are_looked_for_again_and_the_time_between_has_no_energy(
    machine: Machine, sampler: Sampler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="jetsel.power")
    meter = Meter(sampler, 3.0)
    begin_ns = meter.begin()
    before = machine.rails[0]
    before.fault = "VDD_IN: Input/output error"
    until(lambda: sampler.reason == before.fault)
    assert sampler.watts() is None
    assert meter.since(begin_ns).reason == before.fault
    machine.rails = [Rail()]
    until(lambda: sampler.reason is None)
    assert before.is_closed
    assert machine.looks >= 2
    until(lambda: sampler.since(begin_ns)[0].new_values > 1)
    whole = sampler.since(begin_ns)[0]
    assert 0 < whole.known_s < whole.length_s


def test_fewer_failures_than_its_patience_are_only_a_gap(machine: Machine, sampler: Sampler) -> None:
    rail = machine.rails[0]
    reads = iter(["busy"] * (PATIENCE - 1))
    rail._read = lambda: (_ for _ in ()).throw(RailError(busy)) if (busy := next(reads, None)) else 8_000_000  # type: ignore[method-assign]
    until(lambda: next(reads, None) is None)
    until(sampler.watts)
    assert (sampler.reason, machine.looks) == (None, 1)


def test_a_machine_without_sensors_says_so_once_and_is_looked_at_again(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="jetsel.power")
    machine.reason = "no power sensor"
    made = Sampler(Power())
    assert made.ready(60.0)
    assert (made.reason, made.watts(), made.achieved_hz()) == ("no power sensor", None, None)
    until(lambda: machine.looks > 3)
    machine.reason = None
    until(made.watts)
    made.stop()
    assert caplog.messages.count("power is not measured: no power sensor") == 1
