"""`jetsel power` as processes, over boards' trees: one reading, a recording, idle power."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.data.sysfs_trees import tree
from tests.system.command import COMMAND, jetsel
from tests.waiting import until

TX2 = tree("jetson-tx2")


def test_what_every_rail_reads_now_is_shown_with_the_total() -> None:
    shown = jetsel("power", "--sysfs", TX2).stdout
    assert re.search(r"VDD_IN +3\.051", shown)
    assert re.search(r"total +3\.051", shown)
    assert "the total is VDD_IN" in shown


def test_a_recording_holds_every_rail_and_plays_back_the_same(tmp_path: Path) -> None:
    out = tmp_path / "trace.csv"
    done = jetsel("power", "record", out, "--seconds", "1", "--rate", "50", "--sysfs", TX2)
    assert done.returncode == 0, done.stderr
    rows = list(csv.reader(out.read_text().splitlines()[1:]))
    assert rows[0][0] == "t_s"
    assert rows[0].index("VDD_IN") == 4
    assert {row[4] for row in rows[1:]} == {"3.051000"}
    assert 2 <= len(rows) - 1 <= 50
    assert rows[1][0] == "0.000000"
    played = json.loads(jetsel("power", "--json", "--replay", out).stdout)
    assert (played["board"], played["total_w"], played["total_of"]) == ("jetson-tx2", 3.051, ["VDD_IN"])


@pytest.mark.slow
def test_a_recording_that_is_interrupted_keeps_what_it_has(tmp_path: Path) -> None:
    out = tmp_path / "trace.csv"
    process = subprocess.Popen(
        [*COMMAND, "power", "record", str(out), "--sysfs", str(TX2)], stdout=subprocess.PIPE, text=True
    )
    until(lambda: out.exists() and out.stat().st_size > 8192)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    rows = len(out.read_text().splitlines()) - 2
    assert f"{rows} rows" in said


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
