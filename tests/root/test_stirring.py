"""A quiet board's update period shows once a core works and rests at random."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jetsel.config import Power
from jetsel.power.stirring import stirred
from tests.simulator import Simulator, following, unavailable

TREE = Path(__file__).parents[1] / "data/sysfs/jetson-tx2"

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@pytest.mark.parametrize(("chip", "period_ms"), [(0x7C07, 430.0), (0x7127, 6.6)])
def test_the_period_of_a_board_that_draws_what_its_cores_do_is_found(
    tmp_path: Path, chip: int, period_ms: float
) -> None:
    with Simulator(TREE, tmp_path / "live", power=following(3.0, 5.0), chip=chip) as simulator:
        simulator.follow(os.getpid())
        assert stirred(Power(sysfs=str(simulator.root))) == pytest.approx(period_ms, rel=0.05)
