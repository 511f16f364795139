"""`jetsel power` as processes, over boards' trees: one reading, a recording, idle power."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.data.sysfs_trees import tree
from tests.system.command import jetsel

TX2 = tree("jetson-tx2")


def test_what_every_rail_reads_now_is_shown_with_the_total() -> None:
    shown = jetsel("power", "--sysfs", TX2).stdout
    assert re.search(r"VDD_IN +3\.051", shown)
    assert re.search(r"total +3\.051", shown)
    assert "the total is VDD_IN" in shown


@pytest.mark.slow
def test_idle_power_is_measured_kept_and_found_by_doctor(tmp_path: Path) -> None:
    state = {"STATE_DIRECTORY": str(tmp_path)}
    done = jetsel("power", "calibrate", "--seconds", "15", "--with-load", "--json", "--sysfs", TX2, env=state)
    assert done.returncode == 0, done.stderr
    idle = json.loads(done.stdout)
    assert idle["mean_w"] == pytest.approx(3.051)
    assert idle["rails"] == ["VDD_IN"]
    assert idle["board"] == "jetson-tx2"
    # A TX2's VDD_IN is told in steps of 8 mA at 19 V, and a constant power is off by up to half of one.
    assert idle["half_width_w"] == pytest.approx(1.96 * 0.153856 / 12**0.5, rel=0.01)
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[power]\nsysfs = "{TX2}"\n')
    found = jetsel("doctor", "--json", "--config", config, env=state)
    said = {(finding["section"], finding["name"]): finding for finding in json.loads(found.stdout)}
    assert said["board", "idle power"]["state"] == "ok"
    assert said["board", "idle power"]["said"].startswith("3.05 W")
