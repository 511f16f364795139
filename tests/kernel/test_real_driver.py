"""Linux's own drivers over chips whose registers we set: what their files say, and what jetsel reads there."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.debian import MissingError, kernel
from tests.kernel.machine import run

RECORDED = Path(__file__).parent  # the files of each chip's driver in /sys, as this test once saw them


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of each chip."""
    machine = os.uname().machine
    if machine != "x86_64":
        pytest.skip(f"the guest runs this machine's Python, so it must be a PC, not {machine}")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("needs QEMU: apt-get install --no-install-recommends qemu-system-x86")
    try:
        found = kernel()
    except MissingError as error:
        pytest.skip(str(error))
    return run(found, tmp_path_factory.mktemp("machine"))


@pytest.mark.parametrize("chip", ["ina3221", "ina238"])
def test_the_files_are_those_of_the_recorded_tree(seen: dict[str, Any], chip: str) -> None:
    assert seen[chip]["listing"] == (RECORDED / f"{chip}.txt").read_text("utf-8").splitlines()


def test_jetsel_reads_the_watts_that_the_registers_of_an_ina3221_hold(seen: dict[str, Any]) -> None:
    power = seen["ina3221"]["power"]
    assert power["rails"] == [
        {"name": "VDD_IN", "watts": 15.1936, "volts": 18.992, "amps": 0.8},
        {"name": "VDD_CPU", "watts": 0.62, "volts": 5.0, "amps": 0.124},
        {"name": "VDD_SOC", "watts": 15.72704, "volts": 3.304, "amps": 4.76},
    ]
    assert (power["total_w"], power["total_of"], power["dropped"]) == (15.1936, ["VDD_IN"], [])


def test_a_rail_that_stays_open_follows_the_registers_below_zero_too(seen: dict[str, Any]) -> None:
    assert seen["ina3221"]["reread"] == [15_193_600, -15_193_600]


def test_a_channel_that_is_switched_off_is_dropped_and_the_rest_serve(seen: dict[str, Any]) -> None:
    power = seen["ina3221"]["switched_off"]
    assert [rail["name"] for rail in power["rails"]] == ["VDD_IN", "VDD_SOC"]
    assert [dropped["name"] for dropped in power["dropped"]] == ["VDD_CPU"]


def test_jetsel_reads_the_power_of_an_ina238(seen: dict[str, Any]) -> None:
    power = seen["ina238"]["power"]
    assert power["rails"] == [{"name": "VIN", "watts": 40.0, "volts": 20.0, "amps": 2.0}]
    assert (power["total_w"], power["total_of"], power["dropped"]) == (40.0, ["VIN"], [])


def test_a_v4l2_camera_is_watched(seen: dict[str, Any]) -> None:
    camera = seen["camera"]
    (source,) = (event for event in camera["events"] if event["event"] == "source")
    assert (source["source"], source["state"]) == ("/dev/video0", "back")
    assert camera["events"][-1]["event"] == "summary"
    assert camera["events"][-1]["frames_read"] > 0
    assert camera["status"] == 0
