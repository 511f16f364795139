"""Out of its conditions: real files of a TX2 that change, in words, with one warning for each."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from jetsel.daemon.metering.metering import SHORTLY_S, ConditionsWatch, words
from jetsel.power.machine import BoardFacts, Machine
from tests.unit.power.machines import GPU, THERMAL, put, tx2

IDLE = "idle power"


class Board:
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
            self.conditions.look(self.now_s, self.machine.facts(), self.calibrated)
        return words(self.conditions.reasons)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


def test_another_power_mode_is_told_of_what_was_measured_before_and_warned_of_once(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    board.look()
    put(board.root, {"var/lib/nvpmodel/status": "pmode:0000 fmode:quiet\n"})
    told = "idle power: power mode changed from '3 MAXP_CORE_ARM' to '0 MAXN'"
    assert board.look(5) == [told]
    assert caplog.messages == [f"outside the conditions of the calibration: {told}"]
    assert board.conditions.of(IDLE) == [told]
    assert board.conditions.of("calibration of dogs") == []


def test_back_in_its_conditions_is_told_once_after_a_while(board: Board, caplog: pytest.LogCaptureFixture) -> None:
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
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(30):
        put(board.root, {f"{THERMAL}/thermal_zone0/temp": f"{96_000 if second % 2 else 95_000}\n"})
        board.look()
    assert len(caplog.messages) == 1
    assert board.conditions.of("calibration of cats") == words(board.conditions.reasons), "heat concerns everything"


def test_an_alarm_is_told_for_some_seconds_after_it_went_off(board: Board) -> None:
    board.look(3)
    put(board.root, {"sys/class/hwmon/hwmon2/oc1_irq_cnt": "6\n"})
    (told,) = board.look()
    assert told.startswith("the board: OC1")
    assert told.endswith("was raised 2 more times")
    assert board.look(int(SHORTLY_S) - 2) == [told]
    assert board.look(3) == []
