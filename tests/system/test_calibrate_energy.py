"""The energies that a recording keeps, on a simulated TX2 that draws 3 W, and 5 W more for each core that works.

So what a model truly takes is known: 5 W times its processor time, which the test measures by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from functools import partial
from pathlib import Path
from types import TracebackType

import pytest

from jetsel import image
from jetsel.calibrate.record import EnergyPlan, load, loaded_models, record
from jetsel.config import Power
from jetsel.power.meter import open_meter
from tests.processes import family_of
from tests.system.boards import Board
from tests.unit.calibrate.record.making import QUICK, STARTER_FAMILY, family, found, put

IDLE_W, BUSY_W = 3.0, 5.0
_CPUCLOCK_SCHED = 2  # linux/posix-timers.h
MODELS = "xs", "xl"
SHORT = EnergyPlan(photographs=1, window_s=1.0, least_windows=3, most_windows=5)


class Work:
    """The energy of a process's work, its children's too: so many watts at rest, and more for each core they keep busy.

    clock_getcpuclockid(3): Linux numbers the CPU clock of process PID as (~PID << 3) | 2; it counts all its threads.
    """

    def __init__(self, idle_w: float, busy_w: float) -> None:
        self._idle_w, self._busy_w = idle_w, busy_w
        self._root: int | None = None
        self._each_s: dict[int, float] = {}  # by process, as it was last read: it stays when the process ends
        self._before_s = 0.0

    def follow(self, pid: int) -> None:
        """Count the work of this process from now on."""
        self._root = pid
        self._before_s = self._worked_s()

    def joules(self) -> float:
        """Return the joules until now, from some beginning."""
        return self._idle_w * time.monotonic() + self._busy_w * (self._worked_s() - self._before_s)

    def _worked_s(self) -> float:
        for pid in family_of(self._root) if self._root is not None else ():
            with contextlib.suppress(OSError):  # it has ended
                self._each_s[pid] = time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
        return sum(self._each_s.values())


class Simulated:
    """Has a board show a new value every so often, each the mean power since the one before, while `with` lasts."""

    def __init__(self, board: Board, work: Work, period_s: float = 0.05) -> None:
        self._board, self._work, self._period_s = board, work, period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Simulated:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        joules, at_s = self._work.joules(), time.monotonic()
        while not self._over.wait(self._period_s):
            now_j, now_s = self._work.joules(), time.monotonic()
            self._board.power((now_j - joules) / (now_s - at_s))
            joules, at_s = now_j, now_s


def law_mj(photo: Path) -> dict[str, float]:
    """What one run of each model takes by its processor time, its input made anew."""
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    decoded = image.decode(photo.read_bytes(), limits, STARTER_FAMILY.decode_px)
    specs = {model.manifest.name: model.manifest.input for model in STARTER_FAMILY.models}
    found = {}
    with loaded_models(STARTER_FAMILY) as engines:
        for name in MODELS:
            run = partial(lambda name: engines[name].infer(image.model_input(decoded, specs[name])), name)
            run()
            began_s, count = time.process_time(), 0
            while time.process_time() - began_s < 0.5:
                run()
                count += 1
            found[name] = BUSY_W * (time.process_time() - began_s) * 1e3 / count
    return found


@pytest.mark.slow
def test_energies_are_those_of_the_work(tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    board.calibrate(IDLE_W)
    photos, recording = put(tmp_path / "photos", 6), tmp_path / "recording.sqlite"
    work = Work(IDLE_W, BUSY_W)
    work.follow(os.getpid())
    with (
        Simulated(board, work),
        loaded_models(family(*MODELS)) as engines,
        open_meter(Power(sysfs=str(board.sysfs)), board.root / "idle") as opened,
    ):
        options = dataclasses.replace(QUICK, meter=opened.meter, unmetered=opened.reason, energy=SHORT)
        assert record(recording, STARTER_FAMILY, engines, found(photos), options).unmetered is None
    energies = load(recording, STARTER_FAMILY, MODELS).times.energies
    assert energies is not None
    by_law = law_mj(next(photos.rglob("*.jpg")))
    for name in MODELS:  # processors that share a core slow each other down: what is compared is the size
        assert energies.mean_mj[name] == pytest.approx(by_law[name], rel=0.3), name
        assert energies.half_width_mj[name] < 0.2 * energies.mean_mj[name]
    assert 0 < energies.chooser_w <= 1.3 * BUSY_W, "extracting features keeps at most one core busy"
