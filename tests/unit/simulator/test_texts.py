"""What the files of the simulated drivers say, by hand."""

from __future__ import annotations

import pytest

from tests.simulator import texts
from tests.simulator.chips import Channel, Ina238, Ina3221, Supply
from tests.simulator.rapl import STEP_J, Counter
from tests.simulator.sources import Constant

NOW_NS = 10_000_000_000


def said(found: dict[str, texts.Text]) -> dict[str, int]:
    return {name: text(NOW_NS) for name, text in found.items()}


def three(watts: float, shunt_ohm: float, nominal_v: float) -> Channel:
    chip = Ina3221()
    supply = Supply(Constant(watts).energy_j, nominal_v, 0.0, shunt_ohm)
    return Channel(supply, 0, chip.schedule, *chip.slots(0), chip.steps)


def test_jetpack_4_says_whole_milliamperes_and_cuts_milliwatts_off() -> None:
    # 10 W of 19 V: 0.5263 A through 10 mOhm is 5.263 mV, 132 steps: 5,280 uV, 528 mA. 2,375 steps are 19,000 mV.
    assert said(texts.jetpack4(three(10.0, 0.010, 19.0))) == {"voltage": 19_000, "current": 528, "power": 10_032}
    # 3.32 V is 415 steps. 0.3012 A through 7 mOhm is 52.7 steps: 2,120 uV, 302.86 mA. 3,320 x 303 is 1,005.96 mW.
    assert said(texts.jetpack4(three(1.0, 0.007, 3.32))) == {"voltage": 3320, "current": 303, "power": 1005}


def test_hwmon_says_no_power_but_the_shunts_voltage() -> None:
    # 1 W of 5 V: 0.2 A through 5 mOhm is 1 mV, 25 steps.
    assert said(texts.hwmon(three(1.0, 0.005, 5.0))) == {"voltage": 5000, "current": 200, "shunt": 1000}


def test_the_sum_is_of_the_shunts() -> None:
    channels = [three(1.0, 0.005, 5.0), three(2.0, 0.005, 5.0)]
    assert said(texts.summed(channels)) == {"in7_input": 3000, "curr4_input": 600}


def test_the_ina238_multiplies_by_itself() -> None:
    # 24 W of 12 V: 2 A through 2 mOhm is 4 mV: 800 steps of 5 uV; the current register counts 200 (of 10 mA).
    # 3,840 steps of 3.125 mV. Power: 200 x 3,840 x 3.125 / 200 = 12,000 steps of 2 mW.
    chip = Ina238()
    supply = Supply(Constant(24.0).energy_j, 12.0, 0.0, 0.002)
    channel = Channel(supply, 0, chip.schedule, *chip.slots(), chip.steps)
    assert said(texts.ina238(channel)) == {"voltage": 12_000, "shunt": 4, "current": 2000, "power": 24_000_000}


def test_rapl_counts_whole_steps_once_a_millisecond_and_wraps_around() -> None:
    counter = Counter(Constant(10.0).energy_j, begin_ns=0, first_uj=999_000, range_uj=1_000_000)
    assert counter.microjoules(999_999) == 999_000  # nothing is written yet
    # 0.4 mJ, then 10 mJ: 163 steps of 61.035 uJ are 9,948 uJ.
    assert pytest.approx(61.035, abs=1e-3) == STEP_J * 1e6
    assert counter.microjoules(1_000_000) == (999_000 + 9_948) % 1_000_000
    assert counter.microjoules(1_999_999) == counter.microjoules(1_000_000)
