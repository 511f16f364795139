"""`jetsel power` as processes, over boards' trees: one reading, a stream, a terminal, a recording, idle power."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.data.sysfs_trees import tree
from tests.system.command import COMMAND, jetsel
from tests.system.terminals import Terminal
from tests.unit.power.trees import copied
from tests.waiting import until

TX2 = tree("jetson-tx2")
VDD_IN = "in_power0_input"  # of 0-0041 on a TX2, in milliwatts


def test_json_goes_on_until_it_is_interrupted() -> None:
    command = [*COMMAND, "power", "--json", "--every-s", "0.05", "--sysfs", str(TX2)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        readings = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()
    assert {reading["total_w"] for reading in readings} == {3.051}


def test_in_a_terminal_every_rail_has_a_sparkline_that_follows_its_power(tmp_path: Path) -> None:
    sysfs = copied("jetson-tx2", tmp_path)
    (power_file,) = (
        file for file in sysfs.rglob(VDD_IN) if (file.parent / "rail_name_0").read_text().strip() == "VDD_IN"
    )
    terminal = Terminal([*COMMAND, "power", "--every-s", "0.05", "--sysfs", str(sysfs)], 160, 40, {})
    try:
        terminal.until(lambda _: "▁".encode() in terminal.output)
        power_file.write_text("9000\n")
        terminal.until(lambda _: "█".encode() in terminal.output)
        terminal.type(b"\x03")
        assert terminal.end() == 130
    finally:
        terminal.close()
    assert b"9.000" in terminal.output
    assert b"the total is VDD_IN" in terminal.output


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
    played = json.loads(jetsel("power", "--once", "--json", "--replay", out).stdout)
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
