"""The meter that a configuration asks for: real sensors' files and a real sampler, or the reason why there is none."""

from __future__ import annotations

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
        assert (found.here.meter, found.unknown) == (None, found.here.reason)
        assert "no power sensor" in (found.unknown or "")


@pytest.mark.parametrize("mode", [None, "3 MAXP_CORE_ARM"])
def test_without_idle_power_of_the_mode_of_now_the_repair_is_to_measure_it(tmp_path: Path, mode: str | None) -> None:
    if mode is not None:
        save(msgspec.structs.replace(IDLE, power_mode=mode), tmp_path)
    with metering(Power(sysfs=str(TREE), calibration=str(tmp_path)), None, ("xs",)) as found:
        assert found.here.meter is None
        assert "idle power was not measured on jetson-tx2" in (found.unknown or "")
        assert "run `jetsel power calibrate`" in (found.unknown or "")


def test_with_both_the_total_less_idle_power_is_metered(tmp_path: Path) -> None:
    save(IDLE, tmp_path)
    with metering(Power(sysfs=str(TREE), calibration=str(tmp_path)), None, ("xs",)) as found:
        assert (found.here.reason, found.unknown, found.here.idle_half_w) == (None, None, 0.05)
        assert found.here.meter is not None
        assert found.here.meter.name == "VDD_IN"
        assert "new values" in (found.here.meter.since(found.here.meter.begin()).reason or "")


def test_energies_of_a_board_s_recording_are_taken_from_there(tmp_path: Path) -> None:
    board = tmp_path / "board.db"
    with Store(board, family("xs", "s")):
        pass
    with metering(Power(), board, ("xs", "s")) as found:
        assert (found.here.meter, found.here.reason) == (None, f"energies were taken from {board}")
        assert found.unknown == f"{board}: not every model is metered: record until it has ended"
