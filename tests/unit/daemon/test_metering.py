"""The power budget by hand; and what is measured above idle power, while that is known and the board is as it was."""

import logging
import math
from pathlib import Path

import pytest

from jetsel.artefact.calibration import MeasuredEnergy
from jetsel.base.config import Config, Power
from jetsel.daemon.deciding import policy_for
from jetsel.daemon.metering import SHORTLY_S, ConditionsWatch, Metering, reason_texts
from jetsel.daemon.pace import PowerBudget
from jetsel.policies.requirements import Requirements
from jetsel.power.machine import BoardFacts, Machine, comparable_facts
from jetsel.wire import Classify
from tests.system.boards import IDLE_W, Board
from tests.unit.daemon.families import calibrate, put_family, served_cats
from tests.unit.power.machines import GPU, THERMAL, put, tx2
from tests.waiting import until


def steady(limit_w: float | None, power_w: float, rate_hz: int, each_mj: float | None) -> PowerBudget:
    """Return a budget after five minutes of so many requests a second."""
    budget = PowerBudget(limit_w)
    for second in range(300):
        for _ in range(rate_hz if second else 0):
            budget.spend(each_mj)
        budget.update_means(float(second), power_w)
    return budget


def test_the_mean_begins_with_the_first_reading_and_follows_with_a_time_constant_of_ten_seconds() -> None:
    budget = PowerBudget(100.0)
    assert budget.mean_w is None
    budget.update_means(0.0, 3.0)
    assert budget.mean_w == 3.0
    budget.update_means(10.0, 8.0)
    assert budget.mean_w == pytest.approx(3 + 5 * (1 - math.exp(-1)))  # 6.16 W
    budget.update_means(10.0 + 10 * math.log(2), 0.0)
    assert budget.mean_w == pytest.approx((3 + 5 * (1 - math.exp(-1))) / 2)


def test_what_the_board_takes_without_requests_is_kept_out_and_the_rest_is_shared() -> None:
    # 8 W, of which 50 requests of 60 mJ take 3 W: without them 5 W, so of 6 W each may have 20 mJ.
    budget = steady(6.0, 8.0, 50, 60.0)
    assert budget.allowed_mj == pytest.approx(20.0, rel=0.01)
    assert budget.is_exceeded
    # At 20 mJ each the board takes 6 W: what is left for each stays the same.
    assert steady(6.0, 6.0, 50, 20.0).allowed_mj == pytest.approx(20.0, rel=0.01)
    assert steady(4.0, 8.0, 50, 60.0).allowed_mj < 0, "the board alone takes more"


def test_what_is_not_known_limits_nothing_and_says_so() -> None:
    for budget, said in (
        (PowerBudget(5.0), "no power has been measured"),
        (steady(5.0, 8.0, 50, None), "no energies"),
        (steady(5.0, 8.0, 0, None), "limits nothing: the mean power is above"),
    ):
        assert said in budget.status.state
        assert (budget.allowed_mj, budget.status.allowed_mj) == (math.inf, None)
    assert (steady(None, 8.0, 50, 60.0).allowed_mj, steady(None, 8.0, 50, 60.0).status) == (math.inf, None)


def test_unknown_power_changes_nothing_and_a_reload_changes_the_limit_at_once() -> None:
    budget = steady(6.0, 8.0, 50, 60.0)
    for second in range(300, 400):
        budget.update_means(float(second), None)
    assert (budget.mean_w, budget.allowed_mj) == (pytest.approx(8.0), pytest.approx(20.0, rel=0.01))
    budget.set_limit(7.0)
    assert budget.allowed_mj == pytest.approx(40.0, rel=0.01)
    budget.set_limit(None)
    assert budget.allowed_mj == math.inf


def test_only_while_idle_power_holds_is_anything_measured_above_it(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.power(8.0)
    metering = Metering(Power(sysfs=str(board.sysfs), calibration=str(tmp_path / "idle"), rate_hz=100))
    sampler = metering.sampler
    assert sampler is not None

    def look(number: int) -> float:
        """Look again after some more samples; return for how long power above idle is known by then."""
        begin_ns = sampler.now()
        until(lambda: len(sampler.between(begin_ns, sampler.now())) > 10)
        metering.read_board(float(number))
        return metering.above_idle.known_s

    try:
        until(sampler.watts)
        assert look(1) == 0.0, "no idle power is known"
        assert "jetsel power calibrate" in (metering.idle_reason or "")
        board.calibrate()
        known_s = look(3)
        assert known_s > 0.0
        assert metering.above_idle.energy_j == pytest.approx((8.0 - IDLE_W) * known_s, rel=1e-3)
        board.mode(1)
        assert look(4) == look(5) == known_s
        board.mode(0)
        assert look(6) > known_s
    finally:
        metering.stop()


def test_requirements_count_on_no_energy_that_does_not_hold(tmp_path: Path) -> None:
    board = Board(tmp_path)
    folder = put_family(tmp_path / "cats", "cats", "s", "m", "l")
    calibrate(
        folder,
        "cats",
        machine=comparable_facts(board.facts()),
        energy=MeasuredEnergy(mean_mj={"s": 1.0, "m": 2.0, "l": 3.0}),
    )
    family, request = served_cats(folder), Classify(1, "a", most_energy_mj=2.0)
    metering = Metering(Power(sysfs=str(board.sysfs), sensor="none"))

    def deciding() -> Requirements:
        metering.read_board(1.0)
        policy = metering.in_conditions(family, policy_for(family, request))
        assert isinstance(policy, Requirements)
        return policy

    try:
        metering.set_families({"cats": family}, Config())
        assert deciding().no_energy is None
        board.mode(1)
        assert "power mode changed" in (deciding().no_energy or "")
        assert all(point.energy_mj is None for point in deciding().front.points)
    finally:
        metering.stop()


IDLE = "idle power"


class WatchedBoard:
    """A TX2 that is looked at once a second."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = Machine(tx2(root))
        self.conditions = ConditionsWatch()
        self.now_s = 0.0
        self.calibrated: dict[str, BoardFacts] = {IDLE: self.machine.facts()}

    def look(self, seconds: int = 1) -> list[str]:
        for _ in range(seconds):
            self.now_s += 1
            self.conditions.compare(self.now_s, self.machine.facts(), self.calibrated)
        return reason_texts(self.conditions.reasons)


@pytest.fixture
def board(tmp_path: Path) -> WatchedBoard:
    return WatchedBoard(tmp_path)


def test_another_power_mode_is_told_of_what_was_measured_before_and_warned_of_once(
    board: WatchedBoard, caplog: pytest.LogCaptureFixture
) -> None:
    board.look()
    put(board.root, {"var/lib/nvpmodel/status": "pmode:0000 fmode:quiet\n"})
    told = "idle power: power mode changed from '3 MAXP_CORE_ARM' to '0 MAXN'"
    assert board.look(5) == [told]
    assert caplog.messages == [f"outside the conditions of the calibration: {told}"]
    assert board.conditions.reasons_for(IDLE) == [told]
    assert board.conditions.reasons_for("calibration of dogs") == []


def test_back_in_its_conditions_is_told_once_after_a_while(
    board: WatchedBoard, caplog: pytest.LogCaptureFixture
) -> None:
    put(board.root, {f"{GPU}/max_freq": "853000000\n"})
    (told,) = board.look()
    assert "changed from 1122 to 853 MHz" in told
    put(board.root, {f"{GPU}/max_freq": "1122000000\n"})
    assert board.look() == []
    assert len(caplog.messages) == 1
    board.look(int(SHORTLY_S))
    assert caplog.messages[1:] == [f"again within the conditions of the calibration: {IDLE}"]
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_heat_that_comes_and_goes_at_the_trip_point_is_warned_of_once(
    board: WatchedBoard, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(30):
        put(board.root, {f"{THERMAL}/thermal_zone0/temp": f"{96_000 if second % 2 else 95_000}\n"})
        board.look()
    assert len(caplog.messages) == 1
    assert board.conditions.reasons_for("calibration of cats") == reason_texts(board.conditions.reasons), (
        "heat concerns everything"
    )


def test_an_alarm_is_told_for_some_seconds_after_it_went_off(board: WatchedBoard) -> None:
    board.look(3)
    put(board.root, {"sys/class/hwmon/hwmon2/oc1_irq_cnt": "6\n"})
    (told,) = board.look()
    assert told.startswith("the board: OC1")
    assert told.endswith("was raised 2 more times")
    assert board.look(int(SHORTLY_S) - 2) == [told]
    assert board.look(3) == []
