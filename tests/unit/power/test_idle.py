"""Idle power: measured on known samples, refused where the board was not at rest, kept whole on disk."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.power.idle import Idle, file_name, load, save
from jetsel.power.idling import measure
from jetsel.power.place import Place
from jetsel.power.samples import Samples

HERE = Place("jetson-tx2", "0 MAXN", None)
RAILS = ("VDD_IN",)


class Machine:
    """A board whose power is a function of time and of whether it is sampled fast, and the sampler beside it."""

    total_of = RAILS
    reason: str | None = None

    def __init__(self, noise_w: float = 0.05, drift_w_per_min: float = 0.0, cost_w: float = 0.0) -> None:
        self.noise_w, self.drift_w_per_min, self.cost_w = noise_w, drift_w_per_min, cost_w
        self.draw = np.random.default_rng(3)
        self.opened = 0
        self.now_ns = 0
        self.began_ns = time.monotonic_ns()
        self.changes: list[tuple[int, bool]] = [(0, False)]
        self.waited_s = 0.0

    def open(self) -> None:
        self.opened += 1

    def shut(self) -> None:
        self.opened -= 1

    def wait(self, until_ns: int, limit_s: float) -> bool:
        return True

    def latest(self) -> tuple[int, float] | None:
        return None

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        fast = self.opened > 0 or self.was_fast
        step_ns = 1_000_000 if fast else 20_000_000
        times_ns = np.arange(begin_ns - step_ns // 2, end_ns + step_ns, step_ns)
        minutes = (times_ns - self.began_ns) / 6e10
        power_w = 3.0 + self.drift_w_per_min * minutes + (self.cost_w if fast else 0.0)
        return Samples(times_ns, power_w + self.draw.normal(0, self.noise_w, len(times_ns)), None, step_ns * 1e-9)

    was_fast = False
    slow_hz = 50.0


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jetsel.power.idling.SETTLE_S", 0.0)
    monkeypatch.setattr("jetsel.power.idling.BEGIN_S", 0.0)


def run(machine: Machine, seconds: float = 3.0) -> Idle:
    """Measure; the machine remembers the rate of the time that its samples are asked for after it."""

    def wait(length_s: float) -> None:
        machine.was_fast = machine.opened > 0
        time.sleep(length_s)

    return measure(machine, seconds, HERE, lambda: None, wait)


def test_mean_and_interval_of_a_quiet_board() -> None:
    idle = run(Machine())
    assert abs(idle.mean_w - 3.0) <= 1.5 * idle.half_width_w
    assert 0 < idle.half_width_w < 0.01  # 1,500 samples of 0.05 W
    assert idle.sampler_w is None
    assert (idle.rails, idle.board, idle.power_mode) == (RAILS, "jetson-tx2", "0 MAXN")


def test_what_sampling_costs_is_found_and_is_part_of_the_idle_power() -> None:
    idle = run(Machine(cost_w=0.2))
    assert idle.mean_w == pytest.approx(3.2, abs=0.01)
    assert idle.sampler_w == pytest.approx(0.2, abs=idle.sampler_half_width_w)


class Hasty(Machine):
    """Looks for a period in its first slow times, and is fast for that."""

    def __init__(self, hasty: int) -> None:
        super().__init__(cost_w=0.2)
        self.hasty = hasty

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        asked, self.was_fast = self.was_fast, self.was_fast or self.hasty > 0
        self.hasty -= not asked
        found = super().samples(begin_ns, end_ns)
        self.was_fast = asked
        return found


def test_a_time_in_which_the_sampler_was_fast_by_itself_is_repeated() -> None:
    idle = run(Hasty(3))
    assert idle.sampler_w == pytest.approx(0.2, abs=0.03)


def test_a_sampler_that_never_slows_down_is_refused() -> None:
    with pytest.raises(CalibrationError, match=r"the sampler took [0-9]+ samples a second in place of 50"):
        run(Hasty(99))


def test_a_slow_drift_is_told() -> None:
    idle = run(Machine(noise_w=0.001, drift_w_per_min=0.5))
    assert idle.drift_w_per_min == pytest.approx(0.5, abs=0.02)


def test_a_board_that_drifts_is_refused() -> None:
    with pytest.raises(CalibrationError, match=r"drifted by \+1\d W/min .* `jetsel power calibrate` again"):
        run(Machine(drift_w_per_min=12.0))


def test_a_busy_board_is_refused_for_the_reason_given() -> None:
    machine = Machine()
    with pytest.raises(CalibrationError, match=r"the GPU is at 80 %: leave the machine alone and run"):
        measure(machine, 3.0, HERE, lambda: "the GPU is at 80 %")
    assert machine.opened == 0


def test_a_sampler_without_samples_is_refused_for_its_reason() -> None:
    machine = Machine()
    machine.reason = "no rail makes the total"
    with pytest.raises(CalibrationError, match="no rail makes the total"):
        run(machine, 0.1)


def test_too_short_a_measurement_is_refused() -> None:
    with pytest.raises(CalibrationError, match="are too few: measure for longer"):
        run(Machine(), 0.3)


IDLE = Idle(
    mean_w=3.1,
    half_width_w=0.02,
    drift_w_per_min=0.001,
    sampler_w=None,
    sampler_half_width_w=0.03,
    samples=30_000,
    seconds=60.0,
    rails=RAILS,
    board="jetson-tx2",
    power_mode="0 MAXN",
    measured_at="2026-11-21T19:31:00+00:00",
)


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    path = save(IDLE, tmp_path / "power")
    assert load(tmp_path / "power", "jetson-tx2", "0 MAXN", RAILS) == IDLE
    assert [each.name for each in path.parent.iterdir()] == ["idle-=jetson-tx2-=0_MAXN.json"]


def test_each_board_and_power_mode_has_its_own() -> None:
    keys = [("a", "b"), ("a-=b", None), ("a", None), (None, None), ("unknown", "unknown"), ("a/b", "0 c"), ("a", "0_c")]
    names = {file_name(*key) for key in keys}
    assert len(names) == len(keys)
    assert not any("/" in name for name in names)


def test_saving_again_replaces_it(tmp_path: Path) -> None:
    save(IDLE, tmp_path)
    save(msgspec.structs.replace(IDLE, mean_w=3.3), tmp_path)
    assert load(tmp_path, "jetson-tx2", "0 MAXN", RAILS).mean_w == 3.3
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_written_leaves_the_old_one_and_says_what_to_do(tmp_path: Path) -> None:
    path = save(IDLE, tmp_path)
    path.unlink()
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(CalibrationError, match="set \\[power\\] calibration to a folder of yours"):
        save(IDLE, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("jetson-tx2", "1 MAXQ", RAILS), "was not measured on jetson-tx2 in power mode 1 MAXQ"),
        ((None, None, RAILS), "was not measured on an unknown board in an unknown power mode"),
        (("jetson-tx2", "0 MAXN", ("VDD_IN", "5V0_IO_SYS")), "was measured of VDD_IN, and the total is VDD_IN"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_repair(
    tmp_path: Path, key: tuple[str | None, str | None, tuple[str, ...]], reason: str
) -> None:
    save(IDLE, tmp_path)
    with pytest.raises(CalibrationError, match=reason) as refused:
        load(tmp_path, *key)
    assert "run `jetsel power calibrate`" in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b'{"mean_w": "many"}', None])
def test_a_damaged_file_is_refused_with_the_repair(tmp_path: Path, data: bytes | None) -> None:
    path = save(IDLE, tmp_path)
    path.write_bytes(path.read_bytes()[:-40] if data is None else data)
    with pytest.raises(CalibrationError, match=r"is no measurement of idle power .* run `jetsel power calibrate`"):
        load(tmp_path, "jetson-tx2", "0 MAXN", RAILS)


def test_a_file_larger_or_deeper_than_any_measurement_is_refused(tmp_path: Path) -> None:
    path = save(IDLE, tmp_path)
    path.write_bytes(b'{"facts": {"more": ' + b"[" * 100_000)
    with pytest.raises(CalibrationError, match="is no measurement of idle power"):
        load(tmp_path, "jetson-tx2", "0 MAXN", RAILS)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CalibrationError, match=r"larger than the \d+ bytes .* run `jetsel power calibrate`"):
        load(tmp_path, "jetson-tx2", "0 MAXN", RAILS)


def test_a_file_of_another_board_under_this_name_is_refused(tmp_path: Path) -> None:
    path = save(msgspec.structs.replace(IDLE, board="jetson-nano"), tmp_path)
    path.rename(tmp_path / file_name("jetson-tx2", "0 MAXN"))
    with pytest.raises(CalibrationError, match="was measured on jetson-nano in power mode 0 MAXN, not on jetson-tx2"):
        load(tmp_path, "jetson-tx2", "0 MAXN", RAILS)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    save(msgspec.structs.replace(IDLE, format=2), tmp_path)
    with pytest.raises(CalibrationError, match="has format 2, not 1"):
        load(tmp_path, "jetson-tx2", "0 MAXN", RAILS)


def test_other_accounts_may_read_it(tmp_path: Path) -> None:
    assert save(IDLE, tmp_path).stat().st_mode & 0o777 == 0o644
