"""Idle power: measured on known samples, refused where the board was not at rest, kept whole on disk."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.power.idle import IdlePower, file_name, load_idle, measure, save_idle
from jetsel.power.integration import Sample
from jetsel.power.machine import BoardFacts, Fact, Known
from tests.unit.power.machines import IDLE

UNKNOWN = Fact(None, "not asked")
FACTS = BoardFacts(
    board=UNKNOWN,
    l4t=UNKNOWN,
    power_mode=Fact("0 MAXN"),
    jetson_clocks=Known(None),
    cores=UNKNOWN,
    cpu_clocks=Known(None),
    gpu_clocks=Known(None),
)
RAILS = ("VDD_IN",)
STEP_NS = 50_000_000


class Machine:
    """A board of 3 W whose time passes where it is waited for, sampled twenty times a second."""

    total_of = RAILS
    reason: str | None = None
    stale_after_s = 0.25
    noise_w = 0.05
    drift_w_per_min = 0.0

    def __init__(self) -> None:
        self.draw = np.random.default_rng(3)
        self.now_ns = 0

    def wait(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def now(self) -> int:
        return self.now_ns

    def between(self, begin_ns: int, end_ns: int) -> list[Sample]:
        times_ns = [*range(begin_ns, end_ns, STEP_NS), end_ns]
        return [Sample(at, self.power_w(at / 6e10), is_new=self.noise_w > 0) for at in times_ns]

    def power_w(self, minute: float) -> float:
        return 3.0 + self.drift_w_per_min * minute + self.draw.normal(0, self.noise_w)


def run(machine: Machine, seconds: float = 60.0, step_w: float = 0.0) -> IdlePower:
    return measure(machine, seconds, "jetson-tx2", FACTS, lambda: None, step_w, machine.wait)


def test_mean_and_interval_of_a_quiet_board() -> None:
    idle = run(Machine())
    assert abs(idle.mean_w - 3.0) <= 1.5 * idle.half_width_w
    assert 0 < idle.half_width_w < 0.01  # 1,200 samples of 0.05 W
    assert idle.samples == 1200
    assert (idle.rails, idle.board, idle.power_mode, idle.seconds) == (RAILS, "jetson-tx2", "0 MAXN", 60.0)


def test_a_step_of_the_sensor_does_not_average_out() -> None:
    assert run(Machine(), step_w=0.152).half_width_w == pytest.approx(1.96 * 0.152 / 12**0.5, rel=0.01)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"drift_w_per_min": 1.0}, r"drifted by \+1\d? W/min .* `jetsel power calibrate` again"),
        ({"reason": "no rail makes the total"}, "no rail makes the total"),
        ({"stale_after_s": 0.04}, "some power readings failed"),
        ({"noise_w": 0.0}, r"0 new values .* measure for longer"),
    ],
)
def test_what_is_no_quiet_board_read_all_the_time_is_refused(fault: dict[str, Any], words: str) -> None:
    machine = Machine()
    vars(machine).update(fault)
    with pytest.raises(CalibrationError, match=words):
        run(machine)


def test_a_busy_board_is_refused_for_the_reason_given() -> None:
    machine = Machine()
    said = iter([None, None, "the GPU is at 80 %"])
    with pytest.raises(CalibrationError, match=r"the GPU is at 80 %: run `jetsel power calibrate` again"):
        measure(machine, 60.0, "jetson-tx2", FACTS, lambda: next(said), wait=machine.wait)


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    path = save_idle(IDLE, tmp_path / "power")
    assert load_idle(tmp_path / "power", "jetson-tx2", "0 MAXN", RAILS) == IDLE
    assert [each.name for each in path.parent.iterdir()] == ["idle-=jetson-tx2-=0_MAXN.json"]


def test_each_board_and_power_mode_has_its_own() -> None:
    keys = [("a", "b"), ("a-=b", None), ("a", None), (None, None), ("unknown", "unknown"), ("a/b", "0 c"), ("a", "0_c")]
    names = {file_name(*key) for key in keys}
    assert len(names) == len(keys)
    assert not any("/" in name for name in names)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("jetson-tx2", "1 MAXQ", RAILS), "was not measured on jetson-tx2 in power mode 1 MAXQ"),
        ((None, None, RAILS), "was not measured on an unknown board in an unknown power mode"),
        (("jetson-tx2", "0 MAXN", ("VDD_IN", "5V0_IO_SYS")), "was measured on VDD_IN, but the total is now VDD_IN"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_repair(
    tmp_path: Path, key: tuple[str | None, str | None, tuple[str, ...]], reason: str
) -> None:
    save_idle(IDLE, tmp_path)
    with pytest.raises(CalibrationError, match=reason) as refused:
        load_idle(tmp_path, *key)
    assert "run `jetsel power calibrate`" in str(refused.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not a measurement of idle power"),
        (msgspec.json.encode(IDLE)[:-40], "is not a measurement of idle power"),
        (msgspec.json.encode(msgspec.structs.replace(IDLE, format=1)), "has format 1, but this jetsel reads format 2"),
    ],
    ids=["empty", "cut", "another format"],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_repair(tmp_path: Path, data: bytes, said: str) -> None:
    save_idle(IDLE, tmp_path).write_bytes(data)
    with pytest.raises(CalibrationError, match=rf"{said}.* run `jetsel power calibrate`"):
        load_idle(tmp_path, "jetson-tx2", "0 MAXN", RAILS)
