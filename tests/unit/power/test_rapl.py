"""RAPL: power from counters that move, wrap round and may be root's alone; packages, what is in them, and the total."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jetsel.power.sensors import rapl
from tests.unit.power.trees import ALWAYS_EIO, moving, replace, zone

MS = 1_000_000  # in ns


def test_power_is_the_energy_between_two_moves_over_the_time_between_them() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(10 * MS, 5_000)
    assert counter.power_uw is None
    counter.update(30 * MS, 305_000)  # 300 mJ in 20 ms are 15 W
    assert counter.power_uw == 15_000_000


def test_a_counter_that_did_not_move_repeats_its_power_and_loses_no_time() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(0, 0)
    counter.update(10 * MS, 100_000)
    counter.update(15 * MS, 100_000)
    assert counter.power_uw == 10_000_000
    counter.update(20 * MS, 150_000)  # 50 mJ since 10 ms, not since 15
    assert counter.power_uw == 5_000_000


def test_a_counter_wraps_round_at_its_range() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(0, 990_000)
    counter.update(10 * MS, 40_000)  # 10 mJ to the end and 40 after it
    assert counter.power_uw == 5_000_000
    counter.update(20 * MS, 60_000)
    assert counter.counted_uj == 70_000


def test_packages_and_their_memory_make_the_total_and_their_cores_do_not(tmp_path: Path) -> None:
    counters = [
        zone(tmp_path, "intel-rapl:0", "package-0"),
        zone(tmp_path, "intel-rapl:0:0", "core"),
        zone(tmp_path, "intel-rapl:0:1", "uncore"),
        zone(tmp_path, "intel-rapl:0:2", "dram"),
        zone(tmp_path, "intel-rapl:1", "package-1"),
        zone(tmp_path, "intel-rapl:1:0", "core"),
        zone(tmp_path, "intel-rapl:2", "psys"),
    ]
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")  # a second way to the same
    with moving(*counters):
        detected = rapl.detect(tmp_path)
        assert all(rail.read_uw() > 0 for rail in detected.rails)
        assert all(rail.measure().volts is None for rail in detected.rails[:1])
    assert [rail.name for rail in detected.rails] == [
        "package-0", "package-0/core", "package-0/uncore", "package-0/dram", "package-1", "package-1/core", "psys",
    ]  # fmt: skip
    assert detected.total == ("package-0", "package-0/dram", "package-1")
    assert detected.parts["package-0"] == ("package-0/core", "package-0/uncore")
    assert set(detected.parts["psys"]) == {rail.name for rail in detected.rails} - {"psys"}
    for rail in detected.rails:
        rail.close()


def test_a_counter_that_stands_still_is_not_zero_watts_but_dropped(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:1", "psys")
    with moving(package):
        detected = rapl.detect(tmp_path)
    assert [rail.name for rail in detected.rails] == ["package-0"]
    assert [(each.name, "does not move" in each.reason) for each in detected.dropped] == [("psys", True)]
    detected.rails[0].close()


def test_a_counter_of_root_s_alone_is_dropped_with_the_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(zone(tmp_path, "intel-rapl:0", "package-0"), ALWAYS_EIO)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (dropped,) = rapl.detect(tmp_path).dropped
    assert "sudo chmod a+r" in dropped.reason
