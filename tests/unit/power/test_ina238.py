"""INA238: the one rail of Thor's carrier board, in uW."""

from __future__ import annotations

import pytest

from jetsel.power.sensors import monitor
from jetsel.power.sensors.rail import Measured
from tests.data.sysfs_trees import tree


def test_power_is_the_driver_s_own_in_microwatts() -> None:
    (rail,) = monitor.detect(tree("jetson-agx-thor"), {}).rails
    assert (rail.name, rail.read_uw()) == ("VIN", 28_592_326)  # 19,087 mV x 1,498 mA
    assert rail.measure() == Measured(watts=28.592326, volts=19.087, amps=1.498)


def test_the_resolution_is_by_the_data_sheet_and_the_driver_s_calibration() -> None:
    (rail,) = monitor.detect(tree("jetson-agx-thor"), {}).rails
    # 20 uV over 10 mOhm are 2 mA, and a bit of voltage is 3.125 mV
    assert rail.resolution_w == pytest.approx(19.087 * 0.002 + 1.498 * 0.003125)
