"""A snapshot is the JSON that `jetsel power --json` prints, to the letter."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jetsel.config import Power
from jetsel.power import finding, snapshot
from tests.data.sysfs_trees import tree
from tests.unit.power.trees import ALWAYS_EIO, copied, replace


def test_it_has_exactly_the_published_keys() -> None:
    found = finding.find(Power(sysfs=str(tree("jetson-nano"))))
    taken = snapshot.take(found)
    found.close()
    assert msgspec.to_builtins(taken) == {
        "board": "jetson-nano",
        "rails": [
            {"name": "POM_5V_IN", "watts": 2.15, "volts": 5.072, "amps": 0.424},
            {"name": "POM_5V_GPU", "watts": 0.04, "volts": 5.064, "amps": 0.008},
            {"name": "POM_5V_CPU", "watts": 0.486, "volts": 5.064, "amps": 0.096},
        ],
        "total_w": 2.15,
        "total_of": ["POM_5V_IN"],
        "dropped": [],
    }


def test_a_rail_that_fails_now_is_dropped_and_takes_the_total_with_it(tmp_path: Path) -> None:
    sysfs = copied("jetson-nano", tmp_path)
    found = finding.find(Power(sysfs=str(sysfs)))
    file = sysfs / "devices/7000c400.i2c/i2c-6/6-0040/iio:device3/in_power0_input"
    found.close()  # so that the file is opened again
    replace(file, ALWAYS_EIO)
    taken = snapshot.take(found)
    found.close()
    assert [rail.name for rail in taken.rails] == ["POM_5V_GPU", "POM_5V_CPU"]
    assert (taken.total_w, taken.total_of) == (None, [])
    assert [each.name for each in taken.dropped] == ["POM_5V_IN", "total"]
    assert "Input/output error" in taken.dropped[0].reason
    assert "POM_5V_IN" in taken.dropped[1].reason
