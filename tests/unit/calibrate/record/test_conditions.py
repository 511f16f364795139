"""What the files of a board say of it; what they do not say is unknown with a reason."""

from pathlib import Path

import cv2
import msgspec
import numpy as np

from jetsel.calibrate.record.conditions import Conditions, Fact, NoiseMonitor, gather
from tests.unit.power.machines import CPUS, GPU, THERMAL, TX2, put

PER_S = 100  # ticks, as on every Linux that we know


BOARD = TX2 | {
    f"{GPU}/max_freq": "1300500000\n",
    "sys/class/devfreq/13e10000.host1x/cur_freq": "1\n",
    "sys/class/devfreq/13e10000.host1x/max_freq": "2\n",
}


def test_a_board_says_what_it_is(tmp_path: Path) -> None:
    found = gather(put(tmp_path, BOARD) / "sys")
    assert found.board == Fact("quill")
    assert found.power_mode == Fact("3 MAXP_CORE_ARM")
    assert found.cpu_clock == Fact("up to 2035 MHz, schedutil")
    assert found.gpu_clock == Fact("1122 of 1300 MHz")
    assert found.versions["numpy"] == Fact(np.__version__)
    assert str(found.versions["opencv-python-headless"]).startswith(cv2.__version__)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Conditions) == found
    assert gather(tmp_path / "none" / "sys").described()["GPU clock"] == "unknown (no devfreq GPU)"


def stat(busy: int, idle: int, steal: int) -> dict[str, str]:
    half = f"0 0 0 {idle // 2} 0 0 0 0 0 0"
    return {"proc/stat": f"cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 {half}\ncpu1 {half}\nintr 5\n"}


def watched(root: Path, busy: int, steal: int, own_s: float) -> str | None:
    now, own = 0.0, 0.0
    put(root, stat(1000, 5000, 10))
    watch = NoiseMonitor(root / "sys", lambda: now, lambda: own)
    now, own = 10.0, own_s
    put(root, stat(1000 + busy, 5000, 10 + steal))
    watch.look()
    return watch.reason()


def test_others_work_and_stolen_time_are_noise_and_our_own_is_not(tmp_path: Path) -> None:
    assert watched(tmp_path, busy=10 * PER_S + 50, steal=10, own_s=10.0) is None  # 0.05 cores of others of 2
    assert watched(tmp_path, busy=14 * PER_S, steal=0, own_s=10.0) == "other processes took 0.40 of 2 cores"
    assert watched(tmp_path, busy=10 * PER_S, steal=80, own_s=10.0) == "the hypervisor took 0.08 of 2 cores"


def test_low_clocks_and_heat_are_noise(tmp_path: Path) -> None:
    zone = f"{THERMAL}/thermal_zone1"
    heat = {
        f"{zone}/type": "GPU-therm\n",
        f"{zone}/temp": "86500\n",
        f"{zone}/trip_point_0_type": "active\n",
        f"{zone}/trip_point_0_temp": "50000\n",
        f"{zone}/trip_point_1_type": "passive\n",
        f"{zone}/trip_point_1_temp": "86000\n",
    }
    watch = NoiseMonitor(put(tmp_path, BOARD | heat) / "sys")
    watch.look(gpu=True)
    put(tmp_path, {f"{CPUS}/cpufreq/policy0/scaling_cur_freq": "2035200\n", f"{zone}/temp": "40000\n"})
    watch.look(gpu=True)
    for part in ("CPU ran at 17 %", "GPU ran at 86 %", "GPU-therm is at 86 °C"):
        assert part in (watch.reason() or "")
    watch = NoiseMonitor(tmp_path / "sys")
    watch.look(gpu=False)  # an idle GPU is slow
    assert watch.reason() is None
