"""The meter over samples that come in real time: what a window takes, and why it may take nothing that is known."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from jetsel.power.integration import NO_IDLE, IdlePower
from jetsel.power.meter import Meter, SensorMeter
from jetsel.power.samples import Samples
from tests.unit.power.playing import Playing

IDLE = SimpleNamespace(mean_w=3.0, half_width_w=0.0)


class Now(Playing):
    """8 W, sampled every millisecond up to now."""

    def __init__(self) -> None:
        super().__init__([0.0], [8.0])

    def wait(self, until_ns: int, limit_s: float) -> bool:
        while time.monotonic_ns() < until_ns + 1_000_000:
            time.sleep(1e-4)
        return True

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        times_ns = np.arange(begin_ns - 1_000_000, time.monotonic_ns(), 1_000_000)
        return Samples(times_ns, np.full(len(times_ns), 8.0), None, 0.001)


def meter(idle: IdlePower | None = IDLE) -> tuple[Meter, Playing]:
    source = Now()
    return SensorMeter(source, idle), source


def test_a_window_takes_the_power_above_idle_for_as_long_as_it_was_open() -> None:
    metering, _ = meter()
    before_ns = time.monotonic_ns()
    window = metering.window()
    opened_ns = time.monotonic_ns()
    time.sleep(0.05)
    closing_ns = time.monotonic_ns()
    reading = window.close()
    after_ns = time.monotonic_ns()
    assert reading.energy_mj is not None
    assert 5e-6 * (closing_ns - opened_ns) <= reading.energy_mj <= 5e-6 * (after_ns - before_ns)
    assert reading.samples >= 49


def test_the_sampler_is_fast_while_a_window_is_open() -> None:
    metering, source = meter()
    first, second = metering.window(), metering.window()
    assert source.opened == 2
    time.sleep(0.005)
    first.close()
    assert source.opened == 1
    second.close()
    assert source.opened == 0


def test_closing_again_returns_the_same_reading_and_closes_nothing() -> None:
    metering, source = meter()
    window = metering.window()
    time.sleep(0.005)
    reading = window.close()
    assert window.close() is reading
    assert source.opened == 0


def test_without_samples_the_reading_has_the_samplers_reason() -> None:
    metering, source = meter()
    source.reason = "VDD_IN cannot be read: Input/output error"
    assert metering.window().close() == (None, "VDD_IN cannot be read: Input/output error", 0, None)
    assert source.opened == 0


def test_without_idle_power_the_reading_names_the_command() -> None:
    metering, _ = meter(idle=None)
    assert metering.window().close().reason == NO_IDLE


def test_the_meter_is_named_after_its_rails() -> None:
    metering, source = meter()
    source.total_of = ("GPU", "CPU")
    assert metering.name == "GPU + CPU"


@pytest.mark.parametrize("seconds", [0.0, 0.0005])
def test_a_window_of_less_than_two_samples_is_unknown(seconds: float) -> None:
    metering, _ = meter()
    window = metering.window()
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        pass
    reading = window.close()
    if reading.samples < 2:  # else the machine stood still meanwhile
        assert reading.energy_mj is None
