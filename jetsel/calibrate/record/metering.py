"""Meter the energy of each model and of the features, in windows of repeated runs, until the mean is known to 5 %."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from jetsel.calibrate.record.bench import Bench, EnergyPlan
from jetsel.calibrate.record.conditions import NOISY_SHARE
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.workers import StopEvent
from jetsel.power.integration import FEWEST_VALUES
from jetsel.power.meter import Meter

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % quantiles of Student's t distribution for 1 to 9 degrees of freedom; the last one serves for more."""


def half_width(values: Sequence[float]) -> float:
    """Return half the 95 % confidence interval of the mean (Student 1908); infinite for fewer than two values."""
    count = len(values)
    if count < 2:
        return math.inf
    return T_975[min(count - 1, len(T_975)) - 1] * statistics.stdev(values) / math.sqrt(count)


FEATURES = None  # stands for a model's name when the extraction of all features is metered
SPARE_VALUES = 1.5  # a longer window aims at this multiple of the sensor values that it needs


@dataclass
class WindowSeries:
    """The metered windows so far of one model or of the features. A window repeats runs for seconds."""

    energies_mj: list[float] = field(default_factory=list)  # of one run above idle power, a mean for each window
    durations_ms: list[float] = field(default_factory=list)  # of one run, a mean for each window
    runs: int = 0  # in all windows
    failures: int = 0  # windows in a row without an energy
    reason: str | None = None  # why the last window failed

    def add(self, energy_mj: float, duration_ms: float, runs: int) -> None:
        """Add a window. energy_mj, duration_ms: of all its `runs` together."""
        self.energies_mj.append(energy_mj / runs)
        self.durations_ms.append(duration_ms / runs)
        self.runs += runs
        self.failures = 0

    def fail(self, reason: str | None) -> None:
        """Count a window for which the sensor gave no energy, with the reason."""
        self.failures, self.reason = self.failures + 1, reason

    @property
    def unknown_reason(self) -> str | None:
        """Why the energy is unknown, None if it is known."""
        if self.failures:
            return self.reason
        return None if len(self.energies_mj) >= 2 else "at least two windows are required"


def meter_models(bench: Bench, meter: Meter) -> bool:
    """Meter every model and the features on a few images, as the EnergyPlan says; return False if stopped.

    Energies that are recorded already are skipped, failed ones are tried again. Each is written as soon as its mean is
    known to 5 %. If the sensor fails, metering ends and the recording keeps the reason.
    """
    plan = bench.options.energy
    bench.store.connection.execute("DELETE FROM energies WHERE mean_mj IS NULL")
    images = bench.sample_images(plan.photographs)
    chosen = [(*image, missing) for image in images if (missing := _models_to_meter(bench.store, image[0]))]
    done, total = 0, sum(len(missing) for *_, missing in chosen)
    bench.observer.report_progress("metering", 0, total)
    windows = WindowMeter(meter, plan)
    for image_id, prepared, missing, on_gpu in bench.read_images(chosen):
        runs: dict[str | None, Callable[[], object]] = {
            name: partial(bench.extract, prepared) if name is FEATURES else partial(bench.run, name, prepared)
            for name in missing
        }
        for name, series in windows.by_turns(runs, bench.observer.stop):
            _write_energy(bench, image_id, name, series)
            bench.check_machine(on_gpu)
            done += 1
            bench.observer.report_progress("metering", done, total)
            if series.unknown_reason is not None:
                return True
        if bench.observer.stop.is_set():
            return False
    return True


class WindowMeter:
    """Meters windows of repeated runs, and lengthens them if the sensor gives too few values in one."""

    def __init__(self, meter: Meter, plan: EnergyPlan, now: Callable[[], float] = time.perf_counter) -> None:
        self._meter, self._plan, self._now = meter, plan, now
        self._window_s = plan.window_s

    def by_turns(
        self, runs: Mapping[str | None, Callable[[], object]], stop: StopEvent
    ) -> Iterator[tuple[str | None, WindowSeries]]:
        """Yield each name with its windows when its mean is known to 5 % or the limit of windows is reached.

        Each gets one window per turn, so that all meet the same conditions. A stop loses the names not yet yielded.
        """
        waiting = {name: WindowSeries() for name in runs}
        while waiting:
            for name, series in list(waiting.items()):
                if stop.is_set():
                    return
                self._meter_window(runs[name], series)
                if self._is_done(series):
                    yield name, waiting.pop(name)

    def _is_done(self, series: WindowSeries) -> bool:  # known to NOISY_SHARE, or at a limit of the plan
        plan, energies_mj = self._plan, series.energies_mj
        if series.failures >= plan.most_failures or len(energies_mj) >= plan.most_windows:
            return True
        is_enough = len(energies_mj) >= plan.least_windows
        return is_enough and half_width(energies_mj) < NOISY_SHARE * statistics.fmean(energies_mj)

    def _meter_window(self, run_once: Callable[[], object], series: WindowSeries) -> None:
        """Meter one window into `series`. If the sensor gives too few new values, drop it and lengthen the next."""
        began_s, runs = self._now(), 0
        begin_ns = self._meter.begin()
        while runs == 0 or self._now() - began_s < self._window_s:
            run_once()
            runs += 1
        duration_ms = (self._now() - began_s) * 1e3
        reading = self._meter.since(begin_ns)
        if reading.energy_mj is not None:
            series.add(reading.energy_mj, duration_ms, runs)
            return
        can_grow = reading.samples < FEWEST_VALUES and self._window_s < self._plan.longest_window_s
        if can_grow:
            needed_s = self._window_s * SPARE_VALUES * FEWEST_VALUES / max(1, reading.samples)
            self._window_s = min(self._plan.longest_window_s, needed_s)
        if not can_grow or reading.samples == 0:
            series.fail(reading.reason)


def _models_to_meter(store: Store, photograph: int) -> list[str | None]:
    """Return the names of models, and FEATURES, that are not metered on this image yet. photograph: its id."""
    metered = store.connection.execute(
        "SELECT 1 FROM energies WHERE photograph = ? AND model IS NULL", (photograph,)
    ).fetchone()
    return [*store.models_missing_in("energies", photograph), *([] if metered else [FEATURES])]


def _write_energy(bench: Bench, photograph: int, name: str | None, series: WindowSeries) -> None:
    """Write the mean energy of one run, and the two parts of half its 95 % confidence interval.

    scatter_mj comes from the windows' scatter, idle_mj from the error of the idle power, which all windows share.
    """
    energies_mj, reason = series.energies_mj, series.unknown_reason
    mean_mj, scatter_mj = (statistics.fmean(energies_mj), half_width(energies_mj)) if reason is None else (None, 0.0)
    mean_ms = statistics.fmean(series.durations_ms or [0.0])
    idle_mj = bench.options.opened.idle_half_w * mean_ms
    bench.store.connection.execute(
        "INSERT INTO energies VALUES (?, (SELECT id FROM wanted WHERE name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(photograph, name, bench.conditions, mean_mj, scatter_mj, 0.0, idle_mj, mean_ms),  # 0: see load.py
            *(len(energies_mj), series.runs, reason),
        ),
    )
