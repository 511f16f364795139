"""What each model and the features take in energy: windows of repeated runs, until their mean is known well enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jetsel import image
from jetsel.calibrate.record.noise import Watch
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.repeats import Repeats
from jetsel.calibrate.record.store import Store
from jetsel.calibrate.record.timing import Bench, mark, run, some_photographs, warm_up, whole_file
from jetsel.features import extract
from jetsel.power.integration import FEWEST
from jetsel.power.meter import Meter

FEATURES = None  # what stands in place of a model's name: extracting the whole table of features
SPARE = 1.5  # times the new values that a window needs are aimed at


@dataclass(frozen=True)
class EnergyPlan:
    """How energy is metered: each model on each photograph, until the mean of its windows is known to 5 %.

    Taylor et al., section 4.2, did so for every input. Here a few photographs are enough: what a network takes does not
    depend on what it sees, and making its input of a photograph hardly does. A run is too short for a sensor: a window
    is runs one after the other for at least so long, and longer where the sensor has too few new values in that time.
    most_windows: where power is too restless to settle; most_failures: windows in a row without an energy, until the
    sensor is given up.
    """

    photographs: int = 2
    window_s: float = 2.0
    longest_window_s: float = 30.0
    least_windows: int = 5
    most_windows: int = 10
    most_failures: int = 3


@dataclass(frozen=True)
class Metered:
    """What one run of something takes above idle power, a mean over windows; None for the reason.

    Two parts of half the 95 % interval of that mean: scatter_mj, what the windows' scatter gives; idle_mj, the error of
    the idle power, which is the same in all windows of all models. mean_ms: of one run.
    """

    mean_mj: float | None
    scatter_mj: float
    idle_mj: float
    mean_ms: float
    windows: int
    runs: int
    reason: str | None


def meter_models(
    store: Store,
    bench: Bench,
    meter: Meter,
    plan: EnergyPlan,
    conditions: int,
    watch: Watch,
    tell: Tell | None,
    stop: Stop,
) -> bool:
    """Meter every model, and the features, on the plan's photographs; True unless stopped.

    What was metered before is left out, and what could not be is tried again. Each is written as soon as it is settled.
    A sensor that fails ends it: then energies are unknown, for its reason.
    """
    store.connection.execute("DELETE FROM energies WHERE mean_mj IS NULL")
    chosen = [
        (photograph, path, missing)
        for photograph, path in some_photographs(store, plan.photographs, bench.plan.seed)
        if (missing := _missing(store, photograph))
    ]
    reporter = Reporter("metering", sum(len(missing) for *_, missing in chosen), tell)
    done, on_gpu = 0, None  # unknown until all models are warm
    windows = Windows(meter, plan, bench.plan.half_width, bench.idle_half_w)
    for photograph, path, missing in chosen:
        data = whole_file(Path(path), bench)
        if data is None:  # a file that is gone by now is metered by a later run
            continue
        decoded = image.decode(data, bench.limits, bench.family.decode_px)
        on_gpu = warm_up(bench, decoded) if on_gpu is None else on_gpu
        runs = {name: _run_of(bench, name, decoded) for name in missing}
        for name, metered in windows.by_turns(runs, stop):
            _write(store, photograph, name, conditions, metered)
            watch.look(gpu=on_gpu)
            mark(store, conditions, watch, bench)
            store.tick()
            done += 1
            reporter.reach(done)
            if metered.reason is not None:
                return True
        if stop.is_set():
            return False
    return True


class Windows:
    """Opens windows on one meter, and finds out how long they must be."""

    def __init__(
        self,
        meter: Meter,
        plan: EnergyPlan,
        half_width: float,
        idle_half_w: float,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        """half_width: of the 95 % interval, of the mean, at which something is settled; idle_half_w: of idle power."""
        self._meter = meter
        self._plan = plan
        self._half_width = half_width
        self._idle_half_w = idle_half_w
        self._now = now
        self._window_s = plan.window_s

    def by_turns(
        self, runs: Mapping[str | None, Callable[[], object]], stop: Stop
    ) -> Iterator[tuple[str | None, Metered]]:
        """Yield each as it settles or has had its most windows; one window each by turns, so that all see one machine.

        What is not settled when it is stopped is not yielded.
        """
        waiting = {name: _Series() for name in runs}
        while waiting:
            for name in list(waiting):
                if stop.is_set():
                    return
                series = waiting[name]
                self._one(runs[name], series)
                if self._is_done(series):
                    yield name, waiting.pop(name).found(self._idle_half_w)

    def _is_done(self, series: _Series) -> bool:
        plan, energies = self._plan, series.energies
        if series.failures >= plan.most_failures or energies.count >= plan.most_windows:
            return True
        return energies.is_settled(plan.least_windows, self._half_width)

    def _one(self, run_once: Callable[[], object], series: _Series) -> None:
        """Meter one window. One in which the sensor had too few new values is not counted, and the next is longer."""
        began, count = self._now(), 0
        begin_ns = self._meter.begin()
        while count == 0 or self._now() - began < self._window_s:
            run_once()
            count += 1
        duration_ms = (self._now() - began) * 1e3
        reading = self._meter.since(begin_ns)
        if reading.energy_mj is not None:
            series.add(reading.energy_mj, duration_ms, count)
        elif reading.samples < FEWEST and self._window_s < self._plan.longest_window_s:
            fitting = self._window_s * SPARE * FEWEST / max(1, reading.samples)
            self._window_s = min(self._plan.longest_window_s, fitting)
            series.fail(reading.reason if reading.samples == 0 else None)
        else:
            series.fail(reading.reason)


class _Series:
    """The windows of one thing so far. failures: in a row, the last of them for this reason."""

    def __init__(self) -> None:
        self.energies = Repeats()
        self.durations = Repeats()
        self.runs = 0
        self.failures = 0
        self.reason: str | None = None

    def fail(self, reason: str | None) -> None:
        """Take in a window that tells nothing; None where that is no fault of the sensor's."""
        if reason is not None:
            self.failures, self.reason = self.failures + 1, reason

    def add(self, energy_mj: float, duration_ms: float, runs: int) -> None:
        """Take in a window of so many runs."""
        self.energies.add(energy_mj / runs)
        self.durations.add(duration_ms / runs)
        self.runs += runs
        self.failures = 0

    def found(self, idle_half_w: float) -> Metered:
        """What it came to; unknown where the last windows failed."""
        windows, runs, mean_ms = self.energies.count, self.runs, self.durations.mean
        if self.failures or windows < 2:
            return Metered(None, 0.0, 0.0, mean_ms, windows, runs, self.reason or "two windows are the least")
        scatter_mj = self.energies.half_width
        return Metered(self.energies.mean, scatter_mj, idle_half_w * mean_ms, mean_ms, windows, runs, None)


def _missing(store: Store, photograph: int) -> list[str | None]:
    """The models that are not metered on this photograph, and FEATURES where they are not."""
    execute = store.connection.execute
    found: list[str | None] = [
        name
        for (name,) in execute(
            "SELECT name FROM wanted WHERE id NOT IN"
            " (SELECT model FROM energies WHERE photograph = ? AND model NOT NULL) ORDER BY name",
            (photograph,),
        )
    ]
    metered = execute("SELECT 1 FROM energies WHERE photograph = ? AND model IS NULL", (photograph,)).fetchone()
    return found if metered else [*found, FEATURES]


def _run_of(bench: Bench, name: str | None, decoded: image.Photograph) -> Callable[[], object]:
    return partial(extract, decoded.bgr) if name is None else partial(run, bench, name, decoded)


def _write(store: Store, photograph: int, name: str | None, conditions: int, metered: Metered) -> None:
    store.connection.execute(
        "INSERT INTO energies VALUES (?, (SELECT id FROM wanted WHERE name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(photograph, name, conditions),
            *(metered.mean_mj, metered.scatter_mj, 0.0, metered.idle_mj, metered.mean_ms),  # 0: see energies.py
            *(metered.windows, metered.runs, metered.reason),
        ),
    )
