"""The meter that a configuration asks for: real sensors' files and a real sampler, or the reason why there is none."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from jetsel.calibrate.record.store import Store
from jetsel.cli.metering import metering
from jetsel.config import Power
from jetsel.power.idle import Idle, save
from tests.unit.calibrate.record.making import family

TREE = Path(__file__).parents[2] / "data/sysfs/jetson-tx2"
IDLE = Idle(
    mean_w=1.0,
    half_width_w=0.05,
    drift_w_per_min=0.0,
    sampler_w=None,
    sampler_half_width_w=0.01,
    samples=1000,
    seconds=60.0,
    rails=("VDD_IN",),
    board="jetson-tx2",
    power_mode=None,
    measured_at="2026-11-21T12:00:00+00:00",
)


def test_without_a_sensor_there_is_no_meter_and_the_reason_is_said(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    with metering(Power(sysfs=f"{tmp_path}/sys"), None, ("xs",)) as found:
        assert found.meter is None
        assert found.unknown == found.unmetered
        assert "no power sensor" in (found.unmetered or "")


def test_without_idle_power_the_repair_is_to_measure_it(tmp_path: Path) -> None:
    with metering(Power(sysfs=str(TREE), calibration=str(tmp_path)), None, ("xs",)) as found:
        assert found.meter is None
        assert "idle power was not measured on jetson-tx2" in (found.unknown or "")
        assert "run `jetsel power calibrate`" in (found.unknown or "")


def test_with_both_the_sampler_s_power_less_idle_power_is_metered(tmp_path: Path) -> None:
    save(IDLE, tmp_path)
    with metering(Power(sysfs=str(TREE), calibration=str(tmp_path)), None, ("xs",)) as found:
        assert (found.unmetered, found.unknown, found.idle_half_w) == (None, None, 0.05)
        assert found.meter is not None
        assert found.meter.name == "VDD_IN"
        window = found.meter.window()
        began_s = time.monotonic()
        time.sleep(0.3)
        reading = window.close()
        length_s = time.monotonic() - began_s
    assert reading.energy_mj is not None, reading.reason
    # The files say 3,051 mW for ever: 2.051 W above idle, for at least 300 ms and no longer than was waited.
    assert 0.999 * 2051 * 0.3 <= reading.energy_mj <= 1.001 * 2051 * length_s


def test_energies_of_a_board_s_recording_are_taken_from_there(tmp_path: Path) -> None:
    board = tmp_path / "board.db"
    with Store(board, family("xs", "s")):
        pass
    with metering(Power(), board, ("xs", "s")) as found:
        assert found.meter is None
        assert found.unmetered == f"energies were taken from {board}"
        assert found.unknown == f"{board}: not every model is metered: record until it has ended"


@pytest.mark.parametrize("mode", ["0 MAXN", None])
def test_idle_power_of_another_mode_does_not_count(tmp_path: Path, mode: str | None) -> None:
    save(msgspec.structs.replace(IDLE, power_mode="3 MAXP_CORE_ARM"), tmp_path)
    with metering(Power(sysfs=str(TREE), calibration=str(tmp_path)), None, ("xs",)) as found:
        assert "idle power was not measured" in (found.unknown or "")
