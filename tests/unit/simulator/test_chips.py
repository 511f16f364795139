"""The registers of the simulated chips, against what the data sheets say, by hand."""

from __future__ import annotations

import pytest

from tests.simulator.chips import Channel, Energy, Ina238, Ina3221, Slot, Supply
from tests.simulator.sources import Constant, Square

MS = 1_000_000


def channel(energy_j: Energy, number: int = 0, *, config: int = 0x7127, sag_ohm: float = 0.0) -> Channel:
    """A supply of 5 V behind 10 mOhm."""
    chip = Ina3221(config)
    supply = Supply(energy_j, nominal_v=5.0, sag_ohm=sag_ohm, shunt_ohm=0.01)
    return Channel(supply, 0, chip.schedule, *chip.slots(number), chip.steps)


@pytest.mark.parametrize(
    ("config", "averages", "cycle_us"),
    [
        (0x7127, 1, 6_600),  # after power-on: three channels, 1.1 ms each for shunt and bus
        (0x7007, 1, 840),  # 140 us each
        (0x7C07, 512, 430_080),
        (0x7E07, 1024, 860_160),
        (0x71FF, 1, 49_464),  # 8.244 ms each
        (0x4127, 1, 2_200),  # channel 1 alone
        (0x5327, 4, 17_600),  # channels 1 and 3, four samples
    ],
)
def test_a_cycle_is_as_long_as_the_configuration_register_says(config: int, averages: int, cycle_us: int) -> None:
    schedule = Ina3221(config).schedule
    assert (schedule.averages, schedule.cycle_ns) == (averages, cycle_us * 1000)


def test_the_channels_that_are_enabled_are_converted_in_turn() -> None:
    chip = Ina3221(0x5127)  # channels 1 and 3
    assert chip.channels == (0, 2)
    assert chip.slots(2) == (Slot(2_200_000, 1_100_000), Slot(3_300_000, 1_100_000))


def test_as_linux_sets_it_up_an_ina238_has_a_value_every_50_ms() -> None:
    assert Ina238().schedule.cycle_ns == 3 * 1_052_000 * 16


def test_results_are_whole_steps() -> None:
    supply = channel(Constant(3.0).energy_j, sag_ohm=0.25)  # 4.85 V; 3 / 4.85 A through 10 mOhm is 6.186 mV
    assert supply.bus_code(10 * MS) == 606  # 606.25 steps of 8 mV
    assert supply.shunt_code(10 * MS) == 155  # 154.6 steps of 40 uV


def test_no_result_is_above_the_largest() -> None:
    assert channel(Constant(200.0).energy_j).shunt_code(10 * MS) == 4095  # 163.8 mV; 40 A would be 400 mV


def test_each_result_is_the_mean_over_its_own_window() -> None:
    square = Square(period_s=0.0022, duty=0.5, low_w=2.0, high_w=6.0)  # high while channel 1's shunt is converted
    supply = channel(square.energy_j, sag_ohm=0.5)  # 4.4 V at 6 W, 4.8 V at 2 W
    assert supply.shunt_code(10 * MS) == 341  # 6 / 4.4 A x 10 mOhm = 13.636 mV
    assert supply.bus_code(10 * MS) == 600  # 4.8 V: the bus is converted in the low half


def test_a_window_over_both_halves_is_their_mean() -> None:
    square = Square(period_s=0.0011, duty=0.5, low_w=1.0, high_w=6.0)  # one period in each conversion
    assert channel(square.energy_j).shunt_code(10 * MS) == 175  # 3.5 W: 0.7 A x 10 mOhm = 7 mV


def test_averaging_takes_the_mean_of_that_many_windows() -> None:
    # Four rounds of 0.84 ms. The power is high in the first round alone.
    square = Square(period_s=4 * 0.84e-3, duty=0.25, low_w=1.0, high_w=5.0)
    supply = channel(square.energy_j, config=0x7207)
    assert supply.shunt_code(10 * MS) == 100  # (5 + 1 + 1 + 1) / 4 = 2 W: 0.4 A through 10 mOhm is 4 mV


def test_a_result_changes_when_its_conversion_ends_and_not_before() -> None:
    ramp = lambda at_ns: (at_ns * 1e-9) ** 2 * 450  # noqa: E731 - 900 W more each second
    second = channel(ramp, 1)  # its shunt is converted from 2.2 ms to 3.3 ms of each 6.6 ms
    seen = [second.shunt_code(at_us * 1000) for at_us in range(6_600, 33_000, 100)]
    changes = [6_600 + 100 * at for at in range(1, len(seen)) if seen[at] != seen[at - 1]]
    assert changes == [9_900, 16_500, 23_100, 29_700]
    # From 8.8 ms to 9.9 ms the mean is 8.415 W: 1.683 A through 10 mOhm is 16.83 mV, 420.75 steps.
    assert second.shunt_code(10 * MS) == 421


def test_before_its_first_cycle_ends_a_chip_shows_the_one_before() -> None:
    assert channel(Constant(3.0).energy_j).bus_code(0) == 625
