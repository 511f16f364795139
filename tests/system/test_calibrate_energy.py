"""The energies that a recording keeps, on a simulated TX2 that draws 5 W more than when it is idle.

So what a run truly takes is known: 5 W times its time.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jetsel.calibrate.record import EnergyPlan, loaded_models, record
from jetsel.config import Power
from jetsel.power.meter import open_meter
from tests.system.boards import IDLE_W, Board
from tests.unit.calibrate.record.making import QUICK, STARTER_FAMILY, family, found, put, rows

BUSY_W = 5.0
MODELS = "xs", "xl"
SHORT = EnergyPlan(photographs=1, window_s=1.0, least_windows=3, most_windows=5)


@contextmanager
def busy(board: Board) -> Iterator[None]:
    """Have the board show a new value every so often, of this mean, while `with` lasts."""
    over = threading.Event()

    def run() -> None:
        for watts in itertools.cycle((-0.1, 0.1)):
            board.power(IDLE_W + BUSY_W + watts)
            if over.wait(0.05):
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_energies_are_those_of_the_work(tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    board.calibrate()
    photos, recording = put(tmp_path / "photos", 6), tmp_path / "recording.sqlite"
    with (
        busy(board),
        loaded_models(family(*MODELS)) as engines,
        open_meter(Power(sysfs=str(board.sysfs)), board.root / "idle") as opened,
    ):
        options = dataclasses.replace(QUICK, opened=opened, energy=SHORT)
        assert record(recording, STARTER_FAMILY, engines, found(photos), options).unmetered is None
    metered = rows(recording, "SELECT mean_mj, mean_ms FROM energies")
    assert len(metered) == len(MODELS) + 1
    for mean_mj, mean_ms in metered:  # of models and of the features
        assert mean_mj == pytest.approx(BUSY_W * mean_ms, rel=0.1)
