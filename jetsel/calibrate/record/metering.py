"""What each model and the features take in energy: windows of repeated runs, until their mean is known well enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from jetsel.calibrate.record.bench import Bench, EnergyPlan, half_width, is_settled
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.durations import NOISY_SHARE
from jetsel.calibrate.record.workers import Stop, progress
from jetsel.power.integration import FEWEST
from jetsel.power.meter import Meter

FEATURES = None  # what stands in place of a model's name: extracting the whole table of features
SPARE = 1.5  # times the new values that a window needs are aimed at


@dataclass
class Series:
    """The windows of repeated runs of one thing so far.

    energies_mj: of one run above idle power, durations_ms: of one run, both a window's mean. failures: windows in a row
    that told no energy, the last of them for this reason.
    """

    energies_mj: list[float] = field(default_factory=list)
    durations_ms: list[float] = field(default_factory=list)
    runs: int = 0
    failures: int = 0
    reason: str | None = None

    def add(self, energy_mj: float, duration_ms: float, runs: int) -> None:
        """Take in a window of this number of runs."""
        self.energies_mj.append(energy_mj / runs)
        self.durations_ms.append(duration_ms / runs)
        self.runs += runs
        self.failures = 0

    def fail(self, reason: str | None) -> None:
        """Take in a window that told nothing, by the sensor's fault."""
        self.failures, self.reason = self.failures + 1, reason

    @property
    def unknown(self) -> str | None:
        """Why there is no energy, None if there is."""
        if self.failures:
            return self.reason
        return None if len(self.energies_mj) >= 2 else "at least two windows are required"


def meter_models(bench: Bench, meter: Meter) -> bool:
    """Meter every model, and the features, on the plan's photographs; True unless stopped.

    What was metered before is left out, and what could not be is tried again. Each is written as soon as it is settled.
    A sensor that fails ends it: then energies are unknown, for its reason.
    """
    plan = bench.options.energy
    bench.store.connection.execute("DELETE FROM energies WHERE mean_mj IS NULL")
    chosen = [
        (photograph, path, missing)
        for photograph, path in bench.photographs(plan.photographs)
        if (missing := _missing(bench.store, photograph))
    ]
    reach = progress("metering", sum(len(missing) for *_, missing in chosen), bench.tell)
    done = 0
    windows = Windows(meter, plan, NOISY_SHARE)
    for photograph, shown, missing, on_gpu in bench.shown(chosen):
        runs: dict[str | None, Callable[[], object]] = {
            name: shown.extract if name is FEATURES else partial(bench.run, name, shown.photograph) for name in missing
        }
        for name, series in windows.by_turns(runs, bench.stop):
            _write(bench, photograph, name, series)
            bench.look(on_gpu)
            done += 1
            reach(done)
            if series.unknown is not None:
                return True
        if bench.stop.is_set():
            return False
    return True


class Windows:
    """Opens windows on one meter, and finds out how long they must be."""

    def __init__(
        self, meter: Meter, plan: EnergyPlan, half_width: float, now: Callable[[], float] = time.perf_counter
    ) -> None:
        """half_width: of the 95 % interval, of the mean, at which something is settled."""
        self._meter = meter
        self._plan = plan
        self._half_width = half_width
        self._now = now
        self._window_s = plan.window_s

    def by_turns(
        self, runs: Mapping[str | None, Callable[[], object]], stop: Stop
    ) -> Iterator[tuple[str | None, Series]]:
        """Yield each as it settles or has had its most windows; one window each by turns, so that all see one machine.

        What is not settled when it is stopped is not yielded.
        """
        waiting = {name: Series() for name in runs}
        while waiting:
            for name, series in list(waiting.items()):
                if stop.is_set():
                    return
                self._one(runs[name], series)
                if self._is_done(series):
                    yield name, waiting.pop(name)

    def _is_done(self, series: Series) -> bool:
        plan, energies_mj = self._plan, series.energies_mj
        if series.failures >= plan.most_failures or len(energies_mj) >= plan.most_windows:
            return True
        return is_settled(energies_mj, plan.least_windows, self._half_width)

    def _one(self, run_once: Callable[[], object], series: Series) -> None:
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
            return
        can_grow = reading.samples < FEWEST and self._window_s < self._plan.longest_window_s
        if can_grow:
            fitting = self._window_s * SPARE * FEWEST / max(1, reading.samples)
            self._window_s = min(self._plan.longest_window_s, fitting)
        if not can_grow or reading.samples == 0:
            series.fail(reading.reason)


def _missing(store: Store, photograph: int) -> list[str | None]:
    """The models that are not metered on this photograph, and FEATURES if they are not."""
    metered = store.connection.execute(
        "SELECT 1 FROM energies WHERE photograph = ? AND model IS NULL", (photograph,)
    ).fetchone()
    return [*store.missing("energies", photograph), *([] if metered else [FEATURES])]


def _write(bench: Bench, photograph: int, name: str | None, series: Series) -> None:
    """Write what one run takes: a mean over windows, and two parts of half the 95 % interval of that mean.

    scatter_mj is what the windows' scatter gives; idle_mj the error of the idle power, the same in all windows.
    """
    energies_mj, reason = series.energies_mj, series.unknown
    mean_mj, scatter_mj = (fmean(energies_mj), half_width(energies_mj)) if reason is None else (None, 0.0)
    mean_ms = fmean(series.durations_ms or [0.0])
    idle_mj = bench.options.opened.idle_half_w * mean_ms
    bench.store.connection.execute(
        "INSERT INTO energies VALUES (?, (SELECT id FROM wanted WHERE name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(photograph, name, bench.conditions, mean_mj, scatter_mj, 0.0, idle_mj, mean_ms),  # 0: see energies.py
            *(len(energies_mj), series.runs, reason),
        ),
    )
