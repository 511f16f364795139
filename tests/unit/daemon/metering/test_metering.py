"""What is measured above idle power: while it is known, and the board is as it was when it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.config import Power
from jetsel.daemon.metering.metering import Metering
from tests.system.boards import IDLE_W, Board
from tests.waiting import until


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
        metering.look(float(number))
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
