"""What makes figures not hold any more is told in words; what is unknown or the same is no reason."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jetsel.power.machine import BoardFacts, Machine, differences, throttled
from tests.unit.power.machines import CPUS, GPU, THERMAL, put, tx2

MODE = "var/lib/nvpmodel/status"


def after(root: Path, files: dict[str, str]) -> tuple[BoardFacts, BoardFacts]:
    """The facts of a TX2 before and after these files were written; those before came through JSON."""
    machine = Machine(tx2(root))
    before = msgspec.json.decode(msgspec.json.encode(machine.facts()), type=BoardFacts)
    put(root, files)
    return before, machine.facts()


def test_a_board_that_stays_as_it_was_gives_no_reason(tmp_path: Path) -> None:
    cooler = {f"{THERMAL}/thermal_zone0/temp": "30000", f"{CPUS}/cpufreq/policy0/scaling_cur_freq": "2035200"}
    before, now = after(tmp_path, cooler | {f"{GPU}/device/load": "0", f"{GPU}/cur_freq": "114750000"})
    assert differences(before, now) == throttled(before, now) == []


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({MODE: "pmode:0000"}, "power mode changed from '3 MAXP_CORE_ARM' to '0 MAXN'"),
        ({f"{CPUS}/online": "0"}, "running CPU cores changed from '0,3-5' to '0'"),
        (
            {f"{CPUS}/cpufreq/policy0/scaling_max_freq": "1400000"},
            "highest allowed clock of cpu0 changed from 2035 to 1400 MHz",
        ),
        ({f"{GPU}/max_freq": "854250000"}, "highest allowed clock of 17000000.gp10b changed from 1122 to 854 MHz"),
        (
            {f"{CPUS}/cpufreq/policy0/scaling_min_freq": "2035200", f"{GPU}/min_freq": "1122000000"},
            "jetson_clocks changed from False to True",
        ),
    ],
)
def test_a_board_that_is_set_otherwise_is_a_reason(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    before, now = after(tmp_path, files)
    assert differences(before, now) == [reason]
    assert throttled(before, now) == []


def test_heat_and_alarms_that_were_counted_since_are_throttling(tmp_path: Path) -> None:
    alarms = {"sys/class/hwmon/hwmon2/oc1_irq_cnt": "7"}
    before, now = after(tmp_path, alarms | {f"{THERMAL}/cooling_device0/cur_state": "1"})
    assert throttled(before, now) == [
        "Linux slows bcpu-throttle-alert down to cool it: step 1 of 1",
        "OC1, an over-current or low-voltage alarm, was raised 3 more times",
    ]
    assert differences(before, now) == []


def test_what_is_not_known_any_more_is_no_reason(tmp_path: Path) -> None:
    assert differences(*after(tmp_path, {MODE: "", f"{CPUS}/online": "", f"{GPU}/max_freq": ""})) == []
